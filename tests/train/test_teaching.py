"""Searches that teach a step policy, and the policy that imitates them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import jax
import numpy as np
import pytest
from policy.tiny import TINY
from reference.step_problems import step_problem

from go_rl.core import CheckpointError, OpKind, TrainingError
from go_rl.envs.step_rewards import step_rewards
from go_rl.policy.step_agent import StepAgent, new_step_agent
from go_rl.policy.step_decisions import StepDecoder
from go_rl.search.step_workspace import StepWorkspace
from go_rl.train.config import EliteConfig, PPOConfig, StepTrainConfig
from go_rl.train.elites import Elites, find_elites
from go_rl.train.imitation import Imitator, imitate, lesson, likelihood_loss, transformation
from go_rl.train.step_pretrain import pretrain_step
from go_rl.train.step_problems import StepProblems

SMALL = EliteConfig(samples=48, batch=8, kept=4, epochs=2, learning_rate=0.01)
RUN = StepTrainConfig(
    further=("deep-autoencoder-training",),
    packages=("p100x2",),
    validation_packages=("p100x2",),
    max_nodes=250,
    updates=1,
    graphs=1,
    samples=4,
    policy=TINY,
    elites=EliteConfig(samples=16, batch=8, kept=2, epochs=1),
    ppo=PPOConfig(epochs=1),
)


@cache
def tiny() -> StepAgent:
    """Untrained."""
    return new_step_agent(TINY, 0)


@cache
def decoder() -> StepDecoder:
    """Two independent chains of matrix products on two devices; transfers are dear."""
    edges = [(i, i + 2, 2.0) for i in range(6)]
    problem = step_problem([3.0] * 8, edges, 2, kinds=[OpKind.MATMUL] * 8, tasks=("placement",))
    return StepDecoder(StepWorkspace(problem))


@cache
def elites() -> Elites:
    """What the search finds there."""
    return find_elites(tiny(), decoder(), SMALL, 0)


def test_elites_are_the_best_drawn_and_earn_what_they_say():
    found = elites()
    assert len(found.reward) == SMALL.kept
    assert (np.diff(found.reward) <= 0).all()
    assert found.reward[0] == pytest.approx(-np.sqrt(0.5))  # each chain on a device of its own
    workspace = decoder().workspace
    again = step_rewards(workspace, workspace.price(decoder().decisions(found.actions)))
    np.testing.assert_allclose(again, found.reward)


def test_the_same_seed_finds_the_same_elites():
    again = find_elites(tiny(), decoder(), SMALL, 0)
    for mine, other in zip(jax.tree.leaves(elites().actions), jax.tree.leaves(again.actions),
                           strict=True):  # fmt: skip
        np.testing.assert_array_equal(mine, other)


def test_the_loss_is_minus_the_weighted_log_density():
    batch = lesson(decoder().padded, elites())
    weight = np.exp((elites().reward - elites().reward[0]) / 0.1)
    weight /= weight.sum()
    mix = elites().actions["placement"].mix
    spread = np.where(np.arange(mix.shape[1]) < 16, 1.5, 1.0)  # untrained: mean 0
    density = (-0.5 * np.square(mix / spread) - np.log(spread)).mean(axis=1)
    loss = likelihood_loss(tiny().policy, tiny().params, batch)
    assert float(loss) == pytest.approx(-(weight * density).sum(), rel=1e-4)


def test_imitation_comes_nearer_to_the_elites():
    batch, config, agent = lesson(decoder().padded, elites()), SMALL, tiny()
    imitator = Imitator(agent.params, transformation(config, 60).init(agent.params))
    losses = []
    for _ in range(60):
        imitator, loss = imitate(agent.policy, config, 60, imitator, batch)
        losses.append(float(loss))
    assert losses[-1] < losses[0] - 0.1


def test_elites_travel_through_a_file(tmp_path):
    path = tmp_path / "elites.npz"
    elites().save(path)
    found = Elites.load(path)
    np.testing.assert_array_equal(found.reward, elites().reward)
    np.testing.assert_array_equal(
        found.actions["placement"].scores, elites().actions["placement"].scores
    )
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CheckpointError, match=r"elites\.npz"):
        Elites.load(path)


def test_large_graphs_are_taught_on_fewer_packages_and_tasks():
    every = ("placement", "schedule", "fusion")
    further = ("deep-autoencoder-training", "rnnlm-4-layers-training", "gnmt-4-layers-training")
    keys = StepProblems(replace(RUN, packages=("p100x2", "p100x4"), further=further)).taught()
    assert [key for key in keys if key[0] in further] == [
        ("deep-autoencoder-training", "p100x2", ("placement",)),
        ("deep-autoencoder-training", "p100x2", every),
        ("deep-autoencoder-training", "p100x4", ("placement",)),
        ("deep-autoencoder-training", "p100x4", every),
        ("rnnlm-4-layers-training", "p100x2", ("placement",)),
        ("rnnlm-4-layers-training", "p100x4", ("placement",)),
        ("rnnlm-4-layers-training", "p100x4", every),
        ("gnmt-4-layers-training", "p100x2", ("placement",)),
    ]


def test_searches_are_made_once_and_kept_apart_by_configuration(tmp_path):
    said: list[str] = []
    first = pretrain_step(RUN, tmp_path, lambda _, sentence: said.append(sentence))
    searches = [s for s in said if "searched" in s]
    assert len(searches) == len(list((tmp_path / "elites").glob("*.npz"))) > 0
    assert first.card["validation"][0][0] == 0
    for path in (tmp_path / "checkpoints").glob("*"):
        path.rename(tmp_path / f"away-{path.name}")
    said.clear()
    pretrain_step(RUN, tmp_path, lambda _, sentence: said.append(sentence))
    assert not [s for s in said if "searched" in s]
    for path in (tmp_path / "checkpoints").glob("*"):
        path.rename(tmp_path / f"gone-{path.name}")
    with pytest.raises(CheckpointError, match="another configuration"):
        pretrain_step(replace(RUN, seed=5), tmp_path)


def test_bad_settings_are_named():
    with pytest.raises(TrainingError, match="kept must be >= 2, not 1"):
        EliteConfig(kept=1)
    with pytest.raises(TrainingError, match="learning_rate must be > 0"):
        EliteConfig(learning_rate=0.0)
