"""`Plan` and `Evaluation`: JSON round trip, what a file may not say, and atomic saving."""

import json
import os
from dataclasses import MISSING, fields, replace
from typing import Any

import numpy as np
import pytest

from go_rl.core import CurvePoint, Evaluation, Fidelity, Means, Plan, PlanError, Status
from go_rl.core.evaluation import failed
from go_rl.core.plan import PLAN_FORMAT
from go_rl.core.plan_json.document import PlanFields

INF = float("inf")
REQUIRED = [f.name for f in fields(PlanFields) if MISSING is f.default is f.default_factory]


@pytest.fixture
def plan(problem_of, small_ring, plan_of) -> Plan:
    seconds = {"a": 1e-4, "b": 1.0, "c": 1.0}
    edges = [("a", "b"), ("b", "c"), ("a", "c")]
    problem = problem_of("abc", edges, small_ring(3), "default", {"seconds": seconds})
    return plan_of(
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


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"legalized_by": "cut"}, "none, independent, cuts, tree, not 'cut'"),
        ({"displacement": -1.0}, "displacement must be a number >= 0, or null"),
        ({"log_prob_gap": "small"}, "log_prob_gap must be a number >= 0, or null"),
        ({"nearness": 1.0}, "fidelity: unknown field 'nearness'"),
    ],
)
def test_a_malformed_fidelity_is_refused(plan, entry, message):
    document = plan.to_json()
    document["fidelity"] |= entry
    with pytest.raises(PlanError, match=message):
        Plan.from_json(document)


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
    ({"nodes": DROP}, "where: field 'nodes' is missing"),
    ({"device": DROP}, "field 'device' is missing"),
    ({"replicas": DROP}, "field 'replicas' is missing"),
    ({"evaluation": DROP}, "field 'evaluation' is missing"),
    ({"hardware": DROP}, "field 'hardware' is missing"),
    ({"graph_hash": DROP}, "field 'graph_hash' is missing"),
    ({"bound": DROP}, "field 'bound' is missing"),
    ({"format": "go_rl-plan-9"}, "format must be 'go_rl-plan-1', not 'go_rl-plan-9'"),
    ({"nodes": "abc"}, "field 'nodes' must be a list, not a str"),
    ({"nodes": ["a", "b", ["c"]]}, "nodes[2] must be an integer or a string"),
    ({"nodes": ["a", True, "c"]}, "nodes[1] must be an integer or a string"),
    ({"nodes": [], "device": [], "replicas": {}}, "one integer for each of 0 nodes"),
    ({"device": [0, 1]}, "device must list one integer for each of 3 nodes"),
    ({"device": [0, 1, 1.5]}, "device must list one integer"),
    ({"device": [0, 1, None]}, "device must list one integer"),
    ({"device": [0, 1, "2"]}, "device must list one integer"),
    ({"device": [0, True, [2]]}, "device must list one integer"),
    ({"device": [0, True, 2]}, "device must list one integer"),
    ({"device": [0, 1, -1]}, "device must hold indices >= 0"),
    ({"device": [0, 1, 70000]}, "device must hold indices >= 0"),
    ({"device": [0, 1, 10**30]}, "device must hold indices >= 0 and at most 32767"),
    ({"devcie": [0, 1, 2]}, "unknown field 'devcie'; did you mean 'device'?"),
    ({"ranks": [0, 1, 2]}, "unknown field 'ranks'."),
    (
        {"dims": {"batch": "b"}},
        "dims of 'batch' must be a whole number from 0 to 2^63 - 1, not 'b'",
    ),
    (
        {"dims": {"batch": True}},
        "dims of 'batch' must be a whole number from 0 to 2^63 - 1, not True",
    ),
    ({"dims": {"batch": -1}}, "dims of 'batch' must be a whole number from 0 to 2^63 - 1, not -1"),
    ({"dtype": {"element_byte": 2}}, "dtype: unknown field 'element_byte'; did you mean"),
    ({"dtype": {"element_bytes": "2"}}, "element_bytes must be a number > 0 or null, not '2'"),
    ({"versions": {"go_rl": 1}}, "versions of 'go_rl' must be a version in quotes, not 1"),
    ({"notes": [7]}, "notes[0] must be a sentence in quotes, not 7"),
    ({"priority": [1, 2, 2**63]}, "priority[2] is 9223372036854775808; it must be -2^63 to 2^63"),
    ({"priority": [-(2**63) - 1, 0, 0]}, "priority[0] is -9223372036854775809"),
    ({"priority": [1, 2.0, 3]}, "a list of integers, or null; priority[1] is 2.0"),
    ({"priority": "high"}, "field 'priority' must be a list or NoneType, not a str"),
    ({"fusion_group": [0, 0, 10**19]}, "fusion_group[2] is 10000000000000000000"),
    ({"seed": True}, "field 'seed' must be a int, not a bool"),
    ({"wall_seconds": "long"}, "field 'wall_seconds' must be a int or float, not a str"),
    ({"replicas": []}, "field 'replicas' must be a dict, not a list"),
    ({"replicas": {"d": [1]}}, "replicas names node 'd', which is not in nodes"),
    ({"replicas": {"a": 1}}, "replicas of 'a' must list device indices >= 0"),
    ({"replicas": {"a": [1.5]}}, "replicas of 'a' must list"),
    ({"replicas": {"a": [-1]}}, "replicas of 'a' must list"),
    ({"hardware": "ring36"}, "field 'hardware' must be a dict, not a str"),
    ({"memory": "false"}, "field 'memory' must be a bool, not a str"),
    ({"seed": "7"}, "field 'seed' must be a int"),
    ({"rules": None}, "field 'rules' must be a str, not a NoneType"),
    ({"evaluation": {}}, "evaluation: field 'status' is missing"),
    ({"curve": [[1, 2]]}, "curve[0] must be [samples, seconds, value or null], not [1, 2]"),
    ({"curve": [[1, 2, 3], [2, "2", 3]]}, "curve[1] must be"),
    ({"bound": "low"}, "field 'bound' must be a int or float or NoneType"),
    ({"value": 1.0}, "field 'value' is 1.0, but the plan's evaluation and bound make it 1.25"),
    ({"throughput": 9.0}, "field 'throughput' is 9.0"),
    ({"gap": 0.0}, "field 'gap' is 0.0"),
    ({"gap": None}, "field 'gap' is None"),
    ({"status": "illegal"}, "field 'status' is 'illegal'"),
    *(({name: DROP}, f"field {name!r} is missing") for name in REQUIRED),
    ({"bound": 10**400}, "bound must be a finite number, or null for infinity, not 1000"),
    ({"bound": INF}, "bound must be a finite number, or null"),
    ({"bound": float("nan")}, "bound must be a finite number, or null"),
    ({"value": 10**400}, "field 'value' is 1000"),
    ({"value": True}, "field 'value' is True"),
    ({"gap": float("nan")}, "field 'gap' is nan"),
    ({"wall_seconds": float("nan")}, "wall_seconds must be a finite number >= 0, not nan"),
    ({"wall_seconds": 10**400}, "wall_seconds must be a finite number >= 0"),
    ({"wall_seconds": -1.0}, "wall_seconds must be a finite number >= 0"),
    ({"samples": 2**63}, "samples must be 0 to 2^63 - 1, not 9223372036854775808"),
    ({"samples": -1}, "samples must be 0 to 2^63 - 1"),
    ({"dims": {"batch": 2**63}}, "dims of 'batch' must be a whole number from 0 to 2^63 - 1"),
    ({"dtype": {"element_bytes": INF}}, "element_bytes must be a number > 0 or null, not inf"),
    ({"curve": [[1, float("nan"), 1.0]]}, "curve[0] must be"),
    ({"curve": [[2**63, 1.0, 1.0]]}, "curve[0] must be"),
    ({"curve": [[1, 1.0, 10**400]]}, "curve[0] must be"),
    ({"replicas": {"a": [2**63]}}, "replicas of 'a' must list device indices >= 0"),
    ({"fixed": {"a": 2**63}}, "fixed device of 'a' must be an index >= 0"),
    ({"fixed": {"a": None}}, "fixed device of 'a' must be an index >= 0"),
    ({"notes": ["x" * 10_000, 7]}, "notes[1] must be"),
    ({"x" * 10_000: 1}, "unknown field 'xxx"),
    ({"nodes": ["a", "a", "c"]}, "replicas names node 'a', as 2 of nodes are written"),
]


@pytest.mark.parametrize(("change", "words"), BAD, ids=[f"{i}-{w}" for i, (_, w) in enumerate(BAD)])
def test_bad_documents_are_refused(change, words, plan):
    document = {**plan.to_json(), **change}
    document = {k: v for k, v in document.items() if v is not DROP}
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


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\xff\xfe", "not JSON (not UTF-8 at byte 0)"),
        (b'{"seed": NaN}', "not JSON (NaN is no JSON number)"),
        (b'{"seed": 1, "seed": 2}', "not JSON (field 'seed' is there twice)"),
        (b"[" * 50_000, "not JSON (lists and objects nest deeper"),
    ],
)
def test_what_is_no_json_is_no_plan(content, words, tmp_path):
    (tmp_path / "plan.json").write_bytes(content)
    with pytest.raises(PlanError) as error:
        Plan.load(tmp_path / "plan.json")
    assert words in str(error.value)
    with pytest.raises(PlanError, match=r"cannot be read \(Is a directory\)"):
        Plan.load(tmp_path)


@pytest.mark.parametrize("document", [None, [], 3, "plan"])
def test_what_is_no_object_is_refused(document):
    with pytest.raises(PlanError, match="a plan is a JSON object with nodes and device"):
        Plan.from_json(document)


def test_an_unknown_status_is_refused(plan):
    document = plan.to_json()
    document["evaluation"]["status"] = "fine"
    with pytest.raises(
        PlanError, match=r"evaluation: unknown status 'fine'\. Use ok, infeasible, out"
    ):
        Plan.from_json(document)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"peak_bytes": "much"},
            "evaluation: peak_bytes must be a list of numbers, null for infin",
        ),
        ({"link_bytes": [1.0, "2"]}, "evaluation: link_bytes must be a list of numbers"),
        ({"seconds": "1"}, "evaluation: seconds must be a number, null for inf"),
        ({"detail": 3}, "evaluation: detail must be text, not 3"),
        ({"peak_bytes": [1.0]}, "peak_bytes has 1 entries, and device_seconds 3"),
        ({"link_bytes": []}, "link_bytes has 0 entries, and link_seconds 3"),
        ({"device_seconds": [10**400, 0, 0]}, "device_seconds must be a list of numbers"),
        ({"seconds": float("nan")}, "seconds must be a number"),
        ({"peak_byte": [1.0]}, "evaluation: unknown field 'peak_byte'; did you mean 'peak_bytes'"),
    ],
)
def test_a_malformed_evaluation_is_refused(change, words, plan):
    document = plan.to_json()
    document["evaluation"] |= change
    with pytest.raises(PlanError) as error:
        Plan.from_json(document, "where")
    assert words in str(error.value)


def test_optional_fields_may_be_absent(plan):
    document = plan.to_json()
    for name in ("priority", "fusion_group", "curve", "notes", "dims", "dtype", "versions"):
        del document[name]
    assert Plan.from_json(document).priority is None


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "cannot be read"), (b"", "not JSON"), (b'{"nodes": [', "not JSON"), (b"\xff", "not J")],
)
def test_bad_files_are_refused(content, words, tmp_path):
    path = tmp_path / "plan.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(PlanError, match=words) as error:
        Plan.load(path)
    assert str(path) in str(error.value)


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
