"""GO's own form of the step policy learns, trains and travels as the other form does."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from policy.tiny import TINY
from reference.step_problems import step_problem

from go_rl.core import Budget, OpKind, Problem, TrainingError
from go_rl.objectives.makespan.workspace import step_workspace
from go_rl.policy.makespan.agent import StepAgent, new_step_agent
from go_rl.policy.makespan.decisions import step_decoder
from go_rl.policy.makespan.search import draw_steps
from go_rl.policy.makespan.weights import StepWeights, load_step_weights, save_step_weights
from go_rl.runtime.parameter_file import MANIFEST
from go_rl.train.config import PPOConfig, StepFineTuneConfig, StepTrainConfig
from go_rl.train.makespan.learning import StepFineTuned, collect_steps, top_advantage
from go_rl.train.makespan.ppo import judge_step, step_gradient, update_step
from go_rl.train.makespan.pretrain import pretrain_step
from go_rl.train.ppo import new_learner
from go_rl.verify.check_plan import check_plan

NODES = replace(TINY, step_form="nodes", attention_layers=0)
BATCH = 16
LEARN = StepFineTuneConfig(
    batch=BATCH, first=BATCH, ppo=PPOConfig(learning_rate=3e-3, epochs=4, order_entropy=1e-3)
)


@cache
def tiny() -> StepAgent:
    """Untrained."""
    return new_step_agent(NODES, 0)


@cache
def chains(here: float, there: float, pieces: int = 5) -> Problem:
    """Two chains of matrix products on two devices: a piece takes ``here`` seconds on its chain's
    own device and ``there`` on the other; a transfer takes one second."""
    first = [here, there] * pieces
    edges = [(i, i + 2, 1.0) for i in range(2 * (pieces - 1))]
    kinds = [OpKind.MATMUL] * (2 * pieces)
    return step_problem([first, first[::-1]], edges, 2, kinds=kinds, tasks=("placement",))


def test_each_chain_finds_its_own_device():
    """5 s instead of 20: not only the best plan, but whatever the policy draws in the end."""
    problem = chains(1.0, 3.0)
    plan, learned = StepFineTuned(tiny(), LEARN).learn(problem, Budget(samples=640), 0)
    assert plan.value == 5.0
    assert check_plan(plan, problem).ok
    decoder, ones = step_decoder(step_workspace(problem)), np.ones(BATCH, np.float32)
    before, after = (draw_steps(agent, decoder, ones, 9).seconds for agent in (tiny(), learned))
    assert before.mean() > 10.0
    assert after.mean() < 7.0


def test_two_equal_chains_share_the_devices_better_than_the_default():
    problem = chains(3.0, 3.0)
    plan = StepFineTuned(tiny(), LEARN).optimize(problem, Budget(samples=320), 0)
    assert step_workspace(problem).reference_seconds == 30.0
    assert plan.value <= 20.0
    assert check_plan(plan, problem).ok


def test_all_of_a_batch_teaches_by_default():
    """From the mean: -1 earned twice, -2 and the failure -10 are (3.5 - 1, ..., 3.5 - 10) / std."""
    rewards = np.array([-1.0, -1.0, -2.0, -10.0])
    assert top_advantage(rewards, 1.0) == pytest.approx((rewards + 3.5) / rewards.std())
    assert top_advantage(np.r_[np.full(99, -1.0), -10.0], 1.0).min() == -4.0
    assert not top_advantage(np.full(4, -1.0), 1.0).any()
    decoder = step_decoder(step_workspace(chains(1.0, 3.0)))
    plain, _ = collect_steps(tiny(), decoder, BATCH, 0)
    best, _ = collect_steps(tiny(), decoder, BATCH, 0, 0.3)
    assert float(plain.advantage.sum()) == pytest.approx(0.0, abs=1e-4)
    assert float(best.advantage.min()) == 0.0
    for config in (StepFineTuneConfig, StepTrainConfig):
        with pytest.raises(TrainingError, match="top must be above 0 and at most 1, not"):
            config(top=1.5)


def test_an_update_starts_from_ratio_one_and_its_gradient_is_finite():
    decoder = step_decoder(step_workspace(chains(1.0, 3.0)))
    batch, _ = collect_steps(tiny(), decoder, BATCH, 0, 0.3)
    config, policy, params = LEARN.ppo, tiny().policy, tiny().params
    old = judge_step(policy, params, batch)
    _, first = step_gradient(policy, config, params, batch, old)
    surrogate = float(first.loss + config.order_entropy * first.entropy)
    assert surrogate == pytest.approx(-float(batch.advantage.mean()), abs=1e-3)
    learner, metrics = update_step(policy, config, new_learner(params, config), [batch])
    assert all(np.isfinite(float(x)) for x in metrics)
    assert float(metrics.gradient_norm) > 0.0
    moved = jax.tree.map(lambda a, b: bool(jnp.any(a != b)), params, learner.params)
    assert any(jax.tree.leaves(moved["params"]["decoders_placement"]))
    assert not any(jax.tree.leaves(moved["params"]["decoders_fusion"]))


def test_pretraining_takes_either_form(tmp_path):
    run = StepTrainConfig(
        validation="train", max_nodes=80, updates=2, graphs=1, samples=BATCH, packages=("p100x2",),
        validation_packages=("p100x2",), further=(), tasks=(("placement",),), policy=NODES,
        validate_every=2, checkpoint_every=2, ppo=PPOConfig(epochs=1, decay_updates=4),
    )  # fmt: skip
    assert not run.searches.samples  # a critic judges orders, of which this form has none
    weights = pretrain_step(run, tmp_path)
    assert weights.agent.config == NODES
    again = load_step_weights(tmp_path / "weights.npz")
    assert again.agent.config == NODES
    pairs = zip(*(jax.tree.leaves(w.agent.params) for w in (weights, again)), strict=True)
    assert all(np.array_equal(a, b) for a, b in pairs)


def test_files_from_before_there_were_forms_hold_orders(tmp_path):
    path, shapes = tmp_path / "old.npz", jax.eval_shape(lambda: new_step_agent(TINY, 0).params)
    agent = StepAgent(TINY, jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), shapes))
    save_step_weights(StepWeights(agent, "old-1.0", {}), path)
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    manifest = json.loads(arrays[MANIFEST].tobytes().decode())
    assert manifest["config"] == asdict(TINY)
    del manifest["config"]["step_form"]
    arrays[MANIFEST] = np.frombuffer(json.dumps(manifest).encode(), np.uint8)
    np.savez(path, **arrays)
    assert load_step_weights(path).agent.config == TINY
