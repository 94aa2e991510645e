"""Better plans of the named problems: ``auto`` from the best known one, and a new frozen file.

Run: ``python -m experiments learning.best_known BOARD [--only PATTERN ...] [--seed 1]``, with a
folder for a leaderboard (`go_rl.graphs.zoo.leaderboard`), which takes what the checker accepts and
is better. A problem is searched once with each seed, and the page says what came of it; another
seed goes on from the best plan. ``--freeze`` writes the shipped file anew, with what the board has;
a version with which anything was scored is given another name in `go_rl.graphs.zoo.best_known`
first.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import partial
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

import numpy as np
import tyro

from experiments.experiment import Experiment, processor_seconds
from experiments.page_text import Column
from experiments.rows import grouped, in_turn, rows_table
from experiments.statistics import geometric_mean
from go_rl.compare.portfolio.portfolio import run
from go_rl.compare.submitted_plans import decision_arrays, frozen_plan, submit
from go_rl.core import Budget, Plan, Problem
from go_rl.costs.models.zoo_problem import priced_problem
from go_rl.graphs.zoo.best_known import (
    ARRAYS,
    BEST_VERSION,
    FOLDER,
    BestEntry,
    best_entries,
    best_known,
    write_best,
)
from go_rl.graphs.zoo.leaderboard import ENDING, LIST, best_of, read_board
from go_rl.graphs.zoo.problems import Part, ZooProblem, zoo_problems


@dataclass(frozen=True)
class VisitRow:
    """What a search of one problem came to."""

    problem: str
    seed: int
    objective: str
    budget: Annotated[float, Column("search [s]", ".0f")]
    before: Annotated[float, Column("before [ms]", ".4g")]
    """Milliseconds of the best plan known before; infinite where none was."""
    after: Annotated[float, Column("after [ms]", ".4g")]
    """Milliseconds of the best plan known afterwards; infinite where none is."""
    gap: Annotated[float, Column("above the bound", ".1%")]
    """Distance of that from the proven bound."""
    method: str
    """What found that."""


@dataclass(frozen=True)
class BestKnown(Experiment):
    """Options of this script."""

    board: tyro.conf.Positional[Path]
    """Folder of the leaderboard."""
    only: tuple[str, ...] = ("*",)
    """Names of problems, such as 'gnmt*ring36*'."""
    part: Part | None = None
    """One side of the split."""
    objective: Literal["ring", "makespan"] | None = None
    seconds: float = 60.0
    """Budget of ``auto`` on each problem, of the processor."""
    minutes: float = float("inf")
    """Time after which no search begins."""
    seed: int = 0
    """Random seed of the searches."""
    freeze: bool = False
    """Search nothing; write the file that ships."""
    frozen: Path = FOLDER
    """Folder of that file."""

    def run(self) -> None:
        """Search, or freeze."""
        if self.freeze:
            write_best(*self._best(), self.frozen)
            print(f"{BEST_VERSION}: {len(best_entries(self.frozen))} plans frozen")
            return
        named = {p.name: p for p in zoo_problems(self.part, self.objective)
                 if any(fnmatch(p.name, pattern) for pattern in self.only)}  # fmt: skip
        kept = self.kept_rows(VisitRow)
        ends = time.time() + 60 * self.minutes
        for problem in in_turn(named.values(), lambda p: (p.objective, p.family)):
            if time.time() < ends:
                kept.fill([(problem.name, self.seed)], lambda name, _: self._visit(named[name]))
        self.write_page(page(kept.rows))

    def _visit(self, named: ZooProblem) -> VisitRow:
        """Search on from the best plan known; return what came of it."""
        start = self._known(named)
        before = inf if start is None else start.evaluation.seconds
        extra = () if start is None else (KnownPlan(start),)
        with processor_seconds():
            found = run(priced_problem(named), budget=Budget(seconds=self.seconds), seed=self.seed,
                        extra=extra).best  # fmt: skip
        visited = partial(VisitRow, named.name, self.seed, named.objective, self.seconds)
        if not found.evaluation.status.ok:
            return visited(1e3 * before, inf, inf, "none")
        with TemporaryDirectory() as folder:
            path = Path(folder) / "plan.json"
            found.save(path)
            entry = submit(path, self.board, named.name).entry
        return visited(1e3 * before, 1e3 * entry.seconds, entry.gap, entry.method)

    def _known(self, named: ZooProblem) -> Plan | None:
        """The best plan of a problem, of the board or of what ships."""
        entry, source = best_of(named.name, self._listed(), self.board)
        if entry is None:
            return None
        if source == BEST_VERSION:
            return frozen_plan(named)
        return Plan.load(self.board / f"{named.name}{ENDING}")

    def _listed(self) -> Mapping[str, BestEntry]:
        return read_board(self.board) if (self.board / LIST).exists() else {}

    def _best(self) -> tuple[list[BestEntry], dict[str, np.ndarray]]:
        """Entries and decisions of all problems with a plan."""
        entries: list[BestEntry] = []
        arrays: dict[str, np.ndarray] = {}
        for named in zoo_problems():
            entry, source = best_of(named.name, self._listed(), self.board)
            if entry is None:
                continue
            entries.append(entry)
            if source == BEST_VERSION:
                known = best_known(named.name)
                decisions = {word: getattr(known, word) for word in ARRAYS}
            else:
                decisions = decision_arrays(Plan.load(self.board / f"{named.name}{ENDING}"))
            kept = {word: array for word, array in decisions.items() if array is not None}
            arrays |= {f"{named.name}/{word}": array for word, array in kept.items()}
        return entries, arrays


@dataclass(frozen=True)
class KnownPlan:
    """`Optimizer`: a plan that is known, from which ``auto`` goes on."""

    plan: Plan
    name: str = "best-known"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the plan."""
        return self.plan


def page(rows: Sequence[VisitRow]) -> str:
    """Return the page."""
    lines = [
        "# The best plans known, searched further", "",
        "`auto` goes on from the best plan known before, for the seconds of a processor that a row "
        "says; what the checker accepts and is shorter counts. No policy learns from these plans.",
        "",
    ]  # fmt: skip
    for objective, mine in grouped(rows, lambda row: row.objective).items():
        known = [row.after / row.before for row in mine if np.isfinite(row.before)]
        gain = f"; after over before {geometric_mean(known):.3f}" if known else ""
        lines += [f"## {objective}: {len(mine)} searches{gain}", "",
                  rows_table(mine, without=("objective",)), ""]  # fmt: skip
    return "\n".join(lines)
