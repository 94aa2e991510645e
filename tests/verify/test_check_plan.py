"""The checker as a whole: belonging, verdicts, and a naive checker it must agree with."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.naive_checker import broken_rules
from small_problems import boxes, build_plan, build_problem, ring_of

from go_rl.core import OPTIMAL_GAP, RULE_SETS, Objective, PlanError, Status, rule_set
from go_rl.core.evaluation import failed
from go_rl.verify.check_plan import check_plan
from go_rl.verify.rules import legal
from go_rl.verify.value import plan_value

CHAIN = [("a", "b"), ("b", "c")]
RING = ring_of(3).devices


@pytest.fixture
def chain():
    return build_problem("abc", CHAIN, ring_of(3))


def test_an_honest_plan_is_accepted(chain):
    verdict = check_plan(build_plan(chain, [0, 0, 1], value=2.0, bound=2.0), chain)
    assert verdict.ok
    assert verdict.violations == ()
    assert verdict.value == 2.0
    assert verdict.sentence == Status.OK.sentence
    assert (verdict.is_legal, verdict.status_word) == (True, "ok")


def test_a_broken_rule_is_no_false_statement(chain):
    verdict = check_plan(build_plan(chain, [1, 0, 0], value=5.0, bound=9.0), chain)
    assert [v.rule for v in verdict.violations] == ["acyclic"]
    assert (verdict.is_legal, verdict.status_word) == (False, "illegal")
    assert verdict.sentence.startswith("The plan breaks a static rule. acyclic: ")


@pytest.mark.parametrize("value", [1.9999, 2.0001, 0.0, float("inf"), float("nan"), -2.0])
def test_a_false_value_is_found(value, chain):
    plan = replace(build_plan(chain, [0, 0, 1], value=value, bound=0.0), optimal=False)
    verdict = check_plan(plan, chain)
    assert [v.rule for v in verdict.violations] == ["value"]
    assert "it is 2 s" in verdict.violations[0].message
    assert verdict.status is Status.ILLEGAL
    assert (verdict.is_legal, verdict.status_word) == (True, "false-claims")
    assert verdict.sentence.startswith("The plan is legal, but what it states is false. value: the")


def test_rounding_is_forgiven(chain):
    assert check_plan(build_plan(chain, [0, 0, 1], value=2.0 + 1e-6), chain).ok


@pytest.mark.parametrize("bound", [2.001, float("inf"), float("nan"), -1.0])
def test_a_bound_above_the_value_is_found(bound, chain):
    verdict = check_plan(build_plan(chain, [0, 0, 1], value=2.0, bound=bound), chain)
    assert [v.rule for v in verdict.violations] == ["bound"]
    assert verdict.is_legal


@pytest.mark.parametrize("bound", [1.9, 0.0])
def test_optimal_with_an_open_gap_is_found(bound, chain):
    verdict = check_plan(build_plan(chain, [0, 0, 1], value=2.0, bound=bound, optimal=True), chain)
    assert [v.rule for v in verdict.violations] == ["optimal"]
    assert verdict.is_legal


def test_optimal_up_to_the_one_tolerance_is_accepted(chain):
    bound = 2.0 / (1 + 0.9 * OPTIMAL_GAP)
    assert check_plan(build_plan(chain, [0, 0, 1], value=2.0, bound=bound, optimal=True), chain).ok


def test_the_verdict_carries_the_kind_of_failure():
    problem = build_problem("ab", [("a", "b")], ring_of(2), per_node={"weights": {"a": 101}})
    verdict = check_plan(build_plan(problem, [0, 1]), problem)
    assert verdict.status is Status.OUT_OF_MEMORY
    assert "weights: chip 0 holds 101 bytes" in verdict.sentence
    assert verdict.value == float("inf")


@pytest.mark.parametrize("status", [s for s in Status if not s.ok])
def test_an_admitted_failure_keeps_its_status(status, chain):
    plan = build_plan(chain, [2, 1, 0], evaluation=failed(status, 3, "gave up"), bound=0.0)
    verdict = check_plan(plan, chain)
    assert (verdict.status, verdict.is_legal) == (status, False)
    assert verdict.violations == ()
    assert verdict.sentence == f"The plan itself reports a failure. {status.sentence} gave up."


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"nodes": ("a", "x", "c")}, "its node 1 is 'x', that of 'small' is 'b'"),
        ({"nodes": ("a", "b")}, "nodes has 2 entries, 'small' has 3 nodes"),
        ({"nodes": ("a", "b", "c", "d")}, "nodes has 4 entries, 'small' has 3 nodes"),
        ({"device": np.array([0, 1], np.int16)}, "device has 2 entries"),
        ({"graph_hash": "0123456789abcdef"}, "graph_hash 0123456789ab…"),
        ({"rules": "relay"}, "its rules is 'relay', the problem's 'strict'"),
        ({"objective": "max-load"}, "its objective is 'max-load'"),
        ({"memory": False}, "its memory is False"),
        ({"all_chips": True}, "its all_chips is True"),
        ({"cost_model": "learned"}, "its cost_model is 'learned'"),
        ({"hardware": {"devices": []}}, "the plan's hardware: field 'links'"),
    ],
)
@pytest.mark.parametrize("status", [Status.OK, Status.GAVE_UP])
def test_a_plan_for_another_problem_is_refused(status, change, words, chain):
    plan = build_plan(chain, [0, 0, 1], value=2.0)
    plan = replace(plan, evaluation=replace(plan.evaluation, status=status), **change)
    with pytest.raises(PlanError) as error:
        check_plan(plan, chain)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("hardware", "words"),
    [
        (ring_of(4, 100.0), "other hardware: 'small-ring4', not 'small-ring3'"),
        (ring_of(3, 99.0), "links.bandwidth of its 'small-ring3' is 99, that of 'small-ring3' is"),
        (
            replace(ring_of(3), devices=ring_of(4).devices, name="small-ring3"),
            "devices of its 'small-ring3' is a list of 4, that of 'small-ring3' is a list of 3",
        ),
        (
            replace(ring_of(3), devices=(*RING[:2], replace(RING[2], memory_bytes=1e12))),
            "devices[2].memory_bytes of its 'small-ring3' is 1e+12, that of 'small-ring3' is 100",
        ),
    ],
)
def test_a_plan_for_other_hardware_is_refused(hardware, words, chain):
    plan = build_plan(replace(chain, hardware=hardware), [0, 0, 1])
    with pytest.raises(PlanError, match="other hardware") as error:
        check_plan(plan, chain)
    assert words in str(error.value)


@st.composite
def small_plans(draw, chips=4):
    """A random graph of letters, a device each, and a few copies."""
    size = draw(st.integers(2, 7))
    letters = "abcdefg"[:size]
    pairs = [(u, v) for i, v in enumerate(letters) for u in letters[:i]]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=10))
    device = draw(st.lists(st.integers(0, chips - 1), min_size=size, max_size=size))
    if draw(st.booleans()):
        device = sorted(device)
    copies = draw(st.dictionaries(st.integers(0, size - 1), st.integers(0, chips - 1), max_size=3))
    replicas = {n: (c,) for n, c in copies.items() if c != device[n]}
    cheap = draw(st.sets(st.sampled_from(letters)))
    rules = draw(st.sampled_from(sorted(RULE_SETS)))
    return letters, edges, device, replicas, {"seconds": dict.fromkeys(cheap, 1e-5)}, rules


@settings(max_examples=200, deadline=None)
@given(case=small_plans())
def test_the_rules_agree_with_a_naive_checker(case):
    letters, edges, device, replicas, per_node, rules = case
    problem = build_problem(letters, edges, ring_of(4), rules, per_node=per_node)
    # Letters are in topological order already, so nodes keep their places.
    assert "".join(map(str, problem.graph.names)) == letters
    found = {v.rule for v in legal(problem, np.array(device), replicas)}
    evaluation = failed(Status.GAVE_UP, 4, "not priced")
    assert found == broken_rules(
        problem, build_plan(problem, device, replicas, evaluation=evaluation)
    )


@pytest.mark.parametrize("name", sorted(RULE_SETS))
def test_what_strict_accepts_every_rule_set_accepts(name):
    problem = build_problem("abcd", [*CHAIN, ("a", "d")], ring_of(3))
    looser = replace(problem, rules=rule_set(name))
    for device in np.ndindex(3, 3, 3, 3):
        if not legal(problem, np.array(device), {}):
            assert not legal(looser, np.array(device), {})


def test_max_load_has_no_order():
    problem = build_problem("abc", CHAIN, boxes(2, 0), objective=Objective.MAX_LOAD)
    for device in np.ndindex(2, 2, 2):
        value = plan_value(problem, np.array(device), {})
        assert check_plan(build_plan(problem, list(device), value=value), problem).ok
