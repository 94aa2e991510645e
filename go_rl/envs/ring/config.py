"""`PartitionConfig`: everything a user may choose about `go_rl/Partition-v1`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from go_rl.core import (
    EnvironmentUseError,
    Hardware,
    Objective,
    OpGraph,
    Problem,
    load_hardware,
    rule_set,
)
from go_rl.cost import ProblemOptions, make_problem, named_cost
from go_rl.envs.environment_config import EnvironmentConfig, check_reward, from_arguments

ACTIONS = ("node", "fix", "sample")
"""Forms of an action: a chip for the next node; a whole proposal repaired by FIX; log-probabilities
for a whole proposal, drawn by SAMPLE."""


@dataclass(frozen=True, eq=False)
class PartitionConfig(EnvironmentConfig):
    """Configuration of the partitioning environment; give ``problem`` or ``graph``."""

    actions = ACTIONS
    devices = "chips"

    hardware: str | Hardware = "ring36"
    """Hardware, or the name of some, for ``graph``."""
    rules: str = "default"
    """Name of the rule set for ``graph``."""
    reward: str = "speed-up"
    """Name of the reward (`go_rl.envs.rewards`)."""
    failure_reward: float | None = None
    """Reward of an episode that ends without a usable plan; None: as the reward has it."""

    def check_own_fields(self) -> None:
        """See `EnvironmentConfig`."""
        check_reward(self.reward, self.failure_reward)

    def price(self, graph: OpGraph) -> Problem:
        """Return the ring problem of one graph."""
        chips = (
            self.hardware if isinstance(self.hardware, Hardware) else load_hardware(self.hardware)
        )
        options = ProblemOptions(
            rules=rule_set(self.rules), cost_model=named_cost(self.cost, chips)
        )
        return make_problem(graph, chips, options)

    def check_problem(self, problem: Problem, first: Problem) -> None:
        """Raise an `EnvironmentUseError` for another objective."""
        if problem.objective is not Objective.RING:
            raise EnvironmentUseError(
                f"graph {problem.graph.name!r}: the objective is {problem.objective}; this "
                "environment partitions over a ring of chips only"
            )


def read_config(config: PartitionConfig | None, given: Mapping[str, Any]) -> PartitionConfig:
    """Return ``config``, or one made of keyword arguments.

    Raises:
        EnvironmentUseError: both are given, or an argument is unknown (the nearest is named).
    """
    if config is None:
        return from_arguments(PartitionConfig, given)
    if given:
        raise EnvironmentUseError(f"give config= or {sorted(given)}, not both")
    return config
