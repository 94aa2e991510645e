"""The gate before any pretraining: on a toy graph of known optimum, a policy that starts from
nothing comes within 5 % of it through the solver, sample after sample."""

import numpy as np
import pytest
from policy.tiny import tiny_agent
from reference.small_rings import ring_problem

from go_rl.core import Budget, Problem
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.policy.agent import Agent
from go_rl.policy.learn.config import FineTuneConfig, PPOConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.ring.ring_plans import RingPlans
from go_rl.policy.ring.ring_policy import PLACEMENT


def two_chains() -> Problem:
    """Two chains of eight equal nodes on four chips, hardly any traffic: 4 s a chip."""
    return ring_problem(16, [(i, i + 2) for i in range(14)], 4, edge_bytes=0.01)


def throughputs(agent: Agent, problem: Problem) -> np.ndarray:
    """[16] throughputs of the agent's samples as a share of the optimum's; first the likeliest."""
    noise = np.ones(16, np.float32)
    noise[0] = 0.0
    decoder = RingPlans(problem, RingWorkspace(problem))
    return OPTIMUM / decoder.sample(agent, PLACEMENT, noise, 99)[1].priced.seconds


OPTIMUM = 4.0
ROUNDS = 24
"""A policy learns in rounds until it is through: how many it needs depends on the processor, whose
rounding decides which draws are made."""


@pytest.mark.slow
def test_a_policy_from_scratch_comes_within_five_percent():
    learner = PPOConfig(learning_rate=6e-3, epochs=4)
    problem, config = two_chains(), FineTuneConfig(16, learner, first=16)
    agent = tiny_agent()
    assert throughputs(agent, problem).mean() < 0.93
    for seed in range(ROUNDS):
        plan, agent = FineTuned(agent, config).learn(problem, Budget(samples=112), seed)
        after = throughputs(agent, problem)
        if through := min(after[0], after.mean(), OPTIMUM / plan.value) >= 0.95:
            break
    assert through
    assert after.max() <= 1.0 + 1e-9
