"""A few golden results, in the suite; and what compares them."""

from fnmatch import fnmatchcase

import pytest

from golden.cases import all_cases
from golden.compare import differences
from golden.product import plans, policies
from golden.results import RECORDED, Results, load_results

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


def test_nothing_that_go_rl_has_is_left_out():
    """Whoever adds a method or ships weights adds their cases."""
    assert {name for known in plans.METHODS.values() for name in known} == plans.registered()
    named = {*policies.RING_POLICIES, *policies.ORDERS_POLICIES, *policies.DISPATCH_POLICIES}
    assert named == policies.shipped()
