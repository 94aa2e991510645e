"""Searches that teach the critic of a step policy."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from policy.tiny import TINY, tiny_makespan_agent, two_chains

from go_rl.core import CheckpointError, TrainingError
from go_rl.policy.learn.config import CriticConfig, MakespanTrainConfig, PPOConfig, SearchConfig
from go_rl.policy.learn.critic.searches import Search, search
from go_rl.policy.learn.critic.teaching import searched
from go_rl.policy.learn.pretrain import pretrain
from go_rl.policy.learn.problems.makespan import MakespanProblems

SMALL = SearchConfig(samples=48, batch=8)
RUN = MakespanTrainConfig(
    further=("deep-autoencoder-training",),
    hardware=("p100x2",),
    validation_hardware=("p100x2",),
    max_nodes=250,
    updates=1,
    problems=1,
    samples=8,
    policy=TINY,
    searches=SearchConfig(samples=16, batch=8),
    critic=CriticConfig(steps=2, problems=2, decisions=4),
    ppo=PPOConfig(epochs=1),
)


@cache
def found() -> Search:
    """What the search finds there."""
    return search(tiny_makespan_agent(), two_chains(), SMALL, 0)


def test_a_search_keeps_every_decision_and_what_it_earns():
    """The best: each chain on a device of its own, half the time of one device."""
    mix = found().mixes["placement"]
    assert mix.shape == (SMALL.samples, tiny_makespan_agent().policy.decision_widths["placement"])
    assert found().reward.shape == (SMALL.samples,)
    assert found().reward.max() == pytest.approx(-np.sqrt(0.5))


def test_the_same_seed_searches_the_same():
    again = search(tiny_makespan_agent(), two_chains(), SMALL, 0)
    np.testing.assert_array_equal(again.mixes["placement"], found().mixes["placement"])
    np.testing.assert_array_equal(again.reward, found().reward)


def test_searches_travel_through_a_file(tmp_path):
    path = tmp_path / "search.npz"
    found().save(path)
    read = Search.load(path)
    np.testing.assert_array_equal(read.mixes["placement"], found().mixes["placement"])
    np.testing.assert_array_equal(read.reward, found().reward)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(CheckpointError, match=r"search\.npz"):
        Search.load(path)


def test_a_search_of_another_version_is_refused(tmp_path):
    key = ("deep-autoencoder-training", "p100x2", ("placement",))
    old = Search({"placement": np.zeros((8, 3), np.float32)}, -np.ones(8))
    old.save(tmp_path / "deep-autoencoder-training--p100x2--placement.npz")
    with pytest.raises(CheckpointError, match=r"decisions of \{'placement': 3\} numbers"):
        searched(tiny_makespan_agent(), [key], SMALL, tmp_path, print)


def test_large_graphs_are_taught_on_fewer_packages_and_tasks():
    every = ("placement", "schedule", "fusion")
    further = ("deep-autoencoder-training", "rnnlm-4-layers-training", "gnmt-4-layers-training")
    keys = MakespanProblems(replace(RUN, hardware=("p100x2", "p100x4"), further=further)).taught()
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
    first = pretrain(RUN, tmp_path, lambda _, sentence: said.append(sentence))
    searches = [s for s in said if "searched" in s]
    assert len(searches) == len(list((tmp_path / "searches").glob("*.npz"))) > 0
    assert first.card["validation"][0][0] == 0
    for path in (tmp_path / "checkpoints").glob("*"):
        path.rename(tmp_path / f"away-{path.name}")
    said.clear()
    pretrain(RUN, tmp_path, lambda _, sentence: said.append(sentence))
    assert not [s for s in said if "searched" in s]
    for path in (tmp_path / "checkpoints").glob("*"):
        path.rename(tmp_path / f"gone-{path.name}")
    with pytest.raises(CheckpointError, match="another configuration"):
        pretrain(replace(RUN, seed=5), tmp_path)


def test_bad_settings_are_named():
    with pytest.raises(TrainingError, match="searches: batch must be >= 2, not 1"):
        SearchConfig(batch=1)
    with pytest.raises(TrainingError, match="critic: learning_rate must be > 0"):
        CriticConfig(learning_rate=0.0)
    with pytest.raises(TrainingError, match="critic: decisions must be >= 1, not 0"):
        CriticConfig(decisions=0)
    with pytest.raises(TrainingError, match="critic: weight_decay must be >= 0"):
        CriticConfig(weight_decay=-1.0)
