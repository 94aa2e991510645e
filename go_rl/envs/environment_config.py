"""`EnvironmentConfig`: what a user may choose about any of the environments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from go_rl.core import EnvironmentUseError, OpGraph, Problem
from go_rl.core.errors import nearest
from go_rl.cost import CostModel
from go_rl.cost.registry import check_cost
from go_rl.envs.observation import OBSERVATIONS, Observer
from go_rl.envs.rewards import REWARDS
from go_rl.zoo.load_model import load_model

AS_NEEDED = 0
"""`max_nodes`, `max_edges`: as many as the largest graph has."""
GraphSource = str | Path | OpGraph
"""A model file, ``module:function``, ``zoo:NAME``, or a graph."""
C = TypeVar("C", bound="EnvironmentConfig")


@dataclass(frozen=True, eq=False)
class EnvironmentConfig(ABC):
    """Abstract: the fields that all environments have; give ``problem`` or ``graph``."""

    actions: ClassVar[tuple[str, ...]]
    """Forms of an action."""
    devices: ClassVar[str]
    """What messages call the devices of hardware."""

    problem: Problem | Sequence[Problem] | None = None
    """The problem to solve, or several of them to draw from."""
    graph: GraphSource | Sequence[GraphSource] | None = None
    """A model file, ``module:function``, ``zoo:NAME`` or a graph, or several; priced on the
    hardware."""
    action: str = "node"
    """Form of the actions, one of `actions`."""
    observation: str = "dict"
    """One of `OBSERVATIONS`."""
    cost: str | CostModel = "auto"
    """Cost model of ``graph``: ``auto``, ``analytical``, ``profiled``, ``learned[:NAME|FILE]``,
    ``measured:DIR``, or a cost model."""
    max_nodes: int = AS_NEEDED
    """Rows of the padded node features."""
    max_edges: int = AS_NEEDED
    """Rows of the padded edge features."""

    def __post_init__(self) -> None:
        if (self.problem is None) == (self.graph is None):
            raise EnvironmentUseError("give either problem= or graph= (not both, not neither)")
        check_choice("action", self.action, self.actions)
        check_choice("observation", self.observation, OBSERVATIONS)
        check_cost(self.cost)
        for name in ("max_nodes", "max_edges"):
            if getattr(self, name) < 0:
                raise EnvironmentUseError(f"{name} must be >= 0, not {getattr(self, name)}")
        self.check_own_fields()
        if self.problem is not None:
            self._check_problems(several(self.problem))

    @abstractmethod
    def check_own_fields(self) -> None:
        """Raise an `EnvironmentUseError` for a bad value of a field of one's own."""

    @abstractmethod
    def price(self, graph: OpGraph) -> Problem:
        """Return the problem of one graph named by ``graph``."""

    @abstractmethod
    def check_problem(self, problem: Problem, first: Problem) -> None:
        """Raise an `EnvironmentUseError` where the environment does not solve such a problem.

        ``first``: the first of all problems.
        """

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems, read and priced where ``graph`` names them.

        Raises:
            EnvironmentUseError: they do not fit the environment.
            ReadError, ZooError, ProblemError: a model cannot be read or does not fit the hardware.
        """
        if self.graph is None:
            return several(self.problem)
        graphs = [g if isinstance(g, OpGraph) else load_model(g) for g in several(self.graph)]
        found = tuple(self.price(graph) for graph in graphs)
        self._check_problems(found)
        return found

    def observer(self, problems: Sequence[Problem]) -> Observer:
        """Return what builds observations of these problems, padded as configured."""
        graphs = [problem.graph for problem in problems]
        return Observer(
            form=self.observation,
            max_nodes=self.max_nodes or max(g.num_nodes for g in graphs),
            max_edges=self.max_edges or max(1, *(g.num_edges for g in graphs)),
        )

    def _check_problems(self, problems: Sequence[Problem]) -> None:
        first = problems[0]
        for problem in problems:
            self.check_problem(problem, first)
            name, count = problem.graph.name, problem.hardware.num_chips
            if count != first.hardware.num_chips:
                raise EnvironmentUseError(
                    f"graph {name!r} has {count} {self.devices} and {first.graph.name!r} "
                    f"{first.hardware.num_chips}; all problems of one environment need equally many"
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


def check_choice(field: str, value: str, allowed: Sequence[str]) -> None:
    """Raise an `EnvironmentUseError` that lists what is allowed."""
    if value not in allowed:
        raise EnvironmentUseError(
            f"unknown {field} {value!r}{nearest(str(value), allowed)} Use one of {list(allowed)}"
        )


def check_reward(name: str, failure: float | None) -> None:
    """Raise an `EnvironmentUseError` for an unknown reward, or one of failures that is infinite."""
    check_choice("reward", name, list(REWARDS))
    if failure is not None and not np.isfinite(failure):
        raise EnvironmentUseError(f"failure_reward must be finite, not {failure}")


def from_arguments(kind: type[C], given: Mapping[str, Any]) -> C:
    """Return a configuration made of keyword arguments.

    Raises:
        EnvironmentUseError: an argument is unknown (the nearest is named).
    """
    known = [f.name for f in fields(kind)]
    for name in given:
        if name not in known:
            raise EnvironmentUseError(f"unknown argument {name!r}{nearest(name, known)}")
    return kind(**given)


def several(given: Any) -> tuple[Any, ...]:
    """Return one problem, graph or path, or several of them, as a tuple.

    Raises:
        EnvironmentUseError: there is none.
    """
    found = (given,) if isinstance(given, (str, Path, Problem, OpGraph)) else tuple(given)
    if not found:
        raise EnvironmentUseError("no problem was given; at least one is needed")
    return found
