"""A few golden results, in the suite; and what compares them."""

import gzip
from fnmatch import fnmatchcase

import numpy as np
import pytest

from golden.cases import Case, all_cases
from golden.compare import differences
from golden.fingerprint import digest, moments
from golden.product import plans, policies
from golden.results import RECORDED, Results, ResultsError, load_results
from golden.run import run

CHECKED = (
    "graph/zoo:unet",
    "graph/zoo:resnet50-b8-training",
    "prices/*/zoo:unet",
    "plan/ring/*/ring16/zoo:unet/greedy",
    "plan/ring/*/ring16/zoo:unet/linear-dp",
    "plan/ring/*/ring16/zoo:unet/random",
    "plan/ring/*/ring16/zoo:unet/metis",
    "plan/max-load/p100x4/zoo:unet/greedy",
    "plan/max-load/p100x4/zoo:unet/dp",
    "plan/latency/p100x4/zoo:unet/greedy",
    "plan/makespan/*/zoo:unet/default",
    "plan/makespan/*/zoo:unet/expert",
    "plan/makespan/*/zoo:unet/fusion-greedy",
    "plan/makespan/*/zoo:unet/heft",
    "plan/makespan/*/zoo:unet/random",
)
"""Whole numbers and float64 in compiled loops: equal on every processor, and quick. No policy, for
JAX's float32 breaks ties otherwise elsewhere; nothing that exp or log decides, as in annealing."""
EVERY = tuple(all_cases())
FEW = tuple(case for case in EVERY if any(fnmatchcase(case.name, each) for each in CHECKED))


@pytest.fixture(scope="module")
def recorded() -> Results:
    return load_results(RECORDED)


@pytest.mark.parametrize("case", FEW, ids=lambda case: case.name)
def test_it_is_as_recorded(case, recorded):
    assert not differences({case.name: recorded.cases[case.name]}, {case.name: case.find()}, {})


def test_every_case_is_recorded_under_one_name(recorded):
    names = [case.name for case in EVERY]
    assert len(names) == len(set(names))
    assert {n for n in names if not n.startswith("learn/boosted")} - set(recorded.cases) == set()
    assert set(recorded.cases) - {*names, "learn/boosted-trees"} == set()


def test_every_plan_that_was_found_is_legal(recorded):
    found = [facts for name, facts in recorded.cases.items() if name.startswith("plan/")]
    assert all(facts["verdict"] == facts["status"] for facts in found)
    assert sum(facts["status"] == "ok" for facts in found) > 0.9 * len(found)


def test_nothing_that_go_rl_has_is_left_out():
    """Whoever adds a method or ships weights adds their cases."""
    assert {name for known in plans.METHODS.values() for name in known} == plans.registered()
    named = {*policies.RING_POLICIES, *policies.DISPATCH_POLICIES}
    assert named == policies.shipped()


PLAN = {"status": "ok", "decisions": "0f", "value": 2.0, "bound": 1.0}


@pytest.mark.parametrize(
    ("fact", "now", "clocked", "differs"),
    [
        ("value", 2.0 * (1 + 5e-10), (), False),
        ("value", 2.0 * (1 + 5e-9), (), True),
        ("decisions", "0e", (), True),
        ("decisions", "0e", ("decisions",), False),
        ("bound", 1.4, ("bound",), False),
        ("bound", 1.6, ("bound",), True),
        ("bound", 1.4, (), True),
        ("status", "gave-up", ("bound",), True),
        ("value", float("inf"), (), True),
        ("value", None, (), True),
    ],
)
def test_what_counts_as_a_difference(fact, now, clocked, differs):
    found = differences({"plan/a": PLAN}, {"plan/a": PLAN | {fact: now}}, {"plan/a": clocked})
    assert [each.case for each in found] == ["plan/a"] * differs


def test_cases_that_come_and_go_are_differences():
    assert [d.what for d in differences({"plan/a": PLAN}, {"plan/b": PLAN}, {})] == [
        "is gone",
        "is new",
    ]


def test_hashes_and_moments_see_what_changes():
    ones = np.ones(3, np.int16)
    assert digest(ones) == digest(ones.astype(np.int64))
    assert digest(ones, None) != digest(None, ones)
    assert digest([1, 2]) != digest([2, 1])
    with pytest.raises(TypeError, match="float64 is not hashed: take its moments"):
        digest([0.5])
    assert moments([[1.0, -2.0]])[:2] == [3.0, -1.0]
    assert moments([[1.0, 2.0]]) != moments([[2.0, 1.0]])
    assert moments([[1.0], [2.0, 3.0]]) == moments([[2.0, 3.0], [1.0]])
    assert moments([[np.inf, 1.0]]) != moments([[1.0, np.inf]])


def test_a_run_goes_on_where_it_stopped(tmp_path):
    part, asked = tmp_path / "part", []

    def case(name: str, fails: bool = False) -> Case:
        def find():
            asked.append(name)
            if fails:
                raise KeyboardInterrupt
            return {"value": 1.0}

        return Case(name, find)

    with pytest.raises(KeyboardInterrupt):
        run([case("a"), case("b", fails=True)], part)
    found = run([case("a"), case("b")], part)
    assert asked == ["a", "b", "b"]
    assert found.cases == {"a": {"value": 1.0}, "b": {"value": 1.0}}


@pytest.mark.parametrize(("content", "said"), [
    (None, "cannot be read"), (b"{}", "is no file of golden results"),
    (gzip.compress(b"[]", mtime=0), "is no file of golden results"),
    (gzip.compress(b'{"header": {}, "cases": {}}', mtime=0), "is of format None"),
])  # fmt: skip
def test_unusable_files_are_refused(tmp_path, content, said):
    path = tmp_path / "results.json.gz"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ResultsError, match=said):
        load_results(path)
