"""Episodes of go_rl's environments under actions drawn at random among those allowed."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

import go_rl.envs  # noqa: F401 - registers them

from ..fingerprint import Facts, digest, moments, short
from .plans import SEED

ENVIRONMENTS = {
    "Partition": ("node", "fix", "sample"),
    "Placement": ("node", "all"),
    "Schedule": ("node", "all"),
    "Fusion": ("node", "all"),
    "Joint": ("node", "all"),
}
"""Forms of actions by environment."""
PLANNED = ("device", "priority", "fusion_group")
"""What the last ``info`` of an episode may hold of its plan."""


def episode_facts(name: str, form: str, model: str, hardware: str, vector: bool) -> Facts:
    """Return what an episode shows and earns, alone or as the second of two side by side."""
    fields: dict[str, Any] = {"graph": model, "hardware": hardware, "action": form,
                              "cost": "analytical"}  # fmt: skip
    if vector:
        env: Any = gymnasium.make_vec(f"go_rl/{name}-v1", num_envs=2, **fields)
        return _vector_facts(env)
    return _facts(gymnasium.make(f"go_rl/{name}-v1", **fields).unwrapped, form)


def _facts(env: Any, form: str) -> Facts:
    rng, ended, masks, earned = np.random.default_rng(SEED), False, [], []
    seen, info = env.reset(seed=SEED)
    shown = [_arrays(seen)]
    while not ended:
        mask = env.action_masks() if form == "node" else None
        masks += [] if mask is None else [np.flatnonzero(mask)]
        seen, reward, ended, _, info = env.step(_drawn(env.action_space, mask, rng))
        shown.append(_arrays(seen))
        earned.append(reward)
    return {
        "steps": len(earned),
        "reward": short(sum(earned)),
        "status": str(info["status"]),
        "seconds": short(info["seconds"]),
        "decisions": digest(*(info.get(what) for what in PLANNED)),
        "masks": digest(*masks),
        "observations": moments(np.concatenate(each) for each in (shown[0], shown[-1])),
        "all observations": moments([np.concatenate(each).sum() for each in shown]),
    }


def _drawn(space: Any, mask: np.ndarray | None, rng: np.random.Generator) -> Any:
    """An action of a space, of a discrete one among what its mask allows."""
    if isinstance(space, spaces.Box):
        return rng.standard_normal(space.shape).astype(np.float32)
    sizes = np.atleast_1d(space.n if isinstance(space, spaces.Discrete) else space.nvec)
    if mask is None:
        return rng.integers(sizes)
    parts = np.split(mask, np.cumsum(sizes)[:-1])
    chosen = [int(rng.choice(np.flatnonzero(part))) if part.any() else 0 for part in parts]
    return chosen[0] if isinstance(space, spaces.Discrete) else np.array(chosen)


def _vector_facts(env: Any) -> Facts:
    """Two episodes at once, each given whole plans, twice."""
    rng, earned = np.random.default_rng(SEED), []
    shown = [_arrays(env.reset(seed=SEED)[0])]
    for _ in range(2):
        space = env.single_action_space
        seen, reward, *_ = env.step(np.stack([_drawn(space, None, rng) for _ in range(2)]))
        shown.append(_arrays(seen))
        earned.append(reward)
    return {
        "rewards": moments(earned),
        "observations": moments(np.concatenate(each) for each in shown),
    }


def _arrays(seen: Any) -> list[np.ndarray]:
    """All numbers of an observation, by name."""
    if isinstance(seen, dict):
        return [x for name in sorted(seen) for x in _arrays(seen[name])]
    if isinstance(seen, spaces.GraphInstance):
        return [x for part in seen if part is not None for x in _arrays(part)]
    if isinstance(seen, tuple | list):
        return [x for part in seen for x in _arrays(part)]
    return [np.asarray(seen, np.float64).ravel()]
