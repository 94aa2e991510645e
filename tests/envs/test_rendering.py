"""Pictures and text of an episode: what was decided so far, and what each device carries."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from reference.small_rings import ring_problem
from reference.step_problems import step_problem

from go_rl.core import EnvironmentUseError
from go_rl.envs import PlanEnv
from go_rl.envs.rendering import RENDER_MODES, bar_shares

IDS = {
    "Partition": None, "Placement": ("placement",), "Schedule": ("schedule",),
    "Fusion": ("fusion",), "Joint": ("placement", "schedule", "fusion"),
}  # fmt: skip


def small_problem(name: str) -> Any:
    """A chain of four nodes on a ring of three, or two independent pairs on two devices."""
    if (decided := IDS[name]) is None:
        return ring_problem(4, [(0, 1), (1, 2), (2, 3)], 3)
    return step_problem([1.0] * 4, [(0, 2, 1.0), (1, 3, 1.0)], 2, decisions=decided)


def made(name: str, mode: str, **fields: Any) -> Any:
    """The environment as a user makes it, by the module and the name."""
    return gymnasium.make(
        f"go_rl.envs:go_rl/{name}-v1", problem=small_problem(name), render_mode=mode, **fields
    )


@pytest.mark.parametrize("name", IDS)
@pytest.mark.parametrize("mode", RENDER_MODES)
def test_gymnasiums_checker_draws_every_environment(name, mode):
    env = made(name, mode)
    assert env.metadata["render_modes"] == list(RENDER_MODES)
    check_env(env.unwrapped)


def test_the_text_counts_nodes_and_seconds_of_each_device():
    env = made("Placement", "ansi")
    env.reset(seed=0)
    assert env.render().splitlines()[-1] == "open: 4 of 4 nodes"
    for device in (0, 1, 1):
        env.step(device)
    title, first, second, end = env.render().splitlines()
    assert "next is node 3" in title
    assert first.split() == ["0", "#" * 15, "1", "nodes", "1", "s"]
    assert second.split() == ["1", "#" * 30, "2", "nodes", "2", "s"]
    assert end == "open: 1 of 4 nodes"
    info = env.step(0)[-1]
    title, *_, end = env.render().splitlines()
    times = info["reference_seconds"] / info["seconds"]
    assert f"{times:.3g} times as fast as the reference plan" in title
    assert end == "open: 0 of 4 nodes"


def test_wrong_modes_and_order():
    problem = small_problem("Placement")
    fields = {"problem": problem, "objective": "makespan"}
    with pytest.raises(EnvironmentUseError, match=r"'ascii'; did you mean 'ansi'\?.*'rgb_array'"):
        PlanEnv(render_mode="ascii", **fields)
    with pytest.raises(EnvironmentUseError, match=r"render\(\) needs .* render_mode="):
        PlanEnv(**fields).render()
    with pytest.raises(EnvironmentUseError, match=r"call reset\(\) before render\(\)"):
        PlanEnv(render_mode="ansi", **fields).render()


@pytest.mark.parametrize(
    ("loads", "shares"),
    [([1.0, 4.0, 0.0], [0.25, 1.0, 0.0]), ([0.0, 0.0], [0.0, 0.0]), ([np.inf, 2.0], [1.0, 0.0])],
)
def test_bars_are_shares_of_the_longest_also_where_a_device_never_ends(loads, shares):
    assert bar_shares(np.array(loads)).tolist() == shares
