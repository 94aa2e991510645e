"""Weights of ring policies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.config import PolicyConfig
from go_rl.policy.names import DEFAULT_WEIGHTS
from go_rl.policy.weights_file import read_weights_file, shipped_weights, write_weights_file

__all__ = ["DEFAULT_WEIGHTS", "Weights", "load_weights", "save_weights", "shipped_weights"]

FORMAT = "go_rl-policy"


@dataclass(frozen=True, eq=False)
class Weights:
    """An agent and where it comes from."""

    agent: Agent
    name: str
    card: Mapping[str, Any]
    """Model card: zoo version, training configuration, validation curve, notes."""


def save_weights(weights: Weights, path: str | Path) -> None:
    """Write the weights; a reader never sees a half-written file."""
    agent = weights.agent
    write_weights_file(path, FORMAT, weights.name, (agent.config, agent.params), weights.card)


def load_weights(source: str | Path = DEFAULT_WEIGHTS) -> Weights:
    """Read weights by the name of a shipped file, or by path.

    Raises:
        CheckpointError: no such weights, damaged, or of another interface.
    """
    found = read_weights_file(source, FORMAT, _template)
    return Weights(Agent(found.config, found.params), found.name, found.card)


def _template(config: PolicyConfig) -> Any:
    return new_agent(config, 0).params
