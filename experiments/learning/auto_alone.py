"""``auto`` beside itself without a policy, and beside every method alone for a third of the time.

Run: ``python -m experiments learning.auto_alone [--seconds 9] [--only 'moe*']``, on the zoo's
validation problems, or with ``--part test --no-alone`` on the test ones, without the methods alone
and with a page of its own, ``auto_test``. A user who gives ``auto`` nine seconds should not have
done better with one method and three. Seconds are those of the processor; compiling counts against
no budget. With ``--weights`` ``auto`` also runs with other weights of the objective.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cached_property
from itertools import product
from pathlib import Path

import numpy as np

from experiments.experiment import Experiment, processor_seconds
from experiments.learning.dispatch_curves import last_priced
from experiments.page_text import markdown_table
from experiments.rows import grouped
from experiments.statistics import geometric_mean, lead, lead_cell, mean_logs
from go_rl.compare.portfolio import run
from go_rl.compare.portfolio.portfolio import AUTO_METHOD, CLASSICAL_AUTO
from go_rl.compare.portfolio.registry import METHODS
from go_rl.core import Budget, Objective
from go_rl.graphs.zoo.index import zoo_entry
from go_rl.graphs.zoo.problems import Part, zoo_problem, zoo_problems
from go_rl.objectives.kits import KITS
from go_rl.policy.agent import Agent
from go_rl.policy.weights import load_weights

SHARE = 3
"""Times that ``auto`` has the seconds of a method."""
ALLOWED = 1.03
"""Ratio of ``auto`` to a method alone that counts as level."""


@dataclass(frozen=True)
class Row:
    """One problem planned by one method."""

    problem: str
    method: str
    budget: float
    """Seconds of the processor, as given to ``auto``."""
    seed: int
    value: float
    """Objective of the plan in seconds, inf where there is none."""


@dataclass(frozen=True)
class AutoAlone(Experiment):
    """Options of this experiment."""

    seconds: float = 9.0
    """Seconds of ``auto``; a method alone has a third."""
    only: tuple[str, ...] = ("*",)
    """Patterns of the problems' names."""
    weights: tuple[str, ...] = ()
    """Names or files of other weights of connected devices; those have no methods alone."""
    seeds: int = 1
    """Runs of ``auto``, with and without a policy; methods alone have one."""
    most_nodes: int = 6500
    """Largest graph."""
    part: Part = "validation"
    """Side of the split."""
    alone: bool = True
    """Run the methods alone, too."""

    @property
    def stem(self) -> Path:
        """Path of the page without its ending."""
        return self.out / ("auto_alone" if self.part == "validation" else f"auto_{self.part}")

    def run(self) -> None:
        """Make the missing rows, then the page."""
        kept = self.kept_rows(Row)
        kept.fill(self._asked(), self._row)
        self.write_page(page(kept.rows))

    def _asked(self) -> Iterator[tuple[str, str, float, int]]:
        """Yield the first fields of all rows."""
        for named in zoo_problems(self.part):
            wanted = any(fnmatch(named.name, pattern) for pattern in self.only)
            if wanted and zoo_entry(named.graph).nodes <= self.most_nodes:
                for method, runs in self._methods(Objective(named.objective)):
                    for seed in range(runs):
                        yield named.name, method, self.seconds, seed

    def _methods(self, objective: Objective) -> list[tuple[str, int]]:
        """``auto`` with and without policies, then, if they shall run alone, the methods of an
        objective but for its reference plans; each with its number of runs."""
        references = KITS[objective].search().references
        methods = [name for name in METHODS[objective] if name not in references and self.alone]
        others = self._agents if objective == Objective.MAKESPAN else ()
        autos = (AUTO_METHOD, CLASSICAL_AUTO, *others)
        return [(name, self.seeds) for name in autos] + [(name, 1) for name in methods]

    @cached_property
    def _agents(self) -> dict[str, Agent]:
        return {f"auto, {Path(name).parent.name or name}": load_weights(name).agent
                for name in self.weights}  # fmt: skip

    def _row(self, problem: str, method: str, seconds: float, seed: int) -> Row:
        budget = Budget(seconds=seconds / (1 if method.startswith(AUTO_METHOD) else SHARE))
        word, agent = method.partition(",")[0], self._agents.get(method)
        with processor_seconds():
            found = run(last_priced(zoo_problem(problem)), word, budget, seed, agent=agent)
        return Row(problem, method, seconds, seed, found.best.value)


def page(rows: list[Row]) -> str:
    """Return the page: leads of ``auto``, then problem by problem the best method alone."""
    parts = []
    for seconds in sorted({row.budget for row in rows}):
        some = [row for row in rows if row.budget == seconds]
        parts += [f"## {seconds:g} s", "", *_leads(some), "", *_alone(some, seconds), ""]
    return "\n".join([
        "# `auto`, `auto` without a policy, and each method alone", "",
        f"Problems of the zoo, {zoo_problem(rows[0].problem).part}; seconds are those of the "
        "processor. *Over `auto`*: the arm's seconds of an iteration over those of `auto` at equal "
        "time, geometric mean, families alike, with the 95 % interval over families; above 1, "
        "`auto` is ahead. Problems for which one of the two has no plan are left out.", "",
        *parts,
    ])  # fmt: skip


def _leads(rows: list[Row]) -> list[str]:
    """Table of the arms of ``auto`` over it, by objective."""
    arms = grouped(
        (row for row in rows if row.method.startswith(AUTO_METHOD) and np.isfinite(row.value)),
        lambda row: row.method,
    )
    logs = {arm: mean_logs((row.problem, row.value) for row in own) for arm, own in arms.items()}
    ours, cells = logs.pop(AUTO_METHOD, {}), []
    for objective, (arm, every) in product(("ring", "makespan"), logs.items()):
        mine = {p: log for p, log in every.items() if zoo_problem(p).objective == objective}
        if both := mine.keys() & ours.keys():
            found = lead(mine, ours, {name: zoo_problem(name).family for name in both})
            cells.append([objective, arm, str(len(both)), lead_cell(found)])
    return [markdown_table(["objective", "arm", "problems", "over `auto`"], cells)]


def _alone(rows: list[Row], seconds: float) -> list[str]:
    """Table of the best method alone, chosen afterwards, problem by problem."""
    values = {(row.problem, row.method): row.value for row in rows if row.seed == 0}
    cells, ratios = [], []
    for name in dict.fromkeys(row.problem for row in rows):
        alone = {
            method: value for (problem, method), value in values.items()
            if problem == name and not method.startswith(AUTO_METHOD)
        }  # fmt: skip
        if np.isfinite(min(alone.values(), default=np.inf)):
            best = min(alone, key=lambda method: alone[method])
            auto = values[name, AUTO_METHOD]
            ratios.append(auto / alone[best])
            verdict = "" if ratios[-1] <= ALLOWED else "behind"
            cells.append([name, f"{1e3 * auto:.4g}", best, f"{1e3 * alone[best]:.4g}",
                          f"{ratios[-1]:.3f}", verdict])  # fmt: skip
    heads = ["problem", "`auto`, ms", "best method alone", "ms", "`auto` over it", ""]
    if not cells:
        return []
    behind = sum(ratio > ALLOWED for ratio in ratios)
    return [
        f"Each method alone has {seconds / SHARE:g} s, a third. `auto` may be behind the best of "
        f"them, chosen afterwards, by {ALLOWED - 1:.0%}: it is by more on {behind} of "
        f"{len(ratios)} (geometric mean {geometric_mean(ratios):.3f}).", "",
        markdown_table(heads, cells),
    ]  # fmt: skip
