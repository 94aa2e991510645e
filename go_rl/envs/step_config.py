"""`StepConfig`: everything a user may choose about the makespan environments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from go_rl.core import TASKS, EnvironmentUseError, Objective, OpGraph, Package, Problem, package
from go_rl.core.errors import nearest
from go_rl.cost import ProblemOptions, make_problem
from go_rl.envs.observation import OBSERVATIONS
from go_rl.envs.partition_config import AS_NEEDED
from go_rl.envs.step_rewards import INVALID_REWARD
from go_rl.readers import load

STEP_ACTIONS = ("node", "all")
"""Forms of an action: decisions for the next node; decisions for every node at once."""


@dataclass(frozen=True, eq=False)
class StepConfig:
    """Configuration of the makespan environments; give ``problem`` or ``graph``."""

    problem: Problem | Sequence[Problem] | None = None
    """The makespan problem to solve, or several of them to draw from."""
    graph: str | OpGraph | Sequence[str | OpGraph] | None = None
    """A graph or the path of a model file, or several; priced with ``package`` and ``memory``."""
    package: str | Package = "p100x4"
    """Package, or the name of one, for ``graph``."""
    memory: bool = True
    """Whether weights and live tensors must fit, for ``graph``."""
    tasks: tuple[str, ...] | None = None
    """What is decided, some of `TASKS`; None: what the problem asks for, for ``graph`` all."""
    action: str = "node"
    """One of `STEP_ACTIONS`."""
    observation: str = "dict"
    """One of `OBSERVATIONS`."""
    max_nodes: int = AS_NEEDED
    """Rows of the padded node features."""
    max_edges: int = AS_NEEDED
    """Rows of the padded edge features."""
    invalid_reward: float = INVALID_REWARD
    """Reward of an episode that ends without a usable plan."""

    def __post_init__(self) -> None:
        if (self.problem is None) == (self.graph is None):
            raise EnvironmentUseError("give either problem= or graph= (not both, not neither)")
        _check_choice("action", self.action, STEP_ACTIONS)
        _check_choice("observation", self.observation, OBSERVATIONS)
        for task in self.tasks or ():
            _check_choice("task", task, TASKS)
        if self.tasks is not None and not self.tasks:
            raise EnvironmentUseError(f"tasks: name at least one of {list(TASKS)}")
        for name in ("max_nodes", "max_edges"):
            if getattr(self, name) < 0:
                raise EnvironmentUseError(f"{name} must be >= 0, not {getattr(self, name)}")
        if not np.isfinite(self.invalid_reward):
            raise EnvironmentUseError(f"invalid_reward must be finite, not {self.invalid_reward}")
        if self.problem is not None:
            self._check_problems(_several(self.problem))

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems, read and priced where ``graph`` names them.

        Raises:
            EnvironmentUseError: they do not fit the environment.
            ReadError, ProblemError: a file cannot be read or does not fit the package.
        """
        if self.problem is not None:
            return _several(self.problem)
        devices = self.package if isinstance(self.package, Package) else package(self.package)
        options = ProblemOptions(
            objective=Objective.MAKESPAN, memory=self.memory, tasks=self.tasks or TASKS
        )
        graphs = [g if isinstance(g, OpGraph) else load(g) for g in _several(self.graph)]
        found = tuple(make_problem(graph, devices, options) for graph in graphs)
        self._check_problems(found)
        return found

    def _check_problems(self, problems: Sequence[Problem]) -> None:
        if not problems:
            raise EnvironmentUseError("no problem was given; at least one is needed")
        first = problems[0]
        for problem in problems:
            name = problem.graph.name
            if problem.objective is not Objective.MAKESPAN:
                raise EnvironmentUseError(
                    f"graph {name!r}: the objective is {problem.objective}; this environment "
                    "shortens the makespan only"
                )
            tasks = self.tasks or first.tasks
            if set(problem.tasks) != set(tasks):
                raise EnvironmentUseError(
                    f"graph {name!r}: the problem's tasks are {', '.join(problem.tasks)}; this "
                    f"environment decides {', '.join(tasks)}: make the problem with those tasks"
                )
            if problem.package.num_chips != first.package.num_chips:
                raise EnvironmentUseError(
                    f"graph {name!r} has {problem.package.num_chips} devices and "
                    f"{first.graph.name!r} {first.package.num_chips}; all problems of one "
                    "environment need equally many"
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


def read_step_config(config: StepConfig | None, given: Mapping[str, Any]) -> StepConfig:
    """Return ``config``, or one made of keyword arguments.

    ``tasks``, which the registered environments give, may go with a ``config`` that agrees.

    Raises:
        EnvironmentUseError: both are given, or an argument is unknown (the nearest is named).
    """
    if config is None:
        known = [f.name for f in fields(StepConfig)]
        for name in given:
            if name not in known:
                raise EnvironmentUseError(f"unknown argument {name!r}{nearest(name, known)}")
        return StepConfig(**given)
    if others := sorted(set(given) - {"tasks"}):
        raise EnvironmentUseError(f"give config= or {others}, not both")
    tasks = given.get("tasks", config.tasks)
    if config.tasks is not None and set(tasks or ()) != set(config.tasks):
        raise EnvironmentUseError(
            f"config.tasks are {', '.join(config.tasks)}; this environment decides "
            f"{', '.join(tasks or ())}"
        )
    return replace(config, tasks=tasks)


def _check_choice(field: str, value: str, allowed: Sequence[str]) -> None:
    if value not in allowed:
        raise EnvironmentUseError(
            f"unknown {field} {value!r}{nearest(str(value), allowed)} Use one of {list(allowed)}"
        )


def _several(given: Any) -> tuple[Any, ...]:
    return (given,) if isinstance(given, (str, Problem, OpGraph)) else tuple(given)
