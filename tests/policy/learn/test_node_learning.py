"""The node policy, GO's own, learns, trains and travels."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from policy.tiny import SMALL_LESSON, TINY_NODES
from reference.step_problems import step_problem

from go_rl.core import Budget, OpKind, Problem
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.nodes.nodes_plans import NodesPlans
from go_rl.verify.check_plan import check_plan

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
