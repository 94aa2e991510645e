"""Trained weights of policies, each a parameter file (`go_rl.runtime.array_file`).

A name such as ``partition-1.1`` is interface-major, weights-minor: files of another major are
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
from go_rl.core.errors import nearest
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.config import POLICIES, SHIPPED_NAMES, PolicyConfig
from go_rl.runtime.array_file import (
    check_digest,
    check_parameters,
    parameter_tree,
    read_parameters,
    write_parameters,
)

INTERFACE = 1
"""Major version: what the networks take and give."""
FORMAT = "go_rl-policy-3"
SHIPPED = Path(__file__).parent / "pretrained"


@dataclass(frozen=True, eq=False)
class Weights:
    """An agent and where it comes from."""

    agent: Agent
    name: str
    card: Mapping[str, Any]
    """Model card: zoo version, training configuration, validation curve, notes."""

    def __repr__(self) -> str:
        return f"<Weights {self.name!r} of a {self.agent.config.kind} policy>"


def save_weights(weights: Weights, path: str | Path) -> None:
    """Write the weights; a reader never sees a half-written file.

    Raises:
        CheckpointError: the file cannot be written.
    """
    agent = weights.agent
    manifest = {
        "format": FORMAT,
        "interface": INTERFACE,
        "policy": agent.config.kind,
        "name": weights.name,
        "config": asdict(agent.config),
        "blind": agent.blind,
        "card": dict(weights.card),
    }
    write_parameters(Path(path), agent.params, manifest)


def load_weights(source: str | Path, objective: Objective | None = None) -> Weights:
    """Read weights by the name of a shipped file, or by path.

    Args:
        source: the name or path.
        objective: that the policy must be of; None: any.

    Raises:
        CheckpointError: no such weights, damaged, of another interface or objective.
    """
    path = _path(source)
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
    manifest, arrays = read_parameters(path)
    policy = _policy(path, manifest)
    if manifest.get("interface") != INTERFACE:
        raise CheckpointError(
            f"{path}: weights of interface {manifest.get('interface')}; this version of go_rl "
            f"reads interface {INTERFACE}. Train anew, or use one of "
            f"{', '.join(shipped_weights())}"
        )
    check_digest(path, manifest, arrays)
    try:
        config = policy(**manifest["config"])
        name, card, blind = str(manifest["name"]), dict(manifest["card"]), bool(manifest["blind"])
    except (KeyError, TypeError, ValueError, PolicyError) as error:
        raise CheckpointError(
            f"{path}: its manifest does not fit this version ({type(error).__name__}: {error})"
        ) from error
    if path.parent != SHIPPED:  # the tests check what ships; tracing a template takes half a second
        check_parameters(path, arrays, _shapes(config))
    return Weights(Agent(config, parameter_tree(arrays), blind), name, card)


def _policy(path: Path, manifest: Mapping[str, Any]) -> type[PolicyConfig]:
    """The configuration class of a policy's file, whose format is checked."""
    kind = manifest.get("format")
    if kind != FORMAT:
        what = f" but {kind!r}" if kind else ""
        raise CheckpointError(f"{path}: is not a policy's weights file of format {FORMAT!r}{what}")
    policy = manifest.get("policy")
    if not isinstance(policy, str) or policy not in POLICIES:
        raise CheckpointError(f"{path}: policy {policy!r} must be one of {', '.join(POLICIES)}")
    return POLICIES[policy]


@cache
def _shapes(config: PolicyConfig) -> Any:
    """Shapes of the parameters of a configuration; to trace the network takes half a second."""
    return jax.eval_shape(lambda: new_agent(config, 0).params)


def shipped_weights() -> tuple[str, ...]:
    """Return the names of the weights that ship with the package."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.npz")))


def _path(source: str | Path) -> Path:
    named = SHIPPED / f"{source}.npz"
    if isinstance(source, str) and "/" not in source and named.exists():
        return named
    path = Path(source)
    if not path.exists():
        names = shipped_weights()
        raise CheckpointError(
            f"no weights {str(source)!r}{nearest(str(source), names)} "
            f"Give a file, or one of {', '.join(names) or '(none are shipped)'}"
        )
    return path
