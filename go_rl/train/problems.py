"""The problems of a training run: graphs of the zoo on packages under rules."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from go_rl.core import OpGraph, TrainingError, load_hardware, rule_set
from go_rl.cost import ProblemOptions, make_problem, named_cost
from go_rl.train.baseline import RunningBaseline
from go_rl.train.collect import Case
from go_rl.train.config import TrainConfig
from go_rl.zoo import zoo_entry, zoo_graph, zoo_names

KEPT = 256
"""Problems whose solvers stay in memory."""
DULL = 2e-3
"""Standard deviation of the rewards of a problem that teaches nothing."""
PASSED_OVER = 0.9
"""Share of the draws of such a problem that are not used."""


class Problems:
    """All problems of a run; solvers are built when a problem is first drawn."""

    def __init__(self, config: TrainConfig) -> None:
        self.config = config
        self.train = _small(config.split, config.max_nodes)
        self.validation = _small(config.validation, config.max_nodes)
        if not self.train or not self.validation:
            raise TrainingError(
                f"train: no graph of split {config.split!r} or {config.validation!r} has at most "
                f"max_nodes={config.max_nodes} nodes; raise max_nodes"
            )
        self._case = lru_cache(KEPT)(_case)

    def draw(self, step: int, baseline: RunningBaseline) -> list[Case]:
        """Return the problems of one update; the same step and baseline give the same problems.

        A problem on which all orders were worth the same teaches nothing: it is mostly passed over.
        """
        config = self.config
        rng = np.random.default_rng((config.seed, step))
        chosen: list[Case] = []
        while len(chosen) < config.graphs:
            name = self.train[int(rng.integers(len(self.train)))]
            hardware = config.packages[int(rng.integers(len(config.packages)))]
            rules = config.rules[int(rng.integers(len(config.rules)))]
            case = self._case(name, hardware, rules, config.cost)
            passed_over = rng.random() < PASSED_OVER
            if passed_over and baseline.deviation(f"{case.name}/order") < DULL:
                continue
            if case.rollouts.workspace.solver.feasible_so_far:
                chosen.append(case)
        return chosen

    def validation_cases(self) -> Iterator[Case]:
        """Yield the validation problems."""
        for name in self.validation:
            for hardware in self.config.validation_packages:
                yield self._case(name, hardware, "strict", self.config.cost)


def _small(split: str, max_nodes: int) -> list[str]:
    return [name for name in zoo_names(split) if zoo_entry(name).nodes <= max_nodes]


def _case(name: str, hardware: str, rules: str, cost: str) -> Case:
    graph: OpGraph = zoo_graph(name)
    chips = load_hardware(hardware)
    options = ProblemOptions(
        rules=rule_set(rules), memory=False, cost_model=named_cost(cost, chips)
    )
    return Case(f"{name}/{hardware}/{rules}", make_problem(graph, chips, options))
