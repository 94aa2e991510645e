"""Better plans of the named problems: ``auto`` from the best known one, and a new frozen file.

Run: ``python -m experiments learning.best_known BOARD [--only PATTERN ...] [--seed 1]``, as often
as there is time, with a folder for a leaderboard (`go_rl.graphs.zoo.leaderboard`), which takes what
the checker accepts and is better. ``--freeze`` writes the shipped file anew, with what the board
has; a version with which anything was scored is given another name in `go_rl.graphs.zoo.best_known`
first.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

import numpy as np
import tyro

from experiments.experiment import Script, say
from experiments.rows import in_turn
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
class BestKnown(Script):
    """Options of this script."""

    board: tyro.conf.Positional[Path]
    """Folder of the leaderboard."""
    only: tuple[str, ...] = ("*",)
    """Names of problems, such as 'gnmt*ring36*'."""
    part: Part | None = None
    """One side of the split."""
    objective: Literal["ring", "makespan"] | None = None
    seconds: float = 60.0
    """Budget of ``auto`` on each problem."""
    minutes: float = float("inf")
    """Time after which no search begins."""
    seed: int = 0
    """Random seed of the searches."""
    freeze: bool = False
    """Search nothing; write the file that ships."""
    out: Path = FOLDER
    """Folder of that file."""

    def run(self) -> None:
        """Search, or freeze."""
        if self.freeze:
            write_best(*self._best(), self.out)
            print(f"{BEST_VERSION}: {len(best_entries(self.out))} plans frozen")
            return
        named = [p for p in zoo_problems(self.part, self.objective)
                 if any(fnmatch(p.name, pattern) for pattern in self.only)]  # fmt: skip
        ends = time.time() + 60 * self.minutes
        for number, problem in enumerate(in_turn(named, lambda p: (p.objective, p.family))):
            if time.time() < ends:
                say(number, self._visit(problem))

    def _visit(self, named: ZooProblem) -> str:
        """Search on from the best plan known; return what came of it."""
        start = self._known(named)
        extra = () if start is None else (KnownPlan(start),)
        found = run(priced_problem(named), budget=Budget(seconds=self.seconds), seed=self.seed,
                    extra=extra).best  # fmt: skip
        if not found.evaluation.status.ok:
            return f"{named.name}: no plan"
        with TemporaryDirectory() as folder:
            path = Path(folder) / "plan.json"
            found.save(path)
            outcome = submit(path, self.board, named.name)
        said = "better" if outcome.accepted else "as before"
        return f"{named.name}: {outcome.entry.seconds:.6g} s by {outcome.entry.method}, {said}"

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
