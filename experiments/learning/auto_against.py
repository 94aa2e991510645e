"""``auto`` of this tree against that of another one, after equal seconds, in turns on one machine.

Run: ``python -m experiments learning.auto_against --other PYTHON --tree NAME``. PYTHON is the
interpreter of a checkout of the other tree with go_rl installed. Each problem, seed and number of
seconds is planned by one, then by the other, each in a process of its own; compiling counts against
no budget. Problems are the validation families of connected devices and generated graphs beyond
those that training takes; graphs travel as files.
"""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from experiments.experiment import Experiment
from experiments.learning.dispatch_arms import family, problems
from experiments.page_text import markdown_table
from experiments.statistics import family_means, lead_cell, ratio_of
from go_rl.graphs.readers.archive import save_graph
from go_rl.graphs.zoo import zoo_graph
from go_rl.graphs.zoo.problems import ZooProblem

PLAN = """
import sys, go_rl
graph, hardware, decide, seconds, seed = sys.argv[1:]
found = go_rl.optimize(graph, hardware, objective="makespan", decide=decide, cost="analytical",
                       seconds=float(seconds), seed=int(seed))
print("value", found.best.value)
"""


@dataclass(frozen=True)
class Row:
    """One problem planned by both."""

    problem: str
    family: str
    seconds: float
    seed: int
    mine: float
    """Seconds of an iteration."""
    other: float


@dataclass(frozen=True)
class AutoAgainst(Experiment):
    """Options of this experiment."""

    other: Path
    """Python of the other tree."""
    tree: str = "6c1a2fec"
    """Commit of the other tree, for the page."""
    seconds: tuple[float, ...] = (3.0, 10.0, 30.0)
    """Budgets."""
    seeds: int = 2
    generated: int = 10
    """Generated problems beside the zoo's, for which every decision is asked."""
    hardware: tuple[str, ...] = ("p100x4",)
    """Hardware of the zoo's problems; others are left out."""
    threads: int = 1
    """Cores of each process."""

    def run(self) -> None:
        """Make the missing rows, then the page."""
        kept = self.kept_rows(Row)
        named = {p.name: p for p in problems(self.generated) if p.hardware in self.hardware}
        with TemporaryDirectory() as folder:
            kept.fill(
                product(named, self.seconds, range(self.seeds)),
                lambda name, seconds, seed: self._row(named[name], seconds, seed, Path(folder)),
                ("problem", "seconds", "seed"),
            )
        self.write_page(page(kept.rows, self.tree))

    def _row(self, problem: ZooProblem, seconds: float, seed: int, folder: Path) -> Row:
        path = folder / f"{problem.graph}.npz"
        if not path.exists():
            save_graph(zoo_graph(problem.graph), path)
        given = (str(path), problem.hardware, ",".join(problem.decisions), str(seconds), str(seed))
        order = [Path(sys.executable), self.other]
        values = [self._planned(python, given) for python in (order if seed % 2 else order[::-1])]
        mine, other = values if seed % 2 else values[::-1]
        return Row(problem.name, family(problem), seconds, seed, mine, other)

    def _planned(self, python: Path, given: tuple[str, ...]) -> float:
        cores = sorted(os.sched_getaffinity(0))[: self.threads]
        found = subprocess.run(
            [python, "-c", PLAN, *given], capture_output=True, text=True, check=True, cwd="/",
            preexec_fn=lambda: os.sched_setaffinity(0, cores),
        )  # fmt: skip
        words = found.stdout.split()
        return float(words[words.index("value") + 1])


def page(rows: list[Row], tree: str) -> str:
    """Return the page."""
    cells = []
    for name, chosen in (
        ("all", rows),
        ("zoo", [row for row in rows if not row.problem.startswith("generated")]),
        ("generated", [row for row in rows if row.problem.startswith("generated")]),
    ):
        for seconds in sorted({row.seconds for row in chosen}):
            some = [row for row in chosen if row.seconds == seconds]
            logs = [(row.family, float(np.log(row.other / row.mine))) for row in some]
            better = sum(row.mine < 0.999 * row.other for row in some)
            worse = sum(row.mine > 1.001 * row.other for row in some)
            cells.append((name, f"{seconds:g}", str(len(some)),
                          lead_cell(ratio_of(family_means(logs))),
                          f"{better} / {len(some) - better - worse} / {worse}"))  # fmt: skip
    heads = ("problems", "seconds", "runs", f"`{tree}` over this", "better / level / worse")
    return (
        "# `auto` of this tree against another\n\n"
        f"Seconds of an iteration planned by `auto` of {tree} over those of this tree's, after "
        "equal seconds on one core, in turns: above 1, this one is ahead. Geometric mean, families "
        "alike, with the 95 % interval over families.\n\n"
        f"{markdown_table(heads, cells)}\n"
    )
