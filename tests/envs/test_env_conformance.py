"""What every registered environment owes: Gymnasium's checker, masks to sample from, seeds, one
autoreset, the same results alone and as a vector, and one sentence for each misuse."""

from collections.abc import Iterator
from itertools import islice
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env, data_equivalence
from reference.small_rings import random_ring, ring_problem
from reference.step_problems import random_step, step_problem

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
both_observations = pytest.mark.parametrize("observation", ["dict", "graph"])


def problems(name: str, seed: int) -> list[Problem]:
    """Two random problems of an environment with equally many devices."""
    first = next(random_problems(name, seed))
    return [first, *alike(name, seed, first, 2)[1:]]


def random_problems(name: str, seed: int) -> Iterator[Problem]:
    """A thousand random problems of an environment."""
    decisions = NAMES[name]
    for s in range(1000 * seed, 1000 * (seed + 1)):
        yield (
            random_ring(s, "default") if decisions is None else random_step(s, decisions=decisions)
        )


def alike(name: str, seed: int, other: Problem, count: int) -> list[Problem]:
    """The first random problems with as many devices as another problem."""
    chips = other.hardware.num_devices
    found = (p for p in random_problems(name, seed) if p.hardware.num_devices == chips)
    return list(islice(found, count))


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


def make(name: str, seed: int, **fields: Any) -> gymnasium.Env:
    """The environment on random problems, as a user makes it."""
    return gymnasium.make(f"go_rl/{name}-v1", problem=problems(name, seed), **fields)


def sample(env: Any, infos: dict) -> np.ndarray:
    """Masked actions of a vector environment; Gymnasium batches some spaces as ones without
    masks."""
    return np.array([env.single_action_space.sample(mask=mask) for mask in infos["action_mask"]])


def test_every_registered_environment_is_tested():
    assert go_rl.envs.PlanEnv  # importing it registers them
    found = {spec.name for spec in gymnasium.registry.values() if spec.namespace == "go_rl"}
    assert found == set(NAMES)


@every_form
@both_observations
def test_gymnasiums_checker_passes_by_hand(name, form, observation):
    fields = {"problem": by_hand(name), "action": form, "observation": observation}
    env = gymnasium.make(f"go_rl/{name}-v1", **fields)
    check_env(env.unwrapped)
    env.close()


@every_form
def test_two_copies_stay_equal(name, form):
    pair = [make(name, 1, action=form).unwrapped for _ in range(2)]
    results = [env.reset(seed=11) for env in pair]
    pair[0].action_space.seed(3)
    for _ in range(15):
        assert data_equivalence(*results, exact=True)
        action = pair[0].action_space.sample()
        results = [env.step(action) for env in pair]
        assert data_equivalence(*results, exact=True)
        if results[0][2]:
            results = [env.reset() for env in pair]


@every_form
def test_the_vector_form_is_the_single_one_many_times(name, form):
    """Actions at random, masks ignored."""
    given = [*by_hand(name), *alike(name, 0, by_hand(name)[0], 2)]
    observation = "graph" if form in ("node", "fix") else "dict"
    fields = {"problem": given, "action": form, "observation": observation}
    single = gymnasium.make_vec(f"go_rl/{name}-v1", 4, "sync", **fields)
    vector = gymnasium.make_vec(f"go_rl/{name}-v1", 4, **fields)
    assert isinstance(vector, go_rl.envs.PlanVectorEnv)
    assert single.metadata["autoreset_mode"] is vector.metadata["autoreset_mode"]
    single.action_space.seed(5)
    results = [env.reset(seed=17) for env in (single, vector)]
    ended = np.zeros(4, np.int64)
    for _ in range(25):
        assert data_equivalence(*results, exact=True)
        action = single.action_space.sample()
        results = [env.step(action) for env in (single, vector)]
        ended += results[0][2]
    assert ended.all()
    assert results[1][0] in vector.observation_space


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
    env: Any = make(name, 2).unwrapped
    _, info = env.reset(seed=0)
    mask = info["action_mask"]
    assert env.action_masks().dtype == np.bool_
    whole = np.concatenate(mask) if isinstance(mask, tuple) else mask
    assert (env.action_masks() == whole).all()


@every_form
def test_stepping_without_an_episode(name, form):
    env: Any = make(name, 1, action=form).unwrapped
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
