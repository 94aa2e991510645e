"""`Plan` and `Evaluation`: JSON round trip, what a file may not say, and atomic saving."""

import json
import os
from dataclasses import MISSING, fields, replace
from typing import Any

import numpy as np
import pytest
from small_problems import build_plan, build_problem, ring_of

from go_rl.core import CurvePoint, Evaluation, Fidelity, Means, Plan, PlanError, Status, plan_for
from go_rl.core.evaluation import effective_count, failed
from go_rl.core.plan import PLAN_FORMAT
from go_rl.core.plan_json.document import PlanFields

INF = float("inf")
REQUIRED = [f.name for f in fields(PlanFields) if MISSING is f.default is f.default_factory]


@pytest.fixture
def plan() -> Plan:
    seconds = {"a": 1e-4, "b": 1.0, "c": 1.0}
    edges = [("a", "b"), ("b", "c"), ("a", "c")]
    problem = build_problem("abc", edges, ring_of(3), "default", {"seconds": seconds})
    return build_plan(
        problem,
        [0, 1, 2],
        {0: (1, 2)},
        value=1.25,
        bound=1.0,
        seed=7,
        samples=3,
        wall_seconds=0.5,
        curve=(CurvePoint(1, 0.1, INF), CurvePoint(3, 0.5, 1.25)),
        priority=np.array([3, 2, 1], np.int64),
        fusion_group=np.array([0, 0, 1], np.int64),
        optimal=True,
        fidelity=Fidelity(Means.CUTS, 0.25, 1e-3),
    )


def through_json(plan: Plan) -> Plan:
    return Plan.from_json(json.loads(json.dumps(plan.to_json(), allow_nan=False)))


def test_a_plan_survives_json(plan):
    read = through_json(plan)
    for name in (f.name for f in fields(Plan) if f.name not in ("evaluation", "device")):
        mine, theirs = getattr(plan, name), getattr(read, name)
        assert np.array_equal(mine, theirs) if isinstance(mine, np.ndarray) else mine == theirs
    assert read.device.dtype == np.int16
    assert read.to_json() == plan.to_json()


def test_the_document_says_what_an_outside_program_needs(plan):
    document = plan.to_json()
    assert document["format"] == PLAN_FORMAT
    assert document["nodes"] == ["a", "b", "c"]
    assert document["device"] == [0, 1, 2]
    assert document["replicas"] == {"a": [1, 2]}
    assert (document["objective"], document["rules"]) == ("ring", "default")
    assert (document["value"], document["evaluation"]["seconds"]) == (1.25, 1.25)
    assert (document["bound"], document["gap"], document["throughput"]) == (1.0, 0.25, 0.8)
    assert document["status"] == "ok"
    assert document["curve"] == [[1, 0.1, None], [3, 0.5, 1.25]]
    assert document["hardware"]["devices"][0]["count"] == 3
    assert "go_rl" in document["versions"]


def test_a_plan_says_how_it_follows_from_its_proposal(plan):
    shown = {"legalized_by": "cuts", "displacement": 0.25, "log_prob_gap": 1e-3}
    assert plan.to_json()["fidelity"] == shown
    for part in (Fidelity(Means.TREE, 2.0), Fidelity(Means.INDEPENDENT), None):
        assert through_json(replace(plan, fidelity=part)).fidelity == part


@pytest.mark.parametrize(
    ("work", "expected"),
    [([2.0, 2.0, 2.0, 2.0], 4.0), ([3.0, 0.0], 1.0), ([1.0, 1.0, 2.0], 2**1.5), ([0.0], 0.0),
     ([], 0.0)],
)  # fmt: skip
def test_effective_count_is_the_exponential_of_the_entropy(work, expected):
    assert effective_count(np.array(work)) == pytest.approx(expected)


def test_ids_keep_their_type(plan):
    numbered = replace(plan, nodes=(10, "x", 30))
    assert through_json(numbered).nodes == (10, "x", 30)
    assert through_json(numbered).replicas == {0: (1, 2)}


def test_a_failure_survives_json(plan):
    lost = replace(
        plan, evaluation=failed(Status.INFEASIBLE, 3, "nodes clash"), bound=INF, optimal=False
    )
    document = lost.to_json()
    assert (document["value"], document["bound"], document["gap"]) == (None, None, None)
    assert (document["throughput"], document["status"]) == (0.0, "infeasible")
    read = through_json(lost)
    assert (read.value, read.bound, read.gap) == (INF, INF, INF)
    assert read.evaluation.detail == "nodes clash"


@pytest.mark.parametrize(
    ("value", "bound", "gap"),
    [(2.0, 1.0, 1.0), (2.0, 2.0, 0.0), (2.0, 2.0 + 1e-12, 0.0), (2.0, 0.0, INF), (INF, 1.0, INF)],
)
def test_gap(value, bound, gap, plan):
    judged = replace(plan, evaluation=replace(plan.evaluation, seconds=value), bound=bound)
    assert judged.gap == gap


DROP = object()
BAD: list[tuple[dict[str, Any], str]] = [
    ({"dims": {"batch": True}}, "dims: batch must be a whole number, not True"),
    ({"dims": {"batch": -1}}, "dims: batch must be 1 to 9223372036854775807, not -1"),
    ({"dims": {"batch": 2**63}}, "dims: batch must be 1 to"),
    ({"dtype": {"element_bytes": INF}}, "element_bytes must be a finite number or null, not inf"),
    ({"versions": {"go_rl": 1}}, "versions: go_rl must be a text, not 1"),
    ({"devcie": [0, 1, 2]}, "unknown field 'devcie'; did you mean 'device'?"),
    ({"ranks": [0, 1, 2]}, "unknown field 'ranks'."),
    ({"x" * 10_000: 1}, "unknown field 'xxx"),
    ({"notes": ["x" * 10_000, 7]}, "notes[1] must be"),
    ({"nodes": ["a", "a", "c"]}, "replicas names node 'a', as 2 of nodes are written"),
    ({"nodes": [], "device": [], "replicas": {}}, "one integer for each of 0 nodes"),
    ({"device": [0, 1, 70000]}, "device must hold indices >= 0 and at most 32767"),
    ({"priority": [-(2**63) - 1, 0, 0]}, "priority[0] must be -9223372036854775808 to"),
    ({"replicas": {"a": [2**63]}}, "replicas of 'a' must list device indices >= 0"),
    ({"fixed": {"a": 2**63}}, "fixed device of 'a' must be an index >= 0"),
    ({"curve": [[1, 1.0, 10**400]]}, "curve[0][2] must be"),
    ({"curve": [[2**63, 1.0, 1.0]]}, "curve[0][0] must be"),
    ({"bound": 10**400}, "bound must be a finite number or null, not 1000"),
    ({"bound": INF}, "bound must be a finite number or null"),
    ({"value": 1.0}, "field 'value' is 1.0, but the plan's evaluation and bound make it 1.25"),
    ({"value": 10**400}, "field 'value' is 1000"),
    ({"value": True}, "field 'value' is True"),
    ({"throughput": 9.0}, "field 'throughput' is 9.0"),
    ({"gap": 0.0}, "field 'gap' is 0.0"),
    ({"gap": None}, "field 'gap' is None"),
    ({"wall_seconds": -1.0}, "wall_seconds must be at least 0, not -1.0"),
    ({"samples": 2**63}, "samples must be 0 to 9223372036854775807, not 9223372036854775808"),
    *(({name: DROP}, f"field {name!r} is missing") for name in REQUIRED),
    ({"effective_chips": 2.5}, "field 'effective_chips' is"),
    *(({"fidelity": entry}, words) for entry, words in (
        ({"legalized_by": "cut"}, "none, independent, cuts, tree, not 'cut'"),
        ({"displacement": -1.0}, "displacement must be at least 0, not -1.0"),
        ({"log_prob_gap": "small"}, "log_prob_gap must be a finite number or null"),
        ({"nearness": 1.0}, "fidelity: unknown field 'nearness'"))),
    *(({"evaluation": entry}, words) for entry, words in (
        ({"status": "fine"}, "evaluation: status must be one of ok, infeasible, out"),
        ({"detail": 3}, "evaluation: detail must be a text, not 3"),
        ({"peak_bytes": [1.0]}, "peak_bytes has 1 entries, and device_seconds 3"),
        ({"link_bytes": []}, "link_bytes has 0 entries, and link_seconds 3"),
        ({"device_seconds": [10**400, 0, 0]}, "device_seconds[0] must be a finite number or null"),
        ({"seconds": float("nan")}, "seconds must be a finite number"),
        ({"peak_byte": [1.0]}, "evaluation: unknown field 'peak_byte'; did you mean 'peak_b"))),
    *(({"evaluation": {"link_seconds": links}}, words) for links, words in (
        ({"entries": 10}, "field 'nonzero' is missing"),
        ({"entries": 10, "nonzero": [], "x": 1}, "unknown field 'x'"),
        ({"entries": 10**12, "nonzero": []}, "entries must be 0 to 1048576"),
        ({"entries": 10, "nonzero": [[10, 1.0]]}, "nonzero[0][0] must be 0 to 9, not 10"),
        ({"entries": 10, "nonzero": 3}, "nonzero must be a list, not 3"),
        ({"entries": 10_000, "nonzero": [[3, "x"]]},
         "link_seconds: nonzero[0][1] must be a finite number or null"))),
]  # fmt: skip
"""What changes, of the evaluation and the fidelity by field; and words of the answer."""


@pytest.mark.parametrize(("change", "words"), BAD, ids=[f"{i}-{w}" for i, (_, w) in enumerate(BAD)])
def test_bad_documents_are_refused(change, words, plan):
    document = plan.to_json()
    parts = [name for name in ("evaluation", "fidelity") if isinstance(change.get(name), dict)]
    change = change | {name: document[name] | change[name] for name in parts}
    document = {k: v for k, v in (document | change).items() if v is not DROP}
    with pytest.raises(PlanError) as error:
        Plan.from_json(document, "where")
    assert str(error.value).startswith("where: ")
    assert words in str(error.value)
    assert len(str(error.value)) < 400


def test_a_failure_that_claims_to_be_worth_something_is_refused(plan):
    for change, words in (
        ({"optimal": False}, "says a value of 1.25 s"),
        ({}, "says optimal true"),
    ):
        status = {"status": "gave-up", **change}
        document = {**plan.to_json(), **status}
        document["evaluation"] = {**document["evaluation"], "status": "gave-up"}
        with pytest.raises(PlanError, match=f"status 'gave-up' is that of a failure, .* {words}"):
            Plan.from_json(document)


def test_a_number_that_json_cannot_write_is_not_saved(plan, tmp_path):
    with pytest.raises(PlanError, match="holds a number that JSON cannot write"):
        replace(plan, wall_seconds=float("nan")).save(tmp_path / "plan.json")
    assert not list(tmp_path.iterdir())


def test_a_folder_is_no_plan(tmp_path):
    with pytest.raises(PlanError, match="is a folder; wanted is a plan"):
        Plan.load(tmp_path)


@pytest.mark.parametrize("document", [None, [], 3, "plan"])
def test_what_is_no_object_is_refused(document):
    with pytest.raises(PlanError, match="a plan is a JSON object with nodes and device"):
        Plan.from_json(document)


def test_the_largest_priorities_are_read(plan):
    extremes = [-(2**63), 0, 2**63 - 1]
    read = Plan.from_json({**plan.to_json(), "priority": extremes})
    assert read.priority is not None
    assert read.priority.tolist() == extremes


def test_optional_fields_may_be_absent(plan):
    document = plan.to_json()
    for name in ("priority", "fusion_group", "curve", "notes", "dims", "dtype", "versions"):
        del document[name]
    assert Plan.from_json(document).priority is None


def test_saving_replaces_whole_files(plan, tmp_path):
    path = tmp_path / "deep" / "plan.json"
    plan.save(path)
    first = path.stat().st_ino
    replace(plan, seed=8).save(path)
    assert Plan.load(path).seed == 8
    assert path.stat().st_ino != first
    assert [p.name for p in path.parent.iterdir()] == ["plan.json"]


def test_a_failed_save_leaves_the_old_plan_and_no_litter(plan, tmp_path, monkeypatch):
    path = tmp_path / "plan.json"
    plan.save(path)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(PlanError, match=r"plan\.json: cannot be written \(No space left"):
        replace(plan, seed=8).save(path)
    assert Plan.load(path).seed == 7
    assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]


def test_a_saved_plan_is_as_readable_as_any_new_file(plan, tmp_path):
    plan.save(tmp_path / "plan.json")
    (tmp_path / "other").touch()
    assert (tmp_path / "plan.json").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_a_problem_fills_in_what_it_knows():
    problem = build_problem("ab", [], ring_of(2), "relay", all_chips=True, dims={"batch": 8})
    made = plan_for(
        problem,
        device=np.array([0, 1], np.int16),
        replicas={},
        evaluation=failed(Status.GAVE_UP, 2, ""),
        bound=0.0,
        optimizer="none",
        seed=0,
        samples=0,
        wall_seconds=0.0,
    )
    assert (made.rules, made.objective, made.all_chips) == ("relay", "ring", True)
    assert made.graph_hash == problem.graph.digest
    assert made.dims == {"batch": 8}


def test_an_evaluation_survives_json_infinities_and_all():
    one = Evaluation(
        Status.OUT_OF_MEMORY,
        INF,
        np.array([1.0, INF]),
        np.array([0.5]),
        np.array([8.0]),
        np.array([1.0, 2.0]),
        np.array([0.0, 3.0]),
        np.array([4.0, 5.0]),
        "chip 1 is full",
    )
    document = json.loads(json.dumps(one.to_json(), allow_nan=False))
    read = Evaluation.from_json(document)
    assert read.to_json() == one.to_json()
    assert read.device_seconds.tolist() == [1.0, INF]
    assert (read.status, read.seconds, read.detail) == (one.status, INF, one.detail)


def long_links(plan: Plan) -> Plan:
    busy = np.zeros(100 * 100)
    busy[[3, 4711]] = 0.5, INF
    return replace(plan, evaluation=replace(plan.evaluation, link_seconds=busy, link_bytes=busy))


def test_of_many_links_only_those_with_traffic_are_written(plan):
    long = long_links(plan)
    written = long.to_json()["evaluation"]["link_seconds"]
    assert written == {"entries": 10_000, "nonzero": [[3, 0.5], [4711, None]]}
    assert (through_json(long).evaluation.link_bytes == long.evaluation.link_bytes).all()
