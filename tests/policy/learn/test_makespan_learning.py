"""Makespan policies as optimizers: conformance, the toy gate, exact samples and resume."""

import numpy as np
import pytest
from objectives.conformance import OptimizerConformance, under_test
from policy.tiny import SMALL_LESSON
from policy.tiny import tiny_makespan_agent as tiny
from reference.step_problems import step_problem

from go_rl.core import DECISIONS, Budget, Objective, OpKind, Problem
from go_rl.envs.rewards import ROOT
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.learn.advantage import top_advantage
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


def test_only_the_decisions_asked_are_decided():
    for decided in (("placement",), ("schedule",), ("fusion",), DECISIONS):
        problem = chains(decisions=decided)
        decoder = DispatchPlans(MakespanWorkspace(problem))
        plans = decoder.sample(tiny(), "plan", np.ones(8, np.float32), 0)[1].priced.decisions
        assert (plans.priority is not None) == ("schedule" in decided)
        assert (plans.kernel_leader is not None) == ("fusion" in decided)
        if "placement" not in decided:
            assert not plans.device.any()


def test_rewards_are_those_of_go():
    problem = chains()
    workspace = MakespanWorkspace(problem)
    apart = np.array([[0, 1] * 4, [0] * 8])
    seconds = workspace.evaluate(workspace.decisions(apart)).seconds
    rewards = ROOT(seconds, workspace.reference_seconds)
    assert rewards == pytest.approx([-np.sqrt(0.5), -1.0])
    full = step_problem([1.0, 1.0], [(0, 1, 9.0)], 2, output_bytes=[9.0, 0.0], memory_bytes=5.0,
                        decisions=("placement", "fusion"), kinds=[OpKind.OTHER] * 2)  # fmt: skip
    workspace = MakespanWorkspace(full)
    priced = workspace.evaluate(workspace.decisions(np.zeros((1, 2), np.int16)))
    assert ROOT(priced.seconds, workspace.reference_seconds).tolist() == [ROOT.failure]


def test_only_the_best_plans_teach():
    rewards = np.array([-1.0, -0.5, -10.0, -0.8, -0.9])
    found = top_advantage(rewards, 0.4)
    assert (found > 0).tolist() == [False, True, False, True, False]
    assert found[1] > found[3]
    assert not top_advantage(np.full(4, -1.0), 0.3).any()
