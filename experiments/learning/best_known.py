"""Long runs of every method, for the best plans known: `go_rl.graphs.zoo.problems`.

Run: ``python -m experiments.learning.best_known --folder build/best [--only PATTERN ...]``, as
often as there is time: every visit goes on from the plan in the folder and only improves it. Beside
``NAME.plan.json``, which `go_rl.verify` has accepted, stands ``NAME.visits.json`` (`Visits`).
``--list`` prints what is there; ``freeze_best.py`` makes the shipped file of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

from experiments.experiment import Script, deadline
from experiments.learning.best_known_visit import Visit, read_visits, visit
from experiments.rows import in_turn
from go_rl.core import ZooError
from go_rl.graphs.zoo.problems import Part, ZooProblem, zoo_problems

ONE_THREAD = {
    "JAX_PLATFORMS": "cpu",
    "NUMBA_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
}
"""A worker takes one core."""
TASKS = 6
"""Problems that a worker takes on."""


@dataclass(frozen=True)
class BestKnown(Script):
    """Options of this script."""

    folder: Path = Path("build/best")
    """Where plans are kept."""
    only: tuple[str, ...] = ("*",)
    """Names of problems, such as 'gnmt*ring36*'."""
    part: Part | None = None
    """One side of the split."""
    objective: Literal["ring", "makespan"] | None = None
    methods: tuple[str, ...] = ()
    """Only these methods (go_rl.compare.portfolio.registry)."""
    processes: int = 1
    """Workers, one core each."""
    seconds: float = 60.0
    """Of the processor for each problem."""
    minutes: float = 0.0
    """Of the whole run: no search goes on after it; 0: any number."""
    closed: float = 1e-3
    """Gap to the bound that needs no search."""
    list: bool = False
    """Print what is known, and end."""

    def run(self) -> None:
        """Visit the problems, those with the fewest seconds so far first."""
        problems = self.problems()
        visits = {p.name: read_visits(self.folder, p.name) for p in problems}
        if self.list:
            for problem in problems:
                print(visits[problem.name].sentence(problem))
            return
        open_ones = [p for p in problems if not visits[p.name].closed(self.closed)]
        open_ones = least_first(open_ones, {name: known.seconds for name, known in visits.items()})
        print(
            f"{len(problems)} problems, {len(problems) - len(open_ones)} of them closed", flush=True
        )
        os.environ.update(ONE_THREAD)
        ends = deadline(self.minutes)
        asked = [Visit(p.name, self.folder, self.seconds, ends, self.methods) for p in open_ones]
        failed = 0
        # A worker keeps the workspaces of the problems it met: it is replaced after a few of them.
        with get_context("spawn").Pool(self.processes, maxtasksperchild=TASKS) as pool:
            for ok, sentence in pool.imap_unordered(attempt, asked):
                failed += not ok
                print(sentence, flush=True)
        if failed:
            sys.exit(1)

    def problems(self) -> Sequence[ZooProblem]:
        """Return the problems that the options name.

        Raises:
            ZooError: there is none.
        """
        named = zoo_problems(self.part, self.objective)
        found = [p for p in named if any(fnmatch(p.name, pattern) for pattern in self.only)]
        if not found:
            raise ZooError(f"no problem matches {' '.join(self.only)}; --list names them all")
        return found


def least_first(problems: Sequence[ZooProblem], spent: Mapping[str, float]) -> list[ZooProblem]:
    """Return the problems with the fewest seconds first; among equals, families take turns."""
    ordered = sorted(problems, key=lambda p: spent[p.name])
    turns = in_turn(ordered, lambda p: (p.objective, p.family))
    return sorted(turns, key=lambda p: spent[p.name] > 0)


def attempt(asked: Visit) -> tuple[bool, str]:
    """Visit a problem; a failure is a sentence, and the other problems go on."""
    try:
        return True, visit(asked)
    except Exception as error:
        return False, f"{asked.name}: failed: {type(error).__name__}: {error}"


if __name__ == "__main__":
    BestKnown.main()
