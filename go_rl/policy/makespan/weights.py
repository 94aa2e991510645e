"""Weights of step policies: the same safe file as for rings, under another format name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from go_rl.policy.config import PolicyConfig
from go_rl.policy.makespan.agent import StepAgent, new_step_agent
from go_rl.policy.names import DEFAULT_STEP_WEIGHTS
from go_rl.policy.weights_file import read_weights_file, write_weights_file

__all__ = ["DEFAULT_STEP_WEIGHTS", "StepWeights", "load_step_weights", "save_step_weights"]
STEP_FORMAT = "go_rl-step-policy"


@dataclass(frozen=True, eq=False)
class StepWeights:
    """An agent and where it comes from."""

    agent: StepAgent
    name: str
    card: Mapping[str, Any]
    """Model card: zoo version, training configuration, validation curve, notes."""


def save_step_weights(weights: StepWeights, path: str | Path) -> None:
    """Write the weights; a reader never sees a half-written file."""
    agent = weights.agent
    write_weights_file(path, STEP_FORMAT, weights.name, (agent.config, agent.params), weights.card)


def load_step_weights(source: str | Path = DEFAULT_STEP_WEIGHTS) -> StepWeights:
    """Read weights by the name of a shipped file, or by path.

    Raises:
        CheckpointError: no such weights, damaged, of another interface, or for rings.
    """
    found = read_weights_file(source, STEP_FORMAT, _template)
    return StepWeights(StepAgent(found.config, found.params), found.name, found.card)


def _template(config: PolicyConfig) -> Any:
    return new_step_agent(config, 0).params
