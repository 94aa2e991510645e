"""The problems that a dispatch policy is pretrained on."""

from __future__ import annotations

import re
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from go_rl.core import DECISIONS, GoRLError, Objective, TrainingError, load_hardware
from go_rl.costs.models import ProblemOptions, make_problem, named_cost
from go_rl.graphs.zoo.generate.generated import generated_model
from go_rl.graphs.zoo.index import TRAINED, generated_name, generated_seed, zoo_entry
from go_rl.graphs.zoo.problems import CONNECTED_TEST_FAMILIES, CONNECTED_VALIDATION_FAMILIES
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.learn.config import DispatchTrainConfig
from go_rl.policy.learn.problems.curriculum import is_own, short_name, stored_graph

ZOO_TURNS = 4
"""Problems made of each graph of the zoo, and of each own model."""
OWN = "own"
"""Kind of users' models."""


@dataclass(frozen=True)
class DispatchProblem:
    """A problem by the names of its parts."""

    graph: str
    """Graph of the zoo, a generated one included, or the path of an own model."""
    hardware: str
    decide: tuple[str, ...]
    cost: str
    """Cost model that prices it."""

    @property
    def name(self) -> str:
        """Unique within a run, fit for a file name: ``generated-2-17.p100x4.all.analytical``."""
        chosen = "all" if self.decide == DECISIONS else "-".join(self.decide)
        cost = re.sub(r"[^\w.-]", "-", self.cost)
        return f"{short_name(self.graph)}.{self.hardware}.{chosen}.{cost}"

    @property
    def kind(self) -> str:
        """Kind of network; all kinds count alike where prototypes are chosen."""
        if is_own(self.graph):
            return OWN
        seed = generated_seed(self.graph)
        return zoo_entry(self.graph).family if seed is None else generated_model(seed).kind


def training_problems(config: DispatchTrainConfig) -> list[DispatchProblem]:
    """Return the problems of a run, those that are held out included; the same seeds give the same
    problems whatever the number of them."""
    if config.graphs:
        return [each for path in config.graphs for each in _turns(path, config, ZOO_TURNS)]
    found = [
        each for seed in range(config.generated) for each in _turns(generated_name(seed), config, 1)
    ]
    held_out = (*CONNECTED_TEST_FAMILIES, *CONNECTED_VALIDATION_FAMILIES)
    for trained in TRAINED if config.zoo else ():
        entry = zoo_entry(f"{trained}-training")
        if entry.family not in held_out and entry.nodes <= config.max_nodes:
            found += _turns(entry.name, config, ZOO_TURNS)
    return found


def _turns(graph: str, config: DispatchTrainConfig, count: int) -> list[DispatchProblem]:
    """Different problems of one graph, drawn by its name."""
    rng = np.random.default_rng([ord(letter) for letter in short_name(graph)])
    found = {}
    for _ in range(count):
        hardware = config.hardware[int(rng.integers(len(config.hardware)))]
        decide = config.decide[int(rng.integers(len(config.decide)))]
        cost = config.cost[int(rng.integers(len(config.cost)))]
        problem = DispatchProblem(graph, hardware, decide, cost)
        found[problem.name] = problem
    return list(found.values())


def split_problems(
    problems: list[DispatchProblem], held_out: float
) -> tuple[list[DispatchProblem], list[DispatchProblem]]:
    """Return the problems that teach, and those that choose among weights; chosen by the graph's
    name, so that all problems of a graph are on one side, and kinds on both."""
    bound = held_out * (1 << 32)
    aside = {p.graph: zlib.crc32(p.graph.encode()) < bound for p in problems}
    if len(set(aside.values())) == 1:  # too few to say
        aside[problems[0].graph] = not aside[problems[0].graph]
    return [p for p in problems if not aside[p.graph]], [p for p in problems if aside[p.graph]]


class ProblemSource:
    """Makes the problems of a run; generated graphs are traced once and kept in a folder."""

    def __init__(self, config: DispatchTrainConfig, cache: Path) -> None:
        self._config, self._cache = config, cache

    def plans(self, problem: DispatchProblem) -> DispatchPlans | None:
        """Return a problem as a dispatcher sees it; None: there is nothing to decide, or no plan.

        Raises:
            GoRLError: an own model cannot be read, or is no problem of this objective.
        """
        devices = load_hardware(problem.hardware)
        options = ProblemOptions(
            objective=Objective.MAKESPAN, decisions=problem.decide,
            cost_model=named_cost(problem.cost, devices),
        )  # fmt: skip
        graph = stored_graph(problem.graph, self._cache)
        if graph.num_nodes > self._config.max_nodes:
            if is_own(problem.graph):
                raise TrainingError(
                    f"train: {problem.graph} has {graph.num_nodes:,} nodes, and max_nodes is "
                    f"{self._config.max_nodes:,}; raise max_nodes, or leave it out"
                )
            return None
        try:
            found = DispatchPlans(MakespanWorkspace(make_problem(graph, devices, options)))
        except GoRLError as error:
            raise TrainingError(f"train: {problem.name}: {error}") from error
        return found if found.decides and found.units.num_units > 1 else None
