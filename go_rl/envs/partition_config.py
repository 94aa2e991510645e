"""`PartitionConfig`: everything a user may choose about `go_rl/Partition-v0`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from go_rl.core import EnvironmentUseError, Objective, Package, Problem, package, rule_set
from go_rl.core.errors import nearest
from go_rl.cost import ProblemOptions, make_problem
from go_rl.envs.observation import OBSERVATIONS
from go_rl.readers import load

ACTIONS = ("node", "fix", "sample")
"""Forms of an action: a chip for the next node; a whole proposal repaired by FIX; log-probabilities
for a whole proposal, drawn by SAMPLE."""

AS_NEEDED = 0
"""`max_nodes`, `max_edges`: as many as the largest graph has."""


@dataclass(frozen=True, eq=False)
class PartitionConfig:
    """Configuration of the partitioning environment; give ``problem`` or ``graph``."""

    problem: Problem | Sequence[Problem] | None = None
    """The ring problem to solve, or several of them to draw from."""
    graph: str | Sequence[str] | None = None
    """Path of a model file, or several; read and priced with the next two fields."""
    package: str | Package = "ring36"
    """Package, or the name of one, for ``graph``."""
    rules: str = "default"
    """Name of the rule set for ``graph``."""
    action: str = "node"
    """One of `ACTIONS`."""
    observation: str = "dict"
    """One of `OBSERVATIONS`."""
    max_nodes: int = AS_NEEDED
    """Rows of the padded node features."""
    max_edges: int = AS_NEEDED
    """Rows of the padded edge features."""
    failure_reward: float = -10.0
    """Reward of an episode that ends without a usable plan."""

    def __post_init__(self) -> None:
        if (self.problem is None) == (self.graph is None):
            raise EnvironmentUseError("give either problem= or graph= (not both, not neither)")
        _check_choice("action", self.action, ACTIONS)
        _check_choice("observation", self.observation, OBSERVATIONS)
        for name in ("max_nodes", "max_edges"):
            if getattr(self, name) < 0:
                raise EnvironmentUseError(f"{name} must be >= 0, not {getattr(self, name)}")
        if not np.isfinite(self.failure_reward):
            raise EnvironmentUseError(f"failure_reward must be finite, not {self.failure_reward}")
        if self.problem is not None:
            self._check_problems(_several(self.problem))

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems, read from their files where ``graph`` names them.

        Raises:
            EnvironmentUseError: they do not fit the environment.
            ReadError, ProblemError: a file cannot be read or does not fit the package.
        """
        if self.problem is not None:
            return tuple(_several(self.problem))
        chips = self.package if isinstance(self.package, Package) else package(self.package)
        options = ProblemOptions(rules=rule_set(self.rules))
        paths = _several(self.graph)
        found = tuple(make_problem(load(path), chips, options) for path in paths)
        self._check_problems(found)
        return found

    def _check_problems(self, problems: Sequence[Problem]) -> None:
        if not problems:
            raise EnvironmentUseError("no problem was given; at least one is needed")
        for problem in problems:
            name = problem.graph.name
            if problem.objective is not Objective.RING:
                raise EnvironmentUseError(
                    f"graph {name!r}: the objective is {problem.objective}; this environment "
                    "partitions over a ring of chips only"
                )
            if problem.package.num_chips != problems[0].package.num_chips:
                raise EnvironmentUseError(
                    f"graph {name!r} has {problem.package.num_chips} chips and "
                    f"{problems[0].graph.name!r} {problems[0].package.num_chips}; all problems of "
                    "one environment need equally many"
                )
            self._check_size(name, "max_nodes", problem.graph.num_nodes)
            self._check_size(name, "max_edges", problem.graph.num_edges)

    def _check_size(self, graph: str, field: str, needed: int) -> None:
        limit = getattr(self, field)
        if limit != AS_NEEDED and needed > limit:
            raise EnvironmentUseError(
                f"graph {graph!r} has {needed} {field[4:]}, more than {field}={limit}; give "
                f"{field}={needed} or more"
            )


def read_config(config: PartitionConfig | None, given: Mapping[str, Any]) -> PartitionConfig:
    """Return ``config``, or one made of keyword arguments.

    Raises:
        EnvironmentUseError: both are given, or an argument is unknown (the nearest is named).
    """
    if config is not None:
        if given:
            raise EnvironmentUseError(f"give config= or {sorted(given)}, not both")
        return config
    known = [f.name for f in fields(PartitionConfig)]
    for name in given:
        if name not in known:
            raise EnvironmentUseError(f"unknown argument {name!r}{nearest(name, known)}")
    return PartitionConfig(**given)


def _check_choice(field: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise EnvironmentUseError(
            f"unknown {field} {value!r}{nearest(str(value), allowed)} Use one of {list(allowed)}"
        )


def _several(given: Any) -> tuple[Any, ...]:
    return (given,) if isinstance(given, (str, Problem)) else tuple(given)
