"""What there is to win on the named problems: reference R, best-known B, and log(R/B).

Run: ``python -m experiments.learning.headroom [--only-pages] [--minutes 9]``, as often as there is
time. Every classical method runs on the validation problems; the one whose plans are nearest to the
fastest is the reference of its objective, and alone runs on the other parts. Nothing of this looks
at B. A pilot run says how many samples the processor's seconds buy.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from experiments.experiment import Experiment, deadline, timed
from experiments.learning.headroom_measure import REFERENCE_SECONDS, Headroom
from experiments.page_text import NOTHING, grid_table
from experiments.rows import KeptRows, in_turn
from experiments.statistics import geometric_mean
from go_rl.compare.portfolio.registry import METHODS
from go_rl.core import Budget, Optimizer, Plan, Problem
from go_rl.costs.models.zoo_problem import priced_problem
from go_rl.graphs.zoo.best_known import BEST_VERSION, FOLDER, BestEntry, best_entries
from go_rl.graphs.zoo.problems import ZooProblem, zoo_problems
from go_rl.report.text_table import markdown_table

NAME = "headroom"
CLASSICAL = {
    "ring": (
        "linear-dp", "annealing", "metis", "ideal-dp", "order-search", "unit-annealing",
        "local-search",
    ),
    "makespan": ("composed", "annealing", "heft", "expert", "metis", "fusion-greedy"),
}  # fmt: skip
"""Single methods that do not learn, by objective."""
UNCOUNTED = ("ideal-dp",)
"""Methods that count no samples: they get the seconds on the clock."""
PILOT, GROWTH = 40, 25
"""Samples of the first run that says how many the seconds buy, and the largest factor from one run
to the next, until one takes the seconds."""
FIRST_SEED = 1_000
"""Seeds from here on are scored nowhere else."""
NEARLY = 0.9
"""Share of the seconds, or of the samples that they buy, that counts as all of them."""
ROUNDS = 2_000
"""Runs with new seeds of a method that ends before the seconds do."""


@dataclass(frozen=True)
class HeadroomExperiment(Experiment):
    """Options of this experiment."""

    only: tuple[str, ...] = ("*",)
    """Patterns of names of problems."""
    objective: str = ""
    """ring or makespan; empty: both."""
    seeds: int = 3
    """Runs of a reference method on each problem."""
    parts: tuple[str, ...] = ("validation", "test")
    """Sides of the split on which the reference runs."""
    best: Path = FOLDER
    """Folder of the frozen best-known plans, for the page."""
    minutes: float = 0.0
    """Time after which no run begins; 0: none."""
    only_pages: bool = False
    """Run nothing."""

    def run(self) -> None:
        """Make the missing runs, then the page."""
        table = self.kept_rows(Run)
        ends = deadline(self.minutes)
        for objective in CLASSICAL:
            if self.only_pages or self.objective not in ("", objective):
                continue
            for problem in _named(objective, self, ("validation",)):
                if not _run_missing(table, problem, CLASSICAL[objective], 1, ends):
                    return
            chosen = reference_method(objective, table.rows)
            if chosen is not None:
                for problem in _named(objective, self, self.parts):
                    if not _run_missing(table, problem, (chosen,), self.seeds, ends):
                        return
        self.write_page(page(table.rows, best_entries(self.best)))


@dataclass(frozen=True)
class Run:
    """One run of a method."""

    problem: str
    method: str
    seed: int
    value: float
    """Seconds an iteration; inf: no plan."""
    samples: int
    processor_seconds: float


def reference_method(objective: str, rows: Iterable[Run]) -> str | None:
    """Return the method with the smallest mean on validation of log(T / fastest plan of them all),
    failures counted as twice that plan; None where validation was not run."""
    ratios = validation_ratios(objective, rows)
    means = {
        method: np.mean(np.log(np.nan_to_num(of, posinf=2.0))) for method, of in ratios.items()
    }
    return min(means, key=lambda method: float(means[method]), default=None)


def validation_ratios(objective: str, rows: Iterable[Run]) -> dict[str, list[float]]:
    """Return T / fastest plan of them all on each validation problem, by method; inf: no plan.

    Of a method that ran with several seeds only the first counts: the reference ran with more after
    it was chosen.
    """
    names = {p.name for p in zoo_problems("validation") if p.objective == objective}
    first: dict[tuple[str, str], float] = {}
    fastest: dict[str, float] = defaultdict(lambda: np.inf)
    for row in rows:
        if row.problem in names and (row.problem, row.method) not in first:
            first[row.problem, row.method] = row.value
            fastest[row.problem] = min(fastest[row.problem], row.value)
    found = defaultdict(list)
    for (problem, method), value in first.items():
        if np.isfinite(fastest[problem]):
            found[method].append(value / fastest[problem])
    return dict(found)


def headrooms(
    objective: str, rows: Iterable[Run], known: Mapping[str, BestEntry]
) -> list[tuple[ZooProblem, Headroom]]:
    """Return the headroom of all problems with a best-known plan, and with plans of the reference
    from two seeds or more."""
    rows = list(rows)
    chosen, found = reference_method(objective, rows), []
    for problem in zoo_problems():
        if problem.objective != objective or problem.name not in known:
            continue
        values = [
            r.value
            for r in rows
            if (r.problem, r.method) == (problem.name, chosen) and np.isfinite(r.value)
        ]
        if len(values) >= 2:
            best = min(known[problem.name].seconds, *values)
            found.append((problem, Headroom(problem.name, problem.family, tuple(values), best)))
    return found


def page(rows: Iterable[Run], known: Mapping[str, BestEntry]) -> str:
    """Return the page."""
    rows = list(rows)
    text = (
        "# What there is to win on the named problems\n\n"
        f"R is the median plan of the reference method after {REFERENCE_SECONDS:.0f} seconds of a "
        f"processor, B the best-known plan of {BEST_VERSION} (or of R's seeds, where one is "
        "better). A problem enters with log(R/B) of 3 % and three seed errors.\n"
    )
    for objective in CLASSICAL:
        found = headrooms(objective, rows, known)
        text += f"\n## {objective}: reference {reference_method(objective, rows) or NOTHING}\n\n"
        text += _validation_table(objective, rows) + "\n"
        for part in ("test", "validation", "train"):
            here = [(p, h) for p, h in found if p.part == part]
            entered = [p for p, h in here if h.enters]
            total = len([p for p in zoo_problems(part) if p.objective == objective])
            families = Counter(p.family for p in entered)
            shares = ", ".join(f"{name} {count}" for name, count in sorted(families.items()))
            text += (
                f"\n### {part}: {len(entered)} problems of {len(families)} families enter; "
                f"{len(here)} of {total} measured\n\n{shares}\n\n"
                f"{_without_reference(objective, part, rows)}"
            )
            text += markdown_table(
                ["problem", "family", "R, ms", "B, ms", "log(R/B)", "seed error", "enters"],
                [_cells(p, h) for p, h in here],
            )
    return text


def _without_reference(objective: str, part: str, rows: list[Run]) -> str:
    chosen = reference_method(objective, rows)
    plans: dict[str, int] = Counter()
    for row in rows:
        if row.method == chosen:
            plans[row.problem] += int(np.isfinite(row.value))
    named = [p.name for p in zoo_problems(part) if p.objective == objective]
    lost = [name for name in named if plans.get(name, 2) < 2]
    if not lost:
        return ""
    return f"The reference method found no plan with two seeds on {', '.join(lost)}.\n\n"


def _cells(problem: ZooProblem, headroom: Headroom) -> list[str]:
    return [
        problem.name, problem.family, f"{1e3 * headroom.reference:.5g}",
        f"{1e3 * headroom.best:.5g}", f"{headroom.room:.3f}", f"{headroom.seed_error:.3f}",
        "yes" if headroom.enters else "no",
    ]  # fmt: skip


def _validation_table(objective: str, rows: list[Run]) -> str:
    columns: dict[str, Callable[[list[float]], str]] = {
        "runs": lambda ratios: str(len(ratios)),
        "T / fastest of them all": lambda ratios: f"{geometric_mean(ratios):.3f}",
        "without a plan": lambda ratios: str(sum(not np.isfinite(r) for r in ratios)),
    }
    lost = dict(sorted(validation_ratios(objective, rows).items()))
    return grid_table("method on validation", lost, columns)


def _named(objective: str, options: HeadroomExperiment, parts: tuple[str, ...]) -> list[ZooProblem]:
    """Return the chosen problems, part by part, in which families take turns."""
    chosen = [
        problem
        for problem in zoo_problems()
        if problem.objective == objective
        and any(fnmatch(problem.name, pattern) for pattern in options.only)
    ]
    return [
        problem
        for part in parts
        for problem in in_turn((p for p in chosen if p.part == part), lambda p: p.family)
    ]


def _run_missing(
    table: KeptRows[Run], named: ZooProblem, methods: Iterable[str], seeds: int, ends: float
) -> bool:
    """Make the runs of a problem that are not in the table; False when time ran out before."""
    missing = [
        (method, seed)
        for method in methods
        for seed in range(FIRST_SEED, FIRST_SEED + seeds)
        if not table.has(named.name, method, seed)
    ]
    problem = priced_problem(named) if missing else None
    for method, seed in missing:
        if time.time() >= ends:
            return False
        assert problem is not None
        make = METHODS[problem.objective][method]
        make().optimize(problem, Budget(samples=2, seconds=1.0), seed)  # compiles
        plan, spent = within(problem, method, make, seed, _pilot(table.rows, named.name, method))
        table.add(Run(named.name, method, seed, plan.value, plan.samples, round(spent, 2)))
        print(table.rows[-1], flush=True)
    return True


def _pilot(rows: Iterable[Run], problem: str, method: str) -> int:
    """Samples with which to begin: those that the seconds bought with another seed."""
    known = [
        row.samples
        for row in rows
        if (row.problem, row.method) == (problem, method)
        if row.processor_seconds >= NEARLY * REFERENCE_SECONDS
    ]
    return max(PILOT, min(known)) if known else PILOT


def within(
    problem: Problem, method: str, make: Callable[[], Optimizer], seed: int, pilot: int = PILOT
) -> tuple[Plan, float]:
    """Return the plan of a method after `REFERENCE_SECONDS` of the processor, and the seconds.

    A method that ends sooner runs again with further seeds.
    """
    if method in UNCOUNTED:
        return _planned(problem, make(), Budget(seconds=REFERENCE_SECONDS), seed)
    samples, best, total = _as_many(problem, make, seed, pilot)
    for round_ in range(1, ROUNDS):
        if (
            best.optimal
            or not best.samples
            or total >= NEARLY * REFERENCE_SECONDS
            or best.samples >= NEARLY * samples
        ):
            break
        plan, spent = _planned(problem, make(), Budget(samples=samples), seed + FIRST_SEED * round_)
        total += spent
        best = min(best, plan, key=lambda p: p.value)
    return best, total


def _as_many(
    problem: Problem, make: Callable[[], Optimizer], seed: int, pilot: int
) -> tuple[int, Plan, float]:
    """Return the samples that the seconds buy, and the plan and seconds of a run with them.

    Each run extrapolates from the two before it, for a method may take long before its first
    sample; a method that ends before its samples do gets no more.
    """
    before, samples = (0, 0.0), pilot
    while True:
        plan, spent = _planned(problem, make(), Budget(samples=samples), seed)
        ended = plan.optimal or plan.samples < NEARLY * samples
        if ended or spent >= NEARLY * REFERENCE_SECONDS:
            return samples, plan, spent
        each = max((spent - before[1]) / (samples - before[0]), 1e-7)
        before = samples, spent
        more = (REFERENCE_SECONDS - spent) / each
        samples += max(1, int(min(more, (GROWTH - 1) * samples)))


def _planned(
    problem: Problem, optimizer: Optimizer, budget: Budget, seed: int
) -> tuple[Plan, float]:
    """Return a plan and the seconds of the processor that it took."""
    return timed(lambda: optimizer.optimize(problem, budget, seed), time.process_time)


if __name__ == "__main__":
    HeadroomExperiment.main()
