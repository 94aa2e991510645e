"""`EnvironmentConfig`: what a user may choose about an environment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral, Real
from pathlib import Path
from types import NoneType
from typing import Any

import numpy as np

from go_rl.core import (
    DECISIONS,
    EnvironmentUseError,
    Hardware,
    Objective,
    OpGraph,
    Problem,
    decision_names,
    load_hardware,
    rule_set,
)
from go_rl.core.errors import nearest
from go_rl.core.objective import OF_LINKS
from go_rl.costs.models import CostModel, ProblemOptions, make_problem, named_cost
from go_rl.costs.models.registry import check_cost
from go_rl.envs.observation import OBSERVATIONS, Observer
from go_rl.envs.rewards import REWARDS, SHAPED
from go_rl.graphs.zoo.load_model import load_model
from go_rl.objectives.common.kit import EnvironmentTraits
from go_rl.objectives.kits import KITS

AS_NEEDED = 0
"""`max_nodes`, `max_edges`: as many as the largest graph has."""
GraphSource = str | Path | OpGraph
"""A model file, ``module:function``, ``zoo:NAME``, or a graph."""
OF_THE_ID = ("objective", "decide")
"""Fields that a registered environment gives, beside a ``config`` that agrees."""
NODE_BY_NODE = ("node", "relative")
"""Forms of an action that decide one node."""
SEVERAL = ("problem", "graph")
"""Fields that hold one or several."""
KINDS: dict[str, tuple[tuple[type, ...], str]] = {
    "problem": ((Problem, NoneType), "a problem or several"),
    "graph": (
        (str, Path, OpGraph, NoneType),
        "a file, module:function, zoo:NAME, graph or several",
    ),
    "rules": ((str,), "the name of a rule set"),
    "memory": ((bool, np.bool_, NoneType), "True, False or None"),
    "failure_reward": ((Real, NoneType), "a number or None"),
    "max_nodes": ((Integral,), "a whole number"),
    "max_edges": ((Integral,), "a whole number"),
}
"""Types of fields whose values no look-up checks, and the words of messages."""


IDS = {Objective.RING: "go_rl/Partition-v1", Objective.MAKESPAN: "go_rl/Placement-v1"}
"""Environment that places operators, by objective, for messages."""
TRAITS = {name: kit.environment for name, kit in KITS.items() if kit.environment is not None}
"""Traits of the objectives that have environments."""


@dataclass(frozen=True, eq=False)
class EnvironmentConfig:
    """Configuration of an environment; give ``problem`` or ``graph``."""

    problem: Problem | Sequence[Problem] | None = None
    """The problem to solve, or several of them to draw from."""
    graph: GraphSource | Sequence[GraphSource] | None = None
    """A model file, ``module:function``, ``zoo:NAME`` or a graph, or several; priced on the
    hardware."""
    objective: str | Objective | None = None
    """``ring`` or ``makespan``; None: the problem's, for ``graph`` as the hardware has it."""
    decide: str | tuple[str, ...] | None = None
    """Decisions, some of `DECISIONS`, as names or with commas between; None: what the problem
    asks for, for ``graph`` all that the objective knows."""
    hardware: str | Hardware | None = None
    """Hardware, or the name of some, for ``graph``; None: that of the
    objective (`go_rl.core.objective.TRAITS`)."""
    rules: str = "default"
    """Name of the rule set, for ``graph`` on a ring."""
    memory: bool | None = None
    """Whether weights and live tensors must fit, for ``graph``; None: unless a profile of another
    machine is used."""
    action: str = "node"
    """Form of the actions; see `TRAITS`."""
    observation: str = "dict"
    """One of `OBSERVATIONS`."""
    reward: str | None = None
    """Name of the reward (`go_rl.envs.rewards`); None: as in `TRAITS`."""
    failure_reward: float | None = None
    """Reward of an episode that ends without a usable plan; None: as the reward has it."""
    cost: str | CostModel = "auto"
    """Cost model of ``graph``: ``auto``, ``analytical``, ``profiled``,
    ``learned[:gpus|NAME|FILE]``, ``measured:DIR``, or a cost model."""
    max_nodes: int = AS_NEEDED
    """Rows of the padded node features."""
    max_edges: int = AS_NEEDED
    """Rows of the padded edge features."""

    def __post_init__(self) -> None:
        self._check_types()
        if (self.problem is None) == (self.graph is None):
            raise EnvironmentUseError("give either problem= or graph= (not both, not neither)")
        if self.objective is not None:
            check_choice("objective", self.objective, [str(name) for name in TRAITS])
        if self.decide is not None:
            known = self.resolved_objective.traits.decides
            names = decision_names(self.decide, known, EnvironmentUseError)
            object.__setattr__(self, "decide", names)
        check_choice("action", self.action, self.traits.actions)
        check_choice("observation", self.observation, OBSERVATIONS)
        check_reward(self.reward_name, self.failure_reward)
        if self.reward_name in SHAPED and not self._can_shape:
            raise EnvironmentUseError(
                f"reward {self.reward_name!r} needs a ring and action='node' or 'relative', not "
                f"{self.resolved_objective} and action={self.action!r}"
            )
        check_cost(self.cost)
        for name in ("max_nodes", "max_edges"):
            if getattr(self, name) < 0:
                raise EnvironmentUseError(f"{name} must be >= 0, not {getattr(self, name)}")
        if self.problem is not None:
            self._check_problems(several(self.problem))

    def _check_types(self) -> None:
        for name, (kinds, words) in KINDS.items():
            value = getattr(self, name)
            many = name in SEVERAL and isinstance(value, Sequence) and not isinstance(value, str)
            for one in value if many else (value,):
                if not isinstance(one, kinds) or (many and one is None):
                    raise EnvironmentUseError(f"{name} must be {words}, not {value!r}")

    @property
    def resolved_objective(self) -> Objective:
        """The objective of all problems."""
        if self.objective is not None:
            return Objective(self.objective)
        if self.problem is not None:
            found = several(self.problem)[0].objective
            return found if found in TRAITS else Objective.MAKESPAN
        if self.hardware is None:
            return Objective.MAKESPAN
        return OF_LINKS.get(self._hardware.links.topology, Objective.MAKESPAN)

    @property
    def traits(self) -> EnvironmentTraits:
        """Traits of the objective's environments."""
        return TRAITS[self.resolved_objective]

    @property
    def reward_name(self) -> str:
        """Name of the reward."""
        return self.traits.reward if self.reward is None else self.reward

    @property
    def _can_shape(self) -> bool:
        return self.action in self.traits.shaped

    @property
    def _hardware(self) -> Hardware:
        named = self.resolved_objective.traits.hardware if self.hardware is None else self.hardware
        return named if isinstance(named, Hardware) else load_hardware(named)

    def problems(self) -> tuple[Problem, ...]:
        """Return the problems, read and priced where ``graph`` names them.

        Raises:
            EnvironmentUseError: they do not fit the environment.
            ReadError, ZooError, ProblemError: a model cannot be read or does not fit the hardware.
        """
        if self.graph is None:
            return several(self.problem)
        graphs = [g if isinstance(g, OpGraph) else load_model(g) for g in several(self.graph)]
        self._check_links()
        for graph in graphs:
            self._check_direction(graph)
        found = tuple(make_problem(graph, self._hardware, self._options()) for graph in graphs)
        self._check_problems(found)
        return found

    def observer(self, problems: Sequence[Problem]) -> Observer:
        """Return what builds observations of these problems, padded as configured."""
        graphs = [problem.graph for problem in problems]
        return Observer(
            form=self.observation,
            max_nodes=self.max_nodes or max(g.num_nodes for g in graphs),
            max_edges=self.max_edges or max(1, *(g.num_edges for g in graphs)),
            devices=problems[0].hardware.num_devices,
            priorities="schedule" in self.resolved_objective.traits.decides,
        )

    def _options(self) -> ProblemOptions:
        return ProblemOptions(
            objective=self.resolved_objective,
            rules=rule_set(self.rules),
            memory=self.memory,
            cost_model=named_cost(self.cost, self._hardware),
            decisions=self.decide or DECISIONS,
        )

    def _check_problems(self, problems: Sequence[Problem]) -> None:
        first = problems[0]
        for problem in problems:
            self._check_kind(problem, first)
            name, count = problem.graph.name, problem.hardware.num_devices
            if count != first.hardware.num_devices:
                word = self.resolved_objective.traits.device
                raise EnvironmentUseError(
                    f"graph {name!r} has {count} {word}s and {first.graph.name!r} "
                    f"{first.hardware.num_devices}; all problems of an environment need as many"
                )
            self._check_size(name, "max_nodes", problem.graph.num_nodes)
            self._check_size(name, "max_edges", problem.graph.num_edges)

    def _check_links(self) -> None:
        """Check the hardware before `make_problem`, whose advice is of `go-rl optimize`."""
        traits, links = self.resolved_objective.traits, self._hardware.links.topology
        if not traits.topologies or links in traits.topologies:
            return
        other = IDS.get(OF_LINKS.get(links, self.resolved_objective))
        takes = f"; {other} takes {self._hardware.name!r}" if links in OF_LINKS else ""
        raise EnvironmentUseError(
            f"objective {self.resolved_objective} needs {traits.topology_hint[0]}; "
            f"{self._hardware.name!r} has {links} links: choose another, such as "
            f"{traits.hardware!r}{takes}"
        )

    def _check_direction(self, graph: OpGraph) -> None:
        """Check that no training graph is asked to go one way, for the same reason."""
        if self.resolved_objective.traits.is_pipeline and graph.is_backward.any():
            raise EnvironmentUseError(
                f"graph {graph.name!r} is a training graph, and a ring moves data one way only; "
                f"give the inference graph, or take {IDS[Objective.MAKESPAN]} with connected "
                "devices"
            )

    def _check_kind(self, problem: Problem, first: Problem) -> None:
        """Check the objective and what is decided."""
        name = problem.graph.name
        if problem.objective is not self.resolved_objective:
            known = self.objective is not None or first.objective is self.resolved_objective
            allowed = self.resolved_objective if known else " or ".join(TRAITS)
            raise EnvironmentUseError(
                f"graph {name!r}: the objective is {problem.objective}; this environment is for "
                f"{allowed}"
            )
        decided = decision_names(self.decide or first.decisions)
        joint = self.resolved_objective.traits.decides_several
        if joint and set(problem.decisions) != set(decided):
            raise EnvironmentUseError(
                f"graph {name!r}: the problem's decisions are {', '.join(problem.decisions)}; this "
                f"environment decides {', '.join(decided)}: make the problem with those decisions"
            )

    def _check_size(self, graph: str, field: str, needed: int) -> None:
        limit = getattr(self, field)
        if limit != AS_NEEDED and needed > limit:
            raise EnvironmentUseError(
                f"graph {graph!r} has {needed} {field[4:]}, more than {field}={limit}; give "
                f"{field}={needed} or more"
            )


def read_config(config: EnvironmentConfig | None, given: Mapping[str, Any]) -> EnvironmentConfig:
    """Return ``config``, or one made of keyword arguments.

    What a registered environment gives may go with a ``config`` that agrees.

    Raises:
        EnvironmentUseError: both are given, or an argument is unknown (the nearest is named).
    """
    if config is None:
        return from_arguments(given)
    if others := sorted(set(given) - set(OF_THE_ID)):
        raise EnvironmentUseError(f"give config= or {others}, not both")
    for name, mine in given.items():
        theirs = getattr(config, name)
        if theirs is not None and _words(theirs) != _words(mine):
            raise EnvironmentUseError(
                f"config.{name} is {', '.join(sorted(_words(theirs)))}; this environment is for "
                f"{', '.join(sorted(_words(mine)))}"
            )
    return replace(config, **given)


def _words(given: str | Sequence[str]) -> set[str]:
    return {name.strip() for name in (given.split(",") if isinstance(given, str) else given)}


def from_arguments(given: Mapping[str, Any]) -> EnvironmentConfig:
    """Return a configuration made of keyword arguments.

    Raises:
        EnvironmentUseError: an argument is unknown (the nearest is named).
    """
    known = [f.name for f in fields(EnvironmentConfig)]
    for name in given:
        if name not in known:
            raise EnvironmentUseError(f"unknown argument {name!r}{nearest(name, known)}")
    return EnvironmentConfig(**given)


def check_choice(field: str, value: str, allowed: Sequence[str]) -> None:
    """Raise an `EnvironmentUseError` that lists what is allowed."""
    if value not in allowed:
        raise EnvironmentUseError(
            f"unknown {field} {value!r}{nearest(str(value), allowed)} Use one of {list(allowed)}"
        )


def check_reward(name: str, failure: float | None) -> None:
    """Raise an `EnvironmentUseError` for an unknown reward, or one of failures that is infinite."""
    check_choice("reward", name, [*REWARDS, *SHAPED])
    if failure is not None and not np.isfinite(failure):
        raise EnvironmentUseError(f"failure_reward must be finite, not {failure}")


def several(given: Any) -> tuple[Any, ...]:
    """Return one problem, graph or path, or several of them, as a tuple.

    Raises:
        EnvironmentUseError: there is none.
    """
    found = (given,) if isinstance(given, (str, Path, Problem, OpGraph)) else tuple(given)
    if not found:
        raise EnvironmentUseError("no problem was given; at least one is needed")
    return found
