"""The vector form against the single one, and both in Gymnasium's own wrappers."""

from functools import partial

import gymnasium
import numpy as np
import pytest
from gymnasium.vector import AsyncVectorEnv, SyncVectorEnv
from reference.small_rings import ring_problem

from go_rl.core import Status
from go_rl.envs import PlanEnv, PlanVectorEnv

CHAIN = ring_problem(4, [(0, 1), (1, 2), (2, 3)], 2)
FORMS = ("node", "fix", "sample")


def test_make_vec_prices_a_batch():
    env = gymnasium.make_vec("go_rl/Partition-v1", num_envs=3, problem=CHAIN, action="fix")
    assert isinstance(env, PlanVectorEnv)
    env.reset(seed=0)
    plans = np.array([[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0]])
    _, rewards, terminated, truncated, infos = env.step(plans)
    assert infos["seconds"].tolist() == [2.0, 3.0, 4.0]
    assert infos["device"].tolist() == plans.tolist()
    assert rewards == pytest.approx(infos["reference_seconds"] / [2.0, 3.0, 4.0])
    assert terminated.all()
    assert not truncated.any()


def test_an_episode_that_fails_starts_again_while_others_go_on():
    env = PlanVectorEnv(2, problem=CHAIN)
    env.reset(seed=0)
    env.step(np.array([0, 0]))
    _, rewards, terminated, _, infos = env.step(np.array([1, 0]))
    assert not terminated.any()
    _, rewards, terminated, _, infos = env.step(np.array([0, 1]))
    assert (rewards.tolist(), terminated.tolist()) == ([-10.0, 0.0], [True, False])
    assert infos["status"].tolist() == [Status.ILLEGAL, None]
    assert infos["node"].tolist() == [-1, 3]
    observed, rewards, terminated, _, infos = env.step(np.array([1, 1]))
    assert (rewards[0], terminated.tolist()) == (0.0, [False, True])
    assert infos["status"].tolist() == [None, Status.OK]
    assert infos["node"].tolist() == [0, -1]
    assert observed["nodes"].shape[0] == 2


@pytest.mark.parametrize("asynchronous", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_in_gymnasiums_vector_wrappers(asynchronous):
    """Spawned, not forked: JAX's threads may be running."""
    makers = [partial(PlanEnv, problem=CHAIN, action="fix")] * 2
    env = AsyncVectorEnv(makers, context="spawn") if asynchronous else SyncVectorEnv(makers)
    env.reset(seed=3)
    _, rewards, terminated, _, infos = env.step(np.array([[0, 0, 1, 1], [0, 0, 0, 0]]))
    assert rewards[0] == 2 * rewards[1] > 0
    assert terminated.all()
    assert infos["seconds"].tolist() == [2.0, 4.0]
    env.close()
