"""Makespan policies as optimizers: conformance, the toy gate, exact samples and resume."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from objectives.conformance import OptimizerConformance, under_test
from policy.tiny import SMALL_LESSON, TINY_DISPATCH, TINY_NODES
from policy.tiny import tiny_makespan_agent as tiny
from reference.step_problems import step_problem

from go_rl.core import DECISIONS, Budget, CheckpointError, Objective, OpKind, Problem
from go_rl.envs.rewards import ROOT
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.agent import new_agent
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.learn.advantage import top_advantage
from go_rl.policy.learn.collect import Credit, TrainingCase, collect
from go_rl.policy.learn.config import NodesTrainConfig, PPOConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.learn.ppo import gradient, judge, new_learner, update
from go_rl.policy.learn.pretrain import pretrain
from go_rl.policy.nodes.nodes_plans import NodesPlans
from go_rl.policy.policy_search import PolicySearch
from go_rl.policy.weights import Weights, load_weights, save_weights
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


def test_an_update_starts_from_ratio_one_and_moves_the_weights():
    decoder = NodesPlans(MakespanWorkspace(chains()))
    case, nodes = TrainingCase("chains", decoder), new_agent(TINY_NODES, 0)
    batches = (collect(nodes, case, {"plan": 8}, Credit(0.3), seed).batch for seed in range(20))
    batch = next(found for found in batches if found.groups["plan"].advantage.any())
    config = SMALL_LESSON.ppo
    policy, params = nodes.policy, nodes.params
    old = judge(policy, params, batch)
    _, first = gradient(policy, config, params, batch, old)
    # Two surrogates, graph-level and unit-level, each the mean advantage at ratio one.
    surrogates = float(first.loss + config.order_entropy * first.entropy)
    assert surrogates == pytest.approx(-2 * float(batch.groups["plan"].advantage.mean()), abs=1e-3)
    learner, metrics = update(policy, config, new_learner(params, config), [batch])
    assert all(np.isfinite(float(x)) for x in metrics)
    moved = jax.tree.map(lambda a, b: bool(jnp.any(a != b)), params, learner.params)
    assert any(jax.tree.leaves(moved))


def test_only_the_best_plans_teach():
    rewards = np.array([-1.0, -0.5, -10.0, -0.8, -0.9])
    found = top_advantage(rewards, 0.4)
    assert (found > 0).tolist() == [False, True, False, True, False]
    assert found[1] > found[3]
    assert not top_advantage(np.full(4, -1.0), 0.3).any()


RUN = NodesTrainConfig(
    validation="train", max_nodes=80, updates=4, problems=2, samples=8, hardware=("p100x2",),
    decide=(("placement", "schedule", "fusion"),),
    validation_hardware=("p100x2",), further=(), policy=TINY_NODES,
    validate_every=2, checkpoint_every=2, ppo=PPOConfig(epochs=1, decay_updates=4),
)  # fmt: skip


def test_a_run_cut_off_and_resumed_is_the_run(tmp_path):
    whole = pretrain(RUN, tmp_path / "whole")
    pretrain(RUN, tmp_path / "cut", stop_after=2)
    resumed = pretrain(RUN, tmp_path / "cut")
    assert whole.card["validation"] == resumed.card["validation"]
    for a, b in zip(*(jax.tree.leaves(w.agent.params) for w in (whole, resumed)), strict=True):
        assert np.array_equal(a, b)
    other = NodesTrainConfig(**{**vars(RUN), "samples": 9})
    with pytest.raises(CheckpointError, match="another configuration"):
        pretrain(other, tmp_path / "cut")


def test_weights_travel_through_a_file_and_kinds_are_not_mixed_up(tmp_path):
    save_weights(Weights(tiny(), "toy-1.0", {"zoo": "zoo-1"}), tmp_path / "toy.npz")
    found = load_weights(tmp_path / "toy.npz")
    assert (found.name, found.agent.config) == ("toy-1.0", TINY_DISPATCH)
    for a, b in zip(*(jax.tree.leaves(x.params) for x in (tiny(), found.agent)), strict=True):
        assert np.array_equal(a, b)
    with pytest.raises(CheckpointError, match="for objective ring, not makespan"):
        load_weights("partition-1.1", Objective.MAKESPAN)
