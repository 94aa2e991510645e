"""What all five environments owe Gymnasium: its checker, masks to sample from, one autoreset."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import RecordEpisodeStatistics
from reference.small_rings import random_ring
from reference.step_problems import random_step

import go_rl.envs
from go_rl.core import TASKS, Problem, Status

NAMES = {
    "Partition": None,
    "Placement": ("placement",),
    "Schedule": ("schedule",),
    "Fusion": ("fusion",),
    "Joint": TASKS,
}
"""Every environment that `go_rl.envs` registers, with the tasks it decides on a makespan."""


def problems(name: str, seed: int) -> list[Problem]:
    """Two random problems of an environment with equally many devices."""
    tasks = NAMES[name]
    made = (
        random_ring(s, "default") if tasks is None else random_step(s, tasks=tasks)
        for s in range(1000 * seed, 1000 * (seed + 1))
    )
    first = next(made)
    alike = (p for p in made if p.hardware.num_chips == first.hardware.num_chips)
    return [first, next(alike)]


def make(name: str, seed: int, **fields: Any) -> gymnasium.Env:
    """The environment on random problems, as a user makes it."""
    return gymnasium.make(f"go_rl/{name}-v1", problem=problems(name, seed), **fields)


def play_masked(env: gymnasium.Env, seed: int) -> tuple[float, dict]:
    """An episode of the README's loop; the last reward and info."""
    _, info = env.reset(seed=seed)
    done = False
    while not done:
        action = env.action_space.sample(mask=info["action_mask"])
        _, reward, done, _, info = env.step(action)
    return float(reward), info


def sample(env: Any, infos: dict) -> np.ndarray:
    """Masked actions of a vector environment; Gymnasium batches some spaces as ones without
    masks."""
    return np.array([env.single_action_space.sample(mask=mask) for mask in infos["action_mask"]])


def test_every_registered_environment_is_tested():
    assert go_rl.envs.PlanEnv  # importing it registers them
    found = {spec.name for spec in gymnasium.registry.values() if spec.namespace == "go_rl"}
    assert found == set(NAMES)


def check_seeds(name: str, seeds: range) -> None:
    for seed in seeds:
        form = "dict" if seed % 2 else "graph"
        check_env(make(name, seed, observation=form).unwrapped)


@pytest.mark.parametrize("name", NAMES)
def test_gymnasiums_checker_passes_on_random_problems(name):
    check_seeds(name, range(6))


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_gymnasiums_checker_passes_on_many_random_problems(name):
    check_seeds(name, range(6, 200))


def play_many(name: str, seeds: range, episodes: int) -> None:
    """Every episode ends, with a reward and a status; none ends on a masked choice."""
    for seed in seeds:
        env = make(name, seed)
        env.action_space.seed(seed)
        for episode in range(episodes):
            reward, info = play_masked(env, episode)
            assert np.isfinite(reward)
            assert isinstance(info["status"], Status)
            if name != "Partition":  # where the solver may see too late that nothing is left
                assert info["status"] is not Status.ILLEGAL


@pytest.mark.parametrize("name", NAMES)
def test_a_masked_random_agent_finishes_its_episodes(name):
    play_many(name, range(8), 5)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_masked_random_agent_finishes_a_thousand_episodes(name):
    play_many(name, range(8, 108), 10)


@pytest.mark.parametrize("name", NAMES)
def test_masks_of_the_end_can_be_sampled(name):
    env = make(name, 1)
    _, info = play_masked(env, 0)
    masks = info["action_mask"]
    for mask in masks if isinstance(masks, tuple) else (masks,):
        assert mask.dtype == np.int8
        assert mask.all()
    assert env.action_space.sample(mask=masks) in env.action_space
    assert env.unwrapped.action_masks().all()


@pytest.mark.parametrize("name", NAMES)
def test_native_and_sync_follow_the_same_trajectory(name):
    """Masked random agents, episodes that end at different times and start in the next step."""
    fields = {"problem": problems(name, 3)}
    pair = [
        gymnasium.make_vec(f"go_rl/{name}-v1", 4, mode, **fields)
        for mode in ("vector_entry_point", "sync")
    ]
    assert all(env.metadata["autoreset_mode"] is AutoresetMode.NEXT_STEP for env in pair)
    results: list[Any] = [env.reset(seed=17) for env in pair]
    for env in pair:
        env.single_action_space.seed(5)
    ended, episodes = np.zeros(4, np.bool_), 0
    for _ in range(60):
        assert data_equivalence(*results, exact=True)
        actions = [sample(env, result[-1]) for env, result in zip(pair, results, strict=True)]
        assert (actions[0] == actions[1]).all()
        results = [env.step(action) for env, action in zip(pair, actions, strict=True)]
        assert not (results[0][2] & ended).any()
        assert not results[0][1][ended].any()
        ended = results[0][2]
        episodes += int(ended.sum())
    assert episodes > 8


def test_gymnasiums_statistics_count_the_native_form():
    env = RecordEpisodeStatistics(
        gymnasium.make_vec("go_rl/Joint-v1", 2, problem=problems("Joint", 3))
    )
    _, infos = env.reset(seed=0)
    steps = np.zeros(2)
    while "episode" not in infos:
        _, rewards, ended, _, infos = env.step(sample(env, infos))
        steps += 1
    assert infos["episode"]["l"][ended].tolist() == steps[ended].tolist()
    assert infos["episode"]["r"][ended] == pytest.approx(rewards[ended])
