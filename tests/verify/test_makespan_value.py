"""The checker's own replay, by hand, and its verdicts on plans for the makespan objective."""

from typing import Any

import numpy as np
import pytest
from reference.step_problems import step_problem
from small_problems import build_plan

from go_rl.core import Engine, GoRLError, OpKind, Plan, PlanError, Problem, Status
from go_rl.verify.check_plan import check_plan
from go_rl.verify.makespan_value import Replayed, replayed

ELEMENTWISE, OTHER, INPUT = OpKind.ELEMENTWISE, OpKind.OTHER, OpKind.INPUT
FORK = [(0, 1, 2.0), (0, 2, 2.0), (1, 3, 1.0), (2, 3, 3.0)]


def checked(problem: Problem, device, priority=None, group=None) -> Replayed:
    arrays = [None if x is None else np.array(x, np.int64) for x in (priority, group)]
    return replayed(problem, np.array(device, np.int16), *arrays)


def fork(**options: Any) -> Problem:
    """0 (1 s) feeds 1 (4 s) and 2 (2 s), which feed 3 (1 s)."""
    return step_problem([1.0, 4.0, 2.0, 1.0], FORK, 2, **options)


def test_a_fork_by_hand():
    """On two devices: 0 to 1, sent 1-3, 2 runs 3-5, sent 5-8; 1 runs 1-5; 3 runs 8-9."""
    assert checked(fork(), [0, 0, 0, 0]) == Replayed(8.0, [2.0 + 1.0 + 3.0, 0.0])
    assert checked(fork(), [0, 0, 1, 0]) == Replayed(9.0, [4.0, 5.0])
    assert checked(fork(latency=1.0), [0, 0, 1, 0]).seconds == 11.0
    assert checked(fork(gap=[1.0, 0.0, 0.0, 2.0]), [0, 0, 1, 0]).seconds == 12.0


def test_priorities_and_engines_by_hand():
    problem = step_problem([1.0, 1.0, 5.0], [(1, 2, 1.0)], 2)
    assert checked(problem, [0, 0, 1]).seconds == 8.0
    assert checked(problem, [0, 0, 1], [0, 1, 0]).seconds == 7.0
    streams = step_problem([2.0, 3.0, 2.0], engines=(Engine("stream", 2),))
    assert checked(streams, [0, 0, 0]).seconds == 4.0
    cores = step_problem([6.0, 3.0], engines=(Engine("core", 3, split=True),))
    assert checked(cores, [0, 0]).seconds == 3.0


def test_a_kernel_by_hand():
    problem = fork(kinds=[ELEMENTWISE] * 4, output_bytes=[9.0, 0.0, 0.0, 0.0])
    fused = checked(problem, [0] * 4, [0, 0, 5, 0], [0, 0, 2, 2])
    assert fused == Replayed(8.0, [9.0 + 1.0, 0.0])
    assert checked(problem, [0] * 4, None, [0] * 4) == Replayed(8.0, [7.0, 0.0])


def test_an_honest_plan_is_accepted():
    verdict = check_plan(build_plan(fork(), [0, 0, 1, 0], value=9.0, bound=5.0), fork())
    assert verdict.ok, verdict.sentence
    assert verdict.value == 9.0


@pytest.mark.parametrize(
    ("value", "bound", "words"),
    [
        (8.0, 0.0, "value: the plan says 8 s; it is 9 s"),
        (9.0, 9.5, "bound: a lower bound of 9.5 s does not fit a plan of 9 s"),
        (float("nan"), 0.0, "value"),
    ],
)
def test_a_false_claim_is_illegal(value, bound, words):
    verdict = check_plan(build_plan(fork(), [0, 0, 1, 0], value=value, bound=bound), fork())
    assert verdict.status is Status.ILLEGAL
    assert words in verdict.sentence


def test_a_plan_that_takes_too_much_memory_names_each_device():
    problem = fork(memory_bytes=4.5)
    verdict = check_plan(build_plan(problem, [0, 0, 1, 0], value=9.0), problem)
    assert verdict.status is Status.OUT_OF_MEMORY
    (found,) = verdict.violations
    assert found.rule == "memory"
    assert found.message == (
        "device 1 needs 5 bytes at once; its memory is 4.5; the largest there at that moment: "
        "result of 2 3, result of 0 2"
    )
    fits = fork(memory_bytes=5.0)
    assert check_plan(build_plan(fits, [0, 0, 1, 0], value=9.0), fits).ok


def test_weights_that_do_not_fit_break_their_own_rule():
    problem = fork(memory_bytes=50.0, weights=[60.0, 0.0, 0.0, 0.0])
    verdict = check_plan(build_plan(problem, [0, 0, 1, 0], value=9.0), problem)
    assert [v.rule for v in verdict.violations] == ["weights"]
    assert verdict.violations[0].message == (
        "device 0 holds 60 bytes of weights; its memory is 50; the largest: 0 60"
    )


def test_an_illegal_kernel_is_found_before_it_is_replayed():
    problem = fork()
    group = np.array([0, 0, 2, 3])
    verdict = check_plan(build_plan(problem, [0, 0, 1, 0], value=9.0, fusion_group=group), problem)
    assert (verdict.status, verdict.value) == (Status.ILLEGAL, np.inf)
    assert [v.rule for v in verdict.violations] == ["kernel-kinds"]


def test_static_rules_hold_for_makespan_too():
    problem = fork(fixed={3: 1}, colocation=[0, 0, -1, -1])
    verdict = check_plan(build_plan(problem, [0, 1, 1, 0], value=9.0), problem)
    assert [v.rule for v in verdict.violations] == ["colocation", "fixed"]
    copied = check_plan(build_plan(fork(), [0, 0, 1, 0], value=9.0, replicas={0: (1,)}), fork())
    assert [v.rule for v in copied.violations] == ["no-copies"]


@pytest.mark.parametrize("field", ["priority", "fusion_group"])
def test_a_schedule_of_another_graph_is_refused(field):
    plan = build_plan(fork(), [0, 0, 1, 0], value=9.0)
    document = {**plan.to_json(), field: [0, 1, 2]}
    with pytest.raises(PlanError):
        check_plan(Plan.from_json(document), fork())
    object.__setattr__(plan, field, np.array([0, 1, 2]))
    with pytest.raises(PlanError, match=f"{field} has 3 entries; 'steps' has 4 nodes"):
        check_plan(plan, fork())


# nothing refuses an input or constant that reads (check_graph, Problem); the checker raises
# KeyError, and the compiled replay writes outside its arrays and ends the process (SIGSEGV).
def test_a_constant_that_reads_is_refused_or_replayed():
    kinds = [ELEMENTWISE, OpKind.CONSTANT, ELEMENTWISE]
    try:
        problem = step_problem([1.0, 0.0, 3.0], [(0, 1, 1.0), (1, 2, 1.0)], kinds=kinds)
    except GoRLError:
        return
    assert checked(problem, [0, 0, 0]).seconds == 4.0


# the checker does not read `Problem.decisions`: a fused plan is accepted where fusion is not asked
# for, and then undercuts the bound that holds without fusion.
@pytest.mark.parametrize(
    ("decision", "field"), [("schedule", "fusion_group"), ("fusion", "priority")]
)
def test_a_plan_decides_only_what_is_asked(decision, field):
    problem = step_problem(
        [1.0, 1.0], [(0, 1, 1.0)], kinds=[ELEMENTWISE] * 2, decisions=(decision,)
    )
    plan = build_plan(problem, [0, 0], value=2.0, **{field: np.array([0, 0])})
    assert not check_plan(plan, problem).ok
