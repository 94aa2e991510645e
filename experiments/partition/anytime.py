"""Whether more seconds help `auto`: its plan over the proven bound after 3, 10 and 40 s.

Run: ``python -m experiments partition.anytime``. Rings under strict rules and training iterations
with all decisions; every run is its own, none is read off a longer one. A row is written as soon as
it is known; rows that are there already are not run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import go_rl
from experiments.experiment import Experiment
from experiments.page_text import rounded
from experiments.rows import grouped
from experiments.statistics import with_range
from go_rl.api.options import OptimizeOptions
from go_rl.api.problem import problem_for
from go_rl.compare.portfolio import run
from go_rl.compare.portfolio.portfolio import compile_methods
from go_rl.core import Budget, Problem
from go_rl.report.text_table import markdown_table
from go_rl.verify.check_plan import check_plan

STRICT, ALL = "strict", "all decisions"
PROBLEMS = (
    ("gnmt-2-layers", "ring36", STRICT), ("dlrm-rm2", "ring36", STRICT),
    ("convdraw", "ring36", STRICT), ("gnmt-2-layers-training", "p100x2", ALL),
    ("unet", "ring36", STRICT), ("bert-base", "ring36", STRICT),
    ("wavenet-2x18-training", "p100x2", ALL), ("nasnet-mobile", "ring36", STRICT),
)  # fmt: skip
"""Graph, hardware, and rules or decisions; those that once ended worse after more seconds first."""
NOISE = 0.005
"""Relative difference between two runs that counts as none: the clock is not exact."""


@dataclass(frozen=True)
class Anytime(Experiment):
    """Options of this experiment."""

    seconds: tuple[float, ...] = (3.0, 10.0, 40.0)
    """Budgets."""
    seeds: int = 3
    """Runs of each budget."""
    only: str = ""
    """Graphs whose name contains this."""

    def run(self) -> None:
        """Run what is missing and write the page."""
        table = self.kept_rows(AnytimeRow)
        for key in PROBLEMS:
            if self.only not in key[0]:
                continue
            runs = [(s, seed) for seed in range(self.seeds) for s in self.seconds]
            missing = [(s, seed) for s, seed in runs if not table.has(*key, s, seed)]
            problem = _problem(*key) if missing else None
            for seconds, seed in missing:
                assert problem is not None
                table.add(_row(problem, key, seconds, seed))
        if table.rows:
            self.write_page(_page(table.rows))


@dataclass(frozen=True)
class AnytimeRow:
    """One run; the first five fields are its key."""

    graph: str
    hardware: str
    setting: str
    seconds: float
    seed: int
    value_ms: float
    bound_ms: float
    """Proved by this run."""
    method: str
    """That found the plan."""
    samples: int
    """Of all methods."""
    verdict: str
    """Of the independent checker."""


def _problem(name: str, hardware: str, setting: str) -> Problem:
    """Build a problem, with functions and networks compiled."""
    if setting == ALL:
        options = OptimizeOptions("makespan", hardware=hardware, cost="analytical")
    else:
        options = OptimizeOptions(rules="strict", hardware=hardware)
    problem = problem_for(go_rl.load(f"zoo:{name}"), options)
    compile_methods(problem.objective)
    run(problem, budget=Budget(samples=60, seconds=5.0), seed=99)
    return problem


def _row(problem: Problem, key: tuple[str, str, str], seconds: float, seed: int) -> AnytimeRow:
    result = run(problem, budget=Budget(seconds=seconds), seed=seed)
    return AnytimeRow(
        *key, seconds, seed, value_ms=rounded(1e3 * result.best.value),
        bound_ms=rounded(1e3 * result.bound), method=result.best.optimizer,
        samples=sum(plan.samples for plan in result.plans),
        verdict=str(check_plan(result.best, problem).status),
    )  # fmt: skip


def _page(rows: Sequence[AnytimeRow]) -> str:
    budgets = sorted({row.seconds for row in rows})
    lines, worse, pairs = [], 0, 0
    for key, own in grouped(rows, lambda r: (r.graph, r.hardware, r.setting)).items():
        bound = max(r.bound_ms for r in own)
        cells = [
            with_range([r.value_ms / bound for r in own if r.seconds == s], ".3f") for s in budgets
        ]
        for seed in sorted({r.seed for r in own}):
            values = [r.value_ms for s in budgets for r in own if (r.seconds, r.seed) == (s, seed)]
            later = list(pairwise(values))
            pairs += len(later)
            worse += sum(b > a * (1 + NOISE) for a, b in later)
        finders = ", ".join(dict.fromkeys(r.method for r in own if r.seconds == budgets[-1]))
        lines.append([*key, str(len({r.seed for r in own})), *cells, finders])
    times = (f"{s:g} s" for s in budgets)
    head = ["graph", "hardware", "rules or decisions", "seeds", *times, "found by"]
    return (
        "# More seconds for `auto`\n\n"
        "Plan over the best bound that any run of the row proved: mean of the seeds (smallest to "
        "largest). Every run is its own; seconds are wall-clock seconds of a shared machine with "
        "two busy cores, so a run does less in them than on a free one. *found by*: after the "
        "longest budget.\n\n"
        f"{markdown_table(head, lines)}\n\n"
        f"Of {pairs} pairs of a run and the next longer one with the same seed, {worse} ended "
        f"worse by more than {NOISE:.1%}.\n"
    )
