"""The orders policy of rings beside its control arms and its rivals, where it never learned.

Run: ``python -m experiments learning.order_arms [--weights FILE ...]`` on the zoo's validation
rings and on generated networks whose seeds lie beyond all that training takes; with ``--part test``
on the zoo's test rings, with a page of its own, ``order_test``. All arms take the same solver:

- *policy*: the prototypes in their order, then the search from the best of them;
- *random prototypes*: as many random weights in their place;
- *untrained*: `OrderSearch`, which begins with each reference order and random mixtures;
- at equal seconds of the processor: *untrained*, unit-annealing, local search, linear DP and the
  published form of policy.

Finished rows are kept; a second start goes on there.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np

from experiments.experiment import Experiment
from experiments.learning.dispatch_arms import FIRST_SEED, family
from experiments.learning.dispatch_curves import last_priced
from experiments.page_text import table_lines
from experiments.rows import grouped
from experiments.statistics import lead, lead_cell, mean_logs
from go_rl.compare.portfolio.portfolio import compile_methods
from go_rl.compare.portfolio.registry import METHODS
from go_rl.core import Budget, Objective, Optimizer
from go_rl.graphs.zoo.index import generated_name, generated_seed, zoo_entry
from go_rl.graphs.zoo.problems import Part, ZooProblem, zoo_problems
from go_rl.objectives.ring.methods.order_search import OrderSearch
from go_rl.policy.agent import Agent
from go_rl.policy.learn.config import OrdersTrainConfig
from go_rl.policy.orders.order_policy_search import OrderPolicySearch
from go_rl.policy.weights import load_weights

COUNTS = (1, 5, 20, 64, 200)
"""Orders whose best is compared."""
CONTROLS = {"random prototypes": "untrained"}
TIMED = ("order-policy", "order-search", "unit-annealing", "local-search", "linear-dp", "policy")
"""Methods that run for equal seconds."""


@dataclass(frozen=True)
class Row:
    """The best of the first so many orders of an arm on a ring; inf where there is no plan."""

    problem: str
    family: str
    arm: str
    seed: int
    count: float
    """Orders, or seconds of the processor."""
    value: float
    """Seconds of an iteration."""


@dataclass(frozen=True)
class OrderArms(Experiment):
    """Options of this experiment."""

    weights: tuple[str, ...] = ("orders-1.0",)
    """The policy by its training seeds, the one that ships first."""
    part: Part = "validation"
    """Side of the zoo's split."""
    generated: int = 40
    """Generated networks on validation."""
    seeds: int = 3
    """Evaluation seeds."""
    seconds: float = 1.0
    """Seconds of the processor of methods at equal seconds."""
    only: tuple[str, ...] = ("*",)
    """Patterns of the problems' names."""
    most_nodes: int = 6500
    """Largest graph."""

    @property
    def stem(self) -> Path:
        """Path of the page without its ending."""
        return self.out / ("order_arms" if self.part == "validation" else f"order_{self.part}")

    def run(self) -> None:
        """Make the missing rows, then the page."""
        kept = self.kept_rows(Row)
        compile_methods(Objective.RING)
        named = {problem.name: problem for problem in self._problems()}
        arms = [*product(("policy", "untrained", *CONTROLS), range(self.seeds))]
        timed = [(f"{name}, seconds", 0) for name in TIMED]
        kept.fill(
            ((name, *arm) for name, ring in named.items()
             for arm in arms + timed * (generated_seed(ring.graph) is None)),
            lambda name, arm, seed: self._rows(named[name], arm, seed),
            ("problem", "arm", "seed"),
        )  # fmt: skip
        self.write_page(page(kept.rows, self))

    def _problems(self) -> Iterator[ZooProblem]:
        for named in zoo_problems(self.part, "ring"):
            wanted = any(fnmatch(named.name, pattern) for pattern in self.only)
            if wanted and zoo_entry(named.graph).nodes <= self.most_nodes:
                yield named
        hardware = OrdersTrainConfig().hardware
        for i in range(self.generated if self.part == "validation" else 0):
            name = generated_name(FIRST_SEED + i, inference=True)
            yield ZooProblem(name, hardware[i // 10 % len(hardware)], "ring", ("placement",))

    def _rows(self, named: ZooProblem, arm: str, seed: int) -> Iterator[Row]:
        """Yield the rows of an arm on a ring."""
        kind, problem = family(named), last_priced(named)
        if arm.endswith(", seconds"):
            made = METHODS[Objective.RING][arm.partition(",")[0]]()
            with mock.patch.object(time, "perf_counter", time.process_time):
                plan = made.optimize(problem, Budget(seconds=self.seconds), seed)
            yield Row(named.name, kind, arm, seed, self.seconds, plan.value)
            return
        plan = self._optimizer(arm, seed).optimize(problem, Budget(samples=max(COUNTS)), seed)
        for count in COUNTS:
            best = min((p.seconds for p in plan.curve if p.samples <= count), default=np.inf)
            yield Row(named.name, kind, arm, seed, count, best)

    def _optimizer(self, arm: str, seed: int) -> Optimizer:
        if arm == "untrained":
            return OrderSearch()
        agent = self._agents[seed % len(self._agents)]
        return OrderPolicySearch(agent, CONTROLS.get(arm))

    @cached_property
    def _agents(self) -> list[Agent]:
        return [load_weights(weights).agent for weights in self.weights]


def page(rows: list[Row], options: OrderArms) -> str:
    """Return the page: arms at equal orders, methods at equal seconds."""
    lines = [
        "# The orders policy of rings beside its control arms", "",
        f"Rings of {'validation' if options.part == 'validation' else 'the frozen test'} families. "
        "*Over the policy*: the arm's seconds of an iteration over those of the policy, geometric "
        "mean over problems, families or kinds alike, with the 95 % interval over families "
        "(bootstrap); above 1, the policy is ahead. *Above the best*: of the policy over the best "
        "plan of all arms here.", "",
    ]  # fmt: skip
    for title, generated in (("The zoo's families", False), ("Generated networks", True)):
        some = [row for row in rows if row.problem.startswith("generated") == generated]
        if some:
            lines += [f"## {title}: {len({row.problem for row in some})} rings, "
                      f"{len({row.family for row in some})} families or kinds", "",
                      *_by_count(some), "", *_by_seconds(some), ""]  # fmt: skip
    return "\n".join(lines)


def _by_count(rows: list[Row]) -> list[str]:
    policy = {k: _logs(rows, "policy", k) for k in COUNTS}
    cells = [
        [arm, *(_over(_logs(rows, arm, k), policy[k], rows) for k in COUNTS)]
        for arm in ("untrained", *CONTROLS)
    ]
    problems = grouped(rows, lambda row: row.problem)
    best = mean_logs((name, min(row.value for row in own)) for name, own in problems.items())
    cells.append(["the policy above the best", *(_over(policy[k], best, rows) for k in COUNTS)])
    return table_lines(["over the policy", *(f"{k} orders" for k in COUNTS)], cells)


def _by_seconds(rows: list[Row]) -> list[str]:
    timed = [row for row in rows if row.arm.endswith(", seconds")]
    if not timed:
        return []
    seconds = timed[0].count
    found = {name: _logs(timed, f"{name}, seconds", seconds) for name in TIMED}
    ours = found.pop(TIMED[0])
    cells = [[name, _over(logs, ours, timed)] for name, logs in found.items()]
    heads = ["method", f"over order-policy, {seconds:g} s of the processor each"]
    return table_lines(heads, cells)


def _logs(rows: list[Row], arm: str, count: float) -> dict[str, float]:
    """Log seconds of an arm by problem, the mean over its seeds; problems without a plan are
    left out."""
    return mean_logs(
        (row.problem, row.value) for row in rows if (row.arm, row.count) == (arm, count)
    )


def _over(mine: dict[str, float], other: dict[str, float], rows: list[Row]) -> str:
    return lead_cell(lead(mine, other, {row.problem: row.family for row in rows}))
