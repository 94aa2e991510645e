"""The problems that a policy of prototypes is pretrained on."""

from __future__ import annotations

import random
import re
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from go_rl.core import (
    DECISIONS,
    GoRLError,
    Hardware,
    Objective,
    Problem,
    TrainingError,
    load_hardware,
    rule_set,
)
from go_rl.costs.models import ProblemOptions, make_problem, named_cost
from go_rl.graphs.zoo.generate.generated import generated_model
from go_rl.graphs.zoo.index import TRAINED, generated_name, generated_seed, zoo_entry
from go_rl.graphs.zoo.problems import (
    CONNECTED_TEST_FAMILIES,
    CONNECTED_VALIDATION_FAMILIES,
    RULES,
    zoo_problems,
)
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.learn.config import DispatchTrainConfig, OrdersTrainConfig, PrototypeTrainConfig
from go_rl.policy.learn.problems.curriculum import is_own, short_name, stored_graph
from go_rl.policy.orders.orders_plans import OrdersPlans
from go_rl.policy.prototypes.plans import PrototypePlans

ZOO_TURNS = 4
"""Problems made of each graph of the zoo, and of each own model."""
OWN = "own"
"""Kind of users' models."""


@dataclass(frozen=True)
class PrototypeProblem:
    """A problem by the names of its parts."""

    graph: str
    """Graph of the zoo, a generated one included, or the path of an own model."""
    hardware: str
    decide: tuple[str, ...]
    """Decisions on connected devices; empty on a ring, under the strict rules."""
    cost: str
    """Cost model that prices it."""

    @property
    def name(self) -> str:
        """Unique within a run, fit for a file name: ``generated-2-17.p100x4.all.analytical``."""
        chosen = "all" if self.decide == DECISIONS else "-".join(self.decide) or RULES
        cost = re.sub(r"[^\w.-]", "-", self.cost)
        return f"{short_name(self.graph)}.{self.hardware}.{chosen}.{cost}"

    @property
    def kind(self) -> str:
        """Kind of network; all kinds count alike where prototypes are chosen."""
        if is_own(self.graph):
            return OWN
        seed = generated_seed(self.graph)
        return zoo_entry(self.graph).family if seed is None else generated_model(seed).kind


def training_problems(config: PrototypeTrainConfig) -> list[PrototypeProblem]:
    """Return the problems of a run, those that are held out included; the same seeds give the same
    problems whatever the number of them."""
    if config.graphs:
        return [each for path in config.graphs for each in _turns(path, config, ZOO_TURNS)]
    rings = isinstance(config, OrdersTrainConfig)
    seeds = range(config.generated)
    if rings:
        found = [_generated_ring(seed, config) for seed in seeds]
    else:
        found = [each for seed in seeds for each in _turns(generated_name(seed), config, 1)]
    if not config.zoo:
        return found
    return found + (_zoo_rings(config) if rings else _zoo_iterations(config))


def _generated_ring(seed: int, config: PrototypeTrainConfig) -> PrototypeProblem:
    """A generated network's inference function on a ring drawn by its seed."""
    draw = random.Random(seed)
    hardware = draw.choice(config.hardware)
    return PrototypeProblem(
        generated_name(seed, inference=True), hardware, (), draw.choice(config.cost)
    )


def _zoo_iterations(config: PrototypeTrainConfig) -> list[PrototypeProblem]:
    held_out = (*CONNECTED_TEST_FAMILIES, *CONNECTED_VALIDATION_FAMILIES)
    entries = [zoo_entry(f"{trained}-training") for trained in TRAINED]
    return [
        each
        for entry in entries
        if entry.family not in held_out and entry.nodes <= config.max_nodes
        for each in _turns(entry.name, config, ZOO_TURNS)
    ]


def _zoo_rings(config: PrototypeTrainConfig) -> list[PrototypeProblem]:
    return [
        PrototypeProblem(named.graph, named.hardware, (), cost)
        for named in zoo_problems("train", "ring")
        if zoo_entry(named.graph).nodes <= config.max_nodes
        for cost in dict.fromkeys(config.cost)
    ]


def _turns(graph: str, config: PrototypeTrainConfig, count: int) -> list[PrototypeProblem]:
    """Different problems of one graph, drawn by its name."""
    rng = np.random.default_rng([ord(letter) for letter in short_name(graph)])
    sets = config.decide if isinstance(config, DispatchTrainConfig) else ((),)
    found = {}
    for _ in range(count):
        hardware = config.hardware[int(rng.integers(len(config.hardware)))]
        decide = sets[int(rng.integers(len(sets)))]
        cost = config.cost[int(rng.integers(len(config.cost)))]
        problem = PrototypeProblem(graph, hardware, decide, cost)
        found[problem.name] = problem
    return list(found.values())


def split_problems(
    problems: list[PrototypeProblem], held_out: float
) -> tuple[list[PrototypeProblem], list[PrototypeProblem]]:
    """Return the problems that teach, and those that choose among weights; chosen by the graph's
    name, so that all problems of a graph are on one side, and kinds on both. Problems of one graph
    teach and choose."""
    bound = held_out * (1 << 32)
    aside = {p.graph: zlib.crc32(p.graph.encode()) < bound for p in problems}
    if len(aside) == 1:
        return problems, problems
    if len(set(aside.values())) == 1:  # too few to say
        aside[problems[0].graph] = not aside[problems[0].graph]
    return [p for p in problems if not aside[p.graph]], [p for p in problems if aside[p.graph]]


class ProblemSource:
    """Makes the problems of a run; generated graphs are traced once and kept in a folder."""

    def __init__(self, config: PrototypeTrainConfig, cache: Path) -> None:
        self._config, self._cache = config, cache

    def plans(self, problem: PrototypeProblem) -> PrototypePlans | None:
        """Return a problem as the policy sees it; None: there is nothing to decide, or no plan.

        Raises:
            GoRLError: an own model cannot be read, or is no problem of this objective.
        """
        graph = stored_graph(problem.graph, self._cache)
        if graph.num_nodes > self._config.max_nodes:
            if is_own(problem.graph):
                raise TrainingError(
                    f"train: {problem.graph} has {graph.num_nodes:,} nodes, and max_nodes is "
                    f"{self._config.max_nodes:,}; raise max_nodes, or leave it out"
                )
            return None
        try:
            found = _plans(make_problem(graph, *_given(problem)))
        except GoRLError as error:
            raise TrainingError(f"train: {problem.name}: {error}") from error
        return found if found.decides and found.units.num_units > 1 else None

    def searched(self, problem: PrototypeProblem) -> PrototypePlans:
        """Return a problem of which a search is known.

        Raises:
            TrainingError: it has more nodes than this run takes: the search is another run's.
        """
        found = self.plans(problem)
        if found is None:
            raise TrainingError(
                f"train: {problem.name} was searched by a run with another max_nodes than "
                f"{self._config.max_nodes:,}; give the same one, or another folder of searches"
            )
        return found


def _given(problem: PrototypeProblem) -> tuple[Hardware, ProblemOptions]:
    """Hardware and options."""
    devices = load_hardware(problem.hardware)
    cost = named_cost(problem.cost, devices)
    if not problem.decide:
        rules = rule_set(RULES)
        return devices, ProblemOptions(
            objective=Objective.RING, rules=rules, memory=True, cost_model=cost
        )
    return devices, ProblemOptions(
        objective=Objective.MAKESPAN, decisions=problem.decide, cost_model=cost
    )


def _plans(problem: Problem) -> PrototypePlans:
    if problem.objective is Objective.RING:
        return OrdersPlans(problem)
    return DispatchPlans(MakespanWorkspace(problem))
