"""`Curriculum`: the problems of a pretraining run, for updates and for validation."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from go_rl.policy.agent import Agent
from go_rl.train.advantage import RunningBaseline
from go_rl.train.collect import TrainingCase
from go_rl.train.config import TrainConfig
from go_rl.train.processes.group import ALONE, Group
from go_rl.zoo import zoo_entry, zoo_names

KEPT = 256
"""Problems whose solvers or units stay in memory."""
VALIDATION_SEED = 1_000_000_007
"""Apart from the seeds of the updates."""


C = TypeVar("C", bound=TrainConfig, covariant=True)


class Curriculum(ABC, Generic[C]):
    """All problems of a run; everything expensive is built when a problem is first drawn."""

    def __init__(self, config: C) -> None:
        self.config = config

    @abstractmethod
    def draw(self, update: int, baseline: RunningBaseline) -> list[TrainingCase]:
        """Return the problems of one update; equal updates and baselines give equal problems."""

    @abstractmethod
    def validate(self, agent: Agent, group: Group = ALONE) -> tuple[float, dict[str, float]]:
        """Return the score of the validation problems, larger is better, and its parts to log.

        The processes of the group share the problems out; all get the same answer.
        """


def small_graphs(split: str, max_nodes: int) -> list[str]:
    """Return the graphs of a split of the zoo with at most ``max_nodes`` nodes."""
    return [name for name in zoo_names(split) if zoo_entry(name).nodes <= max_nodes]


def graph_size(name: str) -> int:
    """Return the nodes of a graph of the zoo: about what its samples cost."""
    return zoo_entry(name).nodes
