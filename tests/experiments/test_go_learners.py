"""The rival ways to learn, and stacks of passes: exact where they coincide with the library."""

from __future__ import annotations

from dataclasses import replace

import jax
import numpy as np
import pytest
from policy.tiny import TINY_NODES
from reference.step_problems import step_problem

from experiments.placement.go_learners import (
    Compiler,
    GroupLearner,
    Policy,
    Search,
    SequentialLearner,
    learn,
    restricted,
)
from go_rl.core import DECISIONS, Budget, OpKind, Problem, Progress
from go_rl.objectives.methods import Composed
from go_rl.policy.agent import new_agent
from go_rl.policy.learn.config import FINE_TUNING
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.verify.check_plan import check_plan

SMALL = replace(FINE_TUNING["nodes"], batch=6, first=6)
"""Equal batches: nothing is compiled twice."""
ATOM = replace(TINY_NODES, sage_layers=0, attention_layers=0, iterations=1, carry=False)
"""Compiles fast."""


@pytest.fixture(scope="module")
def agent():
    return new_agent(ATOM, 0)


def branches(decisions: tuple[str, ...] = DECISIONS) -> Problem:
    """Node 0 feeds two chains, 1 2 3 and 4 5 6, of products and what may join them; 7 reads both.

    Every tensor is of one byte, which takes half a second on a link."""
    kinds = [OpKind.MATMUL, *(OpKind.MATMUL, OpKind.ELEMENTWISE, OpKind.MOVEMENT) * 2, OpKind.OTHER]
    pairs = [(0, 1), (1, 2), (2, 3), (0, 4), (4, 5), (5, 6), (3, 7), (6, 7)]
    edges = [(u, v, 1.0) for u, v in pairs]
    seconds = [1.0, 3.0, 1.0, 1.0, 3.0, 1.0, 1.0, 1.0]
    return step_problem(seconds, edges, 2, kinds=kinds, bandwidth=2.0, decisions=decisions)


def test_one_policy_for_all_is_the_librarys_own(agent):
    problem, budget = branches(("placement",)), Budget(samples=27)
    mine = GroupLearner((Policy(("placement",), agent),), SMALL).optimize(problem, budget, 5)
    own = FineTuned(agent, config=SMALL).optimize(problem, budget, 5)
    assert [(c.samples, c.seconds) for c in mine.curve] == [
        (c.samples, c.seconds) for c in own.curve
    ]
    np.testing.assert_array_equal(mine.device, own.device)


def test_separate_policies_count_samples_and_learn_each_its_own_task(agent):
    problem = branches()
    policies = tuple(Policy((task,), agent) for task in DECISIONS)
    search = Search(problem, Progress(Budget(samples=30)))
    after = learn(policies, SMALL, search.workspace.reference, search, 0)
    plan = search.plan("separate", 0)
    assert plan.samples == 30
    assert check_plan(plan, problem).ok
    for before, now in zip(policies, after, strict=True):
        for task in DECISIONS:
            was, is_ = (p.agent.params["params"][f"decoders_{task}"] for p in (before, now))
            moved = any(
                not np.array_equal(a, b)
                for a, b in zip(jax.tree.leaves(was), jax.tree.leaves(is_), strict=True)
            )
            assert moved == (task in now.decisions)


def test_decisions_in_turn_keep_what_was_found_before(agent):
    problem = branches()
    learner = SequentialLearner(agent, SMALL)
    plan = learner.optimize(problem, Budget(samples=31), 0)
    assert plan.samples == 31
    assert check_plan(plan, problem).ok
    first = FineTuned(agent, config=SMALL).optimize(
        restricted(problem, ("placement",)), Budget(samples=10), 0
    )
    np.testing.assert_array_equal(plan.device, first.device)
    second = FineTuned(agent, config=SMALL).optimize(
        restricted(problem, ("schedule",), first.device), Budget(samples=10), 0
    )
    assert plan.value <= second.value <= first.value
    if second.priority is not None:
        np.testing.assert_array_equal(plan.priority, second.priority)
    with pytest.raises(ValueError, match="at least 3 samples"):
        learner.optimize(problem, Budget(seconds=1.0), 0)


def test_without_a_task_a_stack_keeps_its_default():
    """One device, in order, unfused: twelve seconds. Fusing saves nothing, for kernels cost what
    their nodes cost together; two devices run the branches side by side."""
    budget = Budget(samples=16)
    alone = restricted(branches(), ("schedule",), np.zeros(8, np.int64))
    assert Compiler().optimize(alone, budget, 0).value == 12.0
    assert Compiler().optimize(alone, budget, 0).fusion_group is None
    fused = restricted(branches(), ("fusion",), np.zeros(8, np.int64))
    plan = Compiler().optimize(fused, budget, 0)
    assert plan.priority is None
    assert plan.fusion_group.tolist() == [0, 1, 1, 1, 4, 4, 4, 7]
    assert plan.samples == 1


def test_the_best_stack_is_no_worse_than_this_one():
    problem = branches()
    best = Composed().optimize(problem, Budget(samples=24), 0)
    assert best.value <= Compiler().optimize(problem, Budget(samples=1), 0).value
