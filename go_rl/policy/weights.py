"""Trained weights of policies, each a file of `go_rl.runtime.saved_model`.

A name such as ``orders-1.0`` is interface-major, weights-minor: files of another major are
refused, files of another minor hold other numbers for the same network.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax

from go_rl.core import CheckpointError, Objective, PolicyError
from go_rl.core.files.shipped import shipped_or_given
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.config import POLICIES, SHIPPED_NAMES, PolicyConfig
from go_rl.runtime.array_file import check_parameters, parameter_tree
from go_rl.runtime.saved_model import SavedKind

SHIPPED = Path(__file__).parent / "pretrained"
KIND = SavedKind(
    "go_rl-policy-3", "policy weights", {"interface": 1}, "train anew, or use weights that ship",
    SHIPPED,
)  # fmt: skip
"""Interface: major version of what the networks take and give."""


@dataclass(frozen=True, eq=False)
class Weights:
    """An agent and where it comes from."""

    agent: Agent
    name: str
    card: Mapping[str, Any]
    """Model card: zoo version, training configuration, validation curve, notes."""

    def __repr__(self) -> str:
        return f"<Weights {self.name!r}, policy {self.agent.config.kind}>"


def save_weights(weights: Weights, path: str | Path) -> None:
    """Write the weights; a reader never sees a half-written file.

    Raises:
        CheckpointError: the file cannot be written.
    """
    agent = weights.agent
    manifest = {
        "policy": agent.config.kind,
        "name": weights.name,
        "config": asdict(agent.config),
        "blind": agent.blind,
        "card": dict(weights.card),
    }
    KIND.write(path, agent.params, manifest)


def load_weights(source: str | Path, objective: Objective | None = None) -> Weights:
    """Read weights by the name of a shipped file, or by path.

    Args:
        source: the name or path.
        objective: that the policy must be of; None: any.

    Raises:
        CheckpointError: no such weights, damaged, of another interface or objective.
    """
    path = shipped_or_given(source, SHIPPED, ".npz", KIND.what, CheckpointError)
    if not path.exists():
        raise CheckpointError(f"{path}: no such file")
    written = path.stat()
    found = _load(path, written.st_mtime_ns, written.st_size)
    theirs = found.agent.objective
    if objective is not None and theirs is not objective:
        raise CheckpointError(
            f"{path}: weights of a policy for objective {theirs}, not {objective}; use "
            f"{SHIPPED_NAMES[objective]!r}, or train some with: go-rl train policy DIR"
        )
    return found


def shipped_agent(objective: Objective) -> Agent:
    """Return the policy of an objective that ships with the package.

    Raises:
        PolicyError: there is none.
    """
    if objective not in SHIPPED_NAMES:
        raise PolicyError(f"no policy solves objective {objective}; policies solve ring, makespan")
    return load_weights(SHIPPED_NAMES[objective]).agent


@cache
def _load(path: Path, time_written: int, size: int) -> Weights:
    """Read a file once; another file in its place is another key."""
    with KIND.opened(path) as saved:
        manifest, policy = saved.manifest, saved.manifest["policy"]
        if policy not in [*POLICIES]:  # it may be no text
            raise CheckpointError(f"{path}: policy {policy!r} must be one of {', '.join(POLICIES)}")
        config = POLICIES[policy](**manifest["config"])
        if path.parent != SHIPPED:  # the tests check what ships; tracing takes half a second
            check_parameters(path, saved.arrays, _shapes(config))
        agent = Agent(config, parameter_tree(saved.arrays), bool(manifest["blind"]))
        return Weights(agent, str(manifest["name"]), dict(manifest["card"]))


@cache
def _shapes(config: PolicyConfig) -> Any:
    """Shapes of the parameters of a configuration; to trace the network takes half a second."""
    return jax.eval_shape(lambda: new_agent(config, 0).params)


def shipped_weights() -> tuple[str, ...]:
    """Return the names of the weights that ship with the package."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.npz")))
