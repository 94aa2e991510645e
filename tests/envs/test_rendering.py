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
from go_rl.envs.rendering import RENDER_MODES, device_colours

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


def has_colour(picture: np.ndarray, colour: tuple[int, int, int]) -> bool:
    return bool((picture == np.array(colour)).all(axis=2).any())


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


def test_a_failure_is_said():
    env = made("Partition", "ansi")
    env.reset(seed=0)
    info = env.step(2)[-1]  # no node is left for the chips before it
    title, *_ = env.render().splitlines()
    assert str(info["status"]) in title
    assert info["detail"] in title


def test_the_picture_shows_the_devices_used_so_far():
    env = made("Placement", "rgb_array")
    env.reset(seed=0)
    first, second = device_colours(2)
    before = env.render()
    assert (before.shape, before.dtype) == ((600, 800, 3), np.uint8)
    assert not has_colour(before[:440], first)
    env.step(0)
    during = env.render()
    assert has_colour(during[:440], first)
    assert not has_colour(during[:440], second)
    for device in (1, 1, 1):
        env.step(device)
    assert has_colour(env.render()[:440], second)


def test_schedules_and_whole_plans_are_open_until_they_are_decided():
    env = made("Schedule", "ansi")
    env.reset(seed=0)
    assert env.render().endswith("open: 4 of 4 nodes")
    env.step(3)
    assert env.render().endswith("open: 3 of 4 nodes")
    whole = made("Joint", "ansi", action="all")
    whole.reset(seed=0)
    assert "nothing decided yet" in whole.render()
    whole.step(whole.action_space.sample() * 0)
    assert whole.render().endswith("open: 0 of 4 nodes")


def test_a_list_of_frames_is_gymnasiums_own():
    env = made("Placement", "rgb_array_list")
    env.reset(seed=0)
    env.step(0)
    assert len(env.render()) == 2


@pytest.mark.parametrize("form", ["vector_entry_point", "sync"])
def test_both_vector_forms_draw_each_episode(form):
    env = gymnasium.make_vec(
        "go_rl.envs:go_rl/Placement-v1", 2, form, problem=small_problem("Placement"),
        render_mode="ansi",
    )  # fmt: skip
    env.reset(seed=0)
    env.step(np.array([0, 1]))
    pictures: Any = env.render()
    assert ["1 nodes" in picture.splitlines()[1] for picture in pictures] == [True, False]


def test_wrong_modes_and_order():
    problem = small_problem("Placement")
    fields = {"problem": problem, "objective": "makespan"}
    with pytest.raises(EnvironmentUseError, match=r"'ascii'; did you mean 'ansi'\?.*'rgb_array'"):
        PlanEnv(render_mode="ascii", **fields)
    with pytest.raises(EnvironmentUseError, match=r"render\(\) needs .* render_mode="):
        PlanEnv(**fields).render()
    with pytest.raises(EnvironmentUseError, match=r"call reset\(\) before render\(\)"):
        PlanEnv(render_mode="ansi", **fields).render()
