"""Makespan policies as optimizers: conformance, the toy gate, exact samples and resume."""

import pytest
from objectives.conformance import OptimizerConformance, under_test
from policy.tiny import SMALL_LESSON
from policy.tiny import tiny_makespan_agent as tiny
from reference.step_problems import step_problem

from go_rl.core import Budget, Objective, OpKind, Problem
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.policy_search import PolicySearch
from go_rl.verify.check_plan import check_plan


def chains(pieces: int = 4, decisions: tuple[str, ...] = ("placement",)) -> Problem:
    """Two independent chains of matrix products on two devices; transfers are expensive."""
    seconds = [3.0] * (2 * pieces)
    edges = [(i, i + 2, 2.0) for i in range(2 * (pieces - 1))]
    return step_problem(
        seconds, edges, 2, kinds=[OpKind.MATMUL] * len(seconds), decisions=decisions
    )


class TestConformance(OptimizerConformance):
    objective = Objective.MAKESPAN
    slack_seconds = 90.0
    which = under_test(lambda: PolicySearch(tiny()), lambda: FineTuned(tiny(), config=SMALL_LESSON))


@pytest.mark.slow
def test_the_toy_gate():
    """Each chain on a device of its own: 12 s instead of 24."""
    problem = chains()
    assert PolicySearch(tiny()).optimize(problem, Budget(samples=1), 0).value == 24.0
    plan = FineTuned(tiny(), config=SMALL_LESSON).optimize(problem, Budget(samples=120), 0)
    assert plan.value == pytest.approx(12.0)
    assert plan.optimal
    assert check_plan(plan, problem).ok


@pytest.mark.parametrize("samples", [1, 2, 21])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.usefixtures("endless")
def test_samples_are_counted_exactly_and_the_default_is_kept(samples, which):
    search = (PolicySearch(tiny()), FineTuned(tiny(), config=SMALL_LESSON))[which]
    plan = search.optimize(chains(), Budget(samples=samples), 3)
    assert plan.samples == samples
    assert plan.value <= 24.0
    assert plan.curve[0].samples == 1
