"""What every registered environment owes besides what the counted suite of environments holds: a
choice of problems, masks, pictures, and one sentence for each misuse."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from reference.small_rings import ring_problem
from reference.step_problems import step_problem

import go_rl.envs
from go_rl.core import DECISIONS, EnvironmentUseError, Problem
from go_rl.envs.rendering import RENDER_MODES

NAMES = {
    "Partition": None,
    "Placement": ("placement",),
    "Schedule": ("schedule",),
    "Fusion": ("fusion",),
    "Joint": DECISIONS,
}
"""Every environment that `go_rl.envs` registers, with what it decides on a makespan."""
FORMS = [
    (name, form)
    for name, decided in NAMES.items()
    for form in (("node", "relative", "fix", "sample") if decided is None else ("node", "all"))
]
"""Every environment with each form of its actions."""
every_form = pytest.mark.parametrize(("name", "form"), FORMS)


def by_hand(name: str) -> list[Problem]:
    """Two small problems of an environment on three or two devices."""
    if (decided := NAMES[name]) is None:
        return [
            ring_problem(4, [(0, 1), (1, 2), (2, 3)], 3),
            ring_problem(5, [(0, 1), (0, 2), (1, 4)], 3),
        ]
    pairs = [(0, 2, 1.0), (1, 3, 1.0)]
    return [
        step_problem([1.0] * 4, pairs, 2, decisions=decided, fixed={0: 1}),
        step_problem([1.0] * 3, [(0, 2, 1.0)], 2, decisions=decided),
    ]


def make(name: str, **fields: Any) -> Any:
    """The environment on small problems, as a user makes it."""
    return gymnasium.make(f"go_rl/{name}-v1", problem=by_hand(name), **fields).unwrapped


def test_every_registered_environment_is_tested():
    assert go_rl.envs.PlanEnv  # importing it registers them
    found = {spec.name for spec in gymnasium.registry.values() if spec.namespace == "go_rl"}
    assert found == set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_reset_chooses_among_problems(name):
    problems = [*by_hand(name), by_hand(name)[0]]
    env = gymnasium.make(f"go_rl/{name}-v1", problem=problems).unwrapped
    for i in (2, 0, 1):
        observed, info = env.reset(options={"graph": i})
        assert info["graph"] == i
        assert observed["node_mask"].sum() == problems[i].graph.num_nodes
    drawn = [env.reset(seed=7 if n == 0 else None)[1]["graph"] for n in range(30)]
    assert set(drawn) == {0, 1, 2}
    assert drawn == [env.reset(seed=7 if n == 0 else None)[1]["graph"] for n in range(30)]


@pytest.mark.parametrize("name", NAMES)
def test_action_masks_follow_the_mask_of_info(name):
    env = make(name)
    _, info = env.reset(seed=0)
    mask = info["action_mask"]
    assert env.action_masks().dtype == np.bool_
    whole = np.concatenate(mask) if isinstance(mask, tuple) else mask
    assert (env.action_masks() == whole).all()


@every_form
def test_stepping_without_an_episode(name, form):
    env = make(name, action=form)
    env.action_space.seed(1)
    for _ in range(2):
        with pytest.raises(EnvironmentUseError, match=r"call reset\(\)"):
            env.step(env.action_space.sample())
        env.reset(seed=0)
        while not env.step(env.action_space.sample())[2]:
            pass
    if form not in ("node", "relative"):
        with pytest.raises(EnvironmentUseError, match="needs action='node'"):
            env.action_masks()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"graph": 1}, r"must be 0\.\.0, not 1"),
        ({"graph": "first"}, "not 'first'"),
        ({"grpah": 0}, "unknown option 'grpah'"),
    ],
)
def test_wrong_reset_options(name, options, sentence):
    env = gymnasium.make(f"go_rl/{name}-v1", problem=by_hand(name)[0])
    with pytest.raises(EnvironmentUseError, match=sentence):
        env.unwrapped.reset(options=options)


def vector_of(name: str, count: int) -> Any:
    """A vector environment on one problem."""
    return gymnasium.make_vec(f"go_rl/{name}-v1", count, problem=by_hand(name)[0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("misuse", "sentence"),
    [
        (lambda e, name: vector_of(name, 0), "num_envs must be >= 1"),
        (lambda e, _: e.step(np.concatenate([e.action_space.sample()] * 2)[:3]), "3 actions for 2"),
        (lambda e, _: e.step(e.action_space.sample() * 0 + 20), "names .* 20; allowed are 0"),
        (lambda e, _: e.reset(seed=[1, 2, 3]), "3 seeds were given for 2 episodes"),
        (lambda e, _: e.reset(options={"graph": 4}), r"must be 0\.\.0"),
        (lambda e, name: vector_of(name, 2).step(e.action_space.sample()), "call reset"),
    ],
)
def test_misuse_of_the_vector_form(name, misuse, sentence):
    env = vector_of(name, 2)
    env.reset()
    with pytest.raises(EnvironmentUseError, match=sentence):
        misuse(env, name)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("mode", RENDER_MODES)
def test_gymnasiums_checker_draws_every_environment(name, mode):
    """Made as a user does, by the module and the name."""
    env = gymnasium.make(f"go_rl.envs:go_rl/{name}-v1", problem=by_hand(name)[0], render_mode=mode)
    assert env.metadata["render_modes"] == list(RENDER_MODES)
    check_env(env.unwrapped)
