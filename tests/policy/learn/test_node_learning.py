"""Policies learn: the toy gate, nodes of a ring, placements of makespan."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from objectives.conformance import OptimizerConformance, under_test
from policy.tiny import SMALL_LESSON, TINY, TINY_NODES, lattice, tiny_makespan_agent
from policy.tiny import two_chains as independent_chains
from reference.step_problems import step_problem

from go_rl.core import Budget, Objective, OpKind, Problem
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.learn.config import FineTuneConfig, PPOConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.nodes.nodes_plans import NodesPlans
from go_rl.policy.policy_search import PolicySearch
from go_rl.policy.ring.ring_plans import RingPlans
from go_rl.policy.ring.ring_policy import PLACEMENT
from go_rl.verify.check_plan import check_plan

ROUNDS = 3
"""A policy learns in rounds until it is through: how many it needs depends on the processor, whose
rounding decides which draws are made."""


@pytest.mark.slow
def test_a_policy_from_scratch_learns_where_to_cut():
    problem = lattice()

    def seconds(agent: Agent) -> np.ndarray:
        """[16] seconds of the agent's samples, first the likeliest."""
        decoder, noise = RingPlans(problem, RingWorkspace(problem)), np.ones(16, np.float32)
        noise[0] = 0.0
        return decoder.sample(agent, PLACEMENT, noise, 99)[1].priced.seconds

    config = FineTuneConfig(64, PPOConfig(learning_rate=1e-3, epochs=4), first=16, top=1.0)
    agent = new_agent(replace(TINY, sage_layers=4, hidden=16, decoder_width=16, iterations=1), 0)
    before = seconds(agent).mean()
    for seed in range(ROUNDS):
        plan, agent = FineTuned(agent, config).learn(problem, Budget(samples=40 * 64), seed)
        if through := seconds(agent).mean() <= 0.8 * before:
            break
    assert through
    assert plan.value <= seconds(agent).min()


BATCH = SMALL_LESSON.batch
LEARN = replace(SMALL_LESSON, top=1.0, remembered=8)


@cache
def tiny() -> Agent:
    """Untrained."""
    return new_agent(TINY_NODES, 0)


@cache
def forgetful() -> Agent:
    """Untrained; every draw starts anew, so that it shows what the policy itself has learned."""
    return new_agent(replace(TINY_NODES, carry=False), 0)


@cache
def chains(here: float, there: float, pieces: int = 5) -> Problem:
    """Two chains of matrix products on two devices: a piece takes ``here`` seconds on its chain's
    own device and ``there`` on the other; a transfer takes one second."""
    first = [here, there] * pieces
    edges = [(i, i + 2, 1.0) for i in range(2 * (pieces - 1))]
    kinds = [OpKind.MATMUL] * (2 * pieces)
    return step_problem([first, first[::-1]], edges, 2, kinds=kinds, decisions=("placement",))


@pytest.mark.slow
def test_each_chain_finds_its_own_device():
    """5 s instead of 20."""
    problem = chains(1.0, 3.0)
    plan = FineTuned(tiny(), config=LEARN).optimize(problem, Budget(samples=320), 0)
    assert plan.value == 5.0
    assert check_plan(plan, problem).ok


@pytest.mark.slow
def test_whatever_is_drawn_in_the_end_is_better():
    problem = chains(1.0, 3.0)
    _, learned = FineTuned(forgetful(), config=LEARN).learn(problem, Budget(samples=640), 0)
    decoder, ones = NodesPlans(makespan_workspace(problem)), np.ones(BATCH, np.float32)
    before, after = (
        decoder.sample(agent, "plan", ones, 9)[1].priced.seconds for agent in (forgetful(), learned)
    )
    assert before.mean() > 10.0
    assert after.mean() < 7.0


class TestConformance(OptimizerConformance):
    objective = Objective.MAKESPAN
    slack_seconds = 90.0
    which = under_test(
        lambda: PolicySearch(tiny_makespan_agent()),
        lambda: FineTuned(tiny_makespan_agent(), config=SMALL_LESSON),
    )


@pytest.mark.slow
def test_the_toy_gate():
    """Each chain on a device of its own: 12 s instead of 24."""
    problem = independent_chains().workspace.problem
    assert PolicySearch(tiny_makespan_agent()).optimize(problem, Budget(samples=1), 0).value == 24.0
    plan = FineTuned(tiny_makespan_agent(), config=SMALL_LESSON).optimize(
        problem, Budget(samples=120), 0
    )
    assert plan.value == pytest.approx(12.0)
    assert plan.optimal
    assert check_plan(plan, problem).ok


@pytest.mark.parametrize("samples", [1, 2, 21])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.usefixtures("endless")
def test_samples_are_counted_exactly_and_the_default_is_kept(samples, which):
    search = (
        PolicySearch(tiny_makespan_agent()),
        FineTuned(tiny_makespan_agent(), config=SMALL_LESSON),
    )[which]
    plan = search.optimize(independent_chains().workspace.problem, Budget(samples=samples), 3)
    assert plan.samples == samples
    assert plan.value <= 24.0
    assert plan.curve[0].samples == 1
