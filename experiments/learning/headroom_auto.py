"""The portfolio with and without a policy at equal seconds, on the test problems with headroom.

Run: ``python -m experiments.learning.headroom_auto [--weights NAME ...] [--minutes 9]``, after
``headroom.py`` and ``freeze_best.py``. On each problem the arms take turns in one process, seed by
seed: `auto-classical`, then `auto` with each of the weights. Seconds are those of the processor, as
for R: the portfolio's clock is replaced by the process's, so that other programs change nothing
(CP-SAT alone keeps its own). Networks are compiled before the seconds count. Finished runs are rows
of ``results/headroom_auto.csv``; `headroom_closed` writes them into its page.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from unittest import mock

import numpy as np

from experiments.experiment import RESULTS, Experiment, deadline, timed
from experiments.learning import headroom
from experiments.rows import KeptRows, in_turn, read_rows
from experiments.statistics import family_means, ratio_of
from go_rl.compare.controls.headroom import TIE, Headroom
from go_rl.compare.portfolio import run
from go_rl.core import Budget, Problem
from go_rl.costs.models.zoo_problem import priced_problem
from go_rl.graphs.zoo.best_known import FOLDER, best_entries
from go_rl.graphs.zoo.index import zoo_entry
from go_rl.graphs.zoo.problems import ZooProblem, zoo_problem
from go_rl.policy.weights import load_weights
from go_rl.report.file_tables import markdown_table

NAME = "headroom_auto"
WITHOUT = "auto-classical"
SECONDS = 3.0
"""Of each run, compilation left out."""
ASKED = 1.03
"""Ratio that is asked of the policy."""


@dataclass(frozen=True)
class HeadroomAuto(Experiment):
    """Options of this experiment."""

    weights: tuple[str, ...] = ("partition-1.1", "dispatch-2.5")
    """Names or files of weights, of either objective."""
    objective: str = ""
    """ring or makespan; empty: both."""
    only: tuple[str, ...] = ("*",)
    """Patterns of names of problems whose runs are made."""
    seeds: int = 3
    """Runs of each arm on each problem."""
    most_nodes: int = 11_000
    """Largest graph."""
    best: Path = FOLDER
    """Folder of the frozen best-known plans."""
    minutes: float = 0.0
    """Time after which no run begins; 0: none."""

    def run(self) -> None:
        """Make the missing runs, families taking turns."""
        table = self.kept_rows(AutoRun)
        ends = deadline(self.minutes)
        agents = [load_weights(name) for name in self.weights]
        for problem, _ in entering(self.objective, self.most_nodes, self.best):
            if not any(fnmatch(problem.name, pattern) for pattern in self.only):
                continue
            mine = {w.name: w.agent for w in agents if str(w.agent.objective) == problem.objective}
            _rounds(table, problem, {WITHOUT: None, **mine}, self.seeds, ends)
            if time.time() >= ends:
                return


@dataclass(frozen=True)
class AutoRun:
    """One run of the portfolio."""

    problem: str
    arm: str
    """``auto-classical``, or the name of the weights."""
    seed: int
    value: float
    """Seconds an iteration; inf: no plan."""
    processor_seconds: float


def entering(objective: str, most_nodes: int, best: Path) -> list[tuple[ZooProblem, Headroom]]:
    """Return the test problems that enter and are not too large, families taking turns."""
    rows, known = read_rows(headroom.Run, RESULTS / f"{headroom.NAME}.csv"), best_entries(best)
    found = []
    for chosen in ("ring", "makespan"):
        for problem, room in headroom.headrooms(chosen, rows, known):
            nodes = zoo_entry(problem.graph).nodes
            wanted = objective in ("", chosen) and problem.part == "test" and room.enters
            if wanted and nodes <= most_nodes:
                found.append((problem, room))
    return in_turn(found, lambda each: each[0].family)


def _rounds(
    table: KeptRows[AutoRun],
    named: ZooProblem,
    arms: dict[str, object],
    seeds: int,
    ends: float,
) -> None:
    """Run what is missing on a problem; the arms take turns."""
    missing = [
        (arm, seed) for seed in range(seeds) for arm in arms if not table.has(named.name, arm, seed)
    ]
    if not missing or time.time() >= ends:
        return
    problem = priced_problem(named)
    for arm in dict.fromkeys(arm for arm, _ in missing):
        _auto(problem, arm, arms[arm], 0, Budget(seconds=0.2))  # compiles
    for arm, seed in missing:
        if time.time() >= ends:
            return
        value, spent = timed(
            lambda arm=arm, seed=seed: _auto(
                problem, arm, arms[arm], seed, Budget(seconds=SECONDS)
            ),
            time.process_time,
        )
        table.add(AutoRun(named.name, arm, seed, value, round(spent, 2)))
        print(table.rows[-1], flush=True)


def _auto(problem: Problem, arm: str, agent: object, seed: int, budget: Budget) -> float:
    method = WITHOUT if arm == WITHOUT else "auto"
    return planned_value(problem, method, agent, seed, budget)


def planned_value(problem: Problem, method: str, agent: object, seed: int, budget: Budget) -> float:
    """Return the seconds of a method's plan, inf where there is none; the seconds of the budget are
    those of the processor."""
    with mock.patch.object(time, "perf_counter", time.process_time):
        plan = run(problem, method, budget, seed, agent=agent).best
    return plan.value if plan.evaluation.status.ok else np.inf


def section(best: Path) -> str:
    """Return the part of the page about the portfolio."""
    rows = read_rows(AutoRun, RESULTS / f"{NAME}.csv")
    cells = []
    for objective in ("ring", "makespan"):
        problems = [p for p, _ in entering(objective, 1 << 30, best)]
        arms = dict.fromkeys(row.arm for row in rows if row.arm != WITHOUT)
        for arm in arms:
            logs = paired_logs(rows, [p.name for p in problems], arm)
            if logs:
                cells.append([objective, arm, *_cells(logs)])
    if not cells:
        return ""
    heads = ["objective", "auto with", "ratio (95 %)", "problems", "families",
             "problems won / tied / lost", f"{ASKED - 1:.0%} ahead"]  # fmt: skip
    return (
        f"\n# `auto` with and without a policy, {SECONDS:.0f} s\n\n"
        "Seconds an iteration of the plan of `auto-classical` over those of `auto` with the "
        "weights: above 1 the policy helps. On the problems above; paired by seed, the mean over "
        "seeds, then problems, then families of equal weight; the interval is a bootstrap over "
        "families. Seconds are those of the processor; the arms took turns.\n\n"
        f"{markdown_table(heads, cells)}"
    )


def paired_logs(rows: Iterable[AutoRun], problems: Sequence[str], arm: str) -> dict[str, float]:
    """Return log(without the policy / with it) by problem, the mean over seeds; runs where one of
    the two has no plan are left out."""
    values = {(row.problem, row.arm, row.seed): row.value for row in rows}
    found: dict[str, list[float]] = defaultdict(list)
    for (problem, which, seed), value in values.items():
        other = values.get((problem, WITHOUT, seed), np.inf)
        if which == arm and problem in problems and np.isfinite(value) and np.isfinite(other):
            found[problem].append(float(np.log(other / value)))
    return {problem: float(np.mean(logs)) for problem, logs in found.items()}


def _cells(logs: dict[str, float]) -> list[str]:
    means = family_means((zoo_problem(problem).family, log) for problem, log in logs.items())
    ratio, low, high = ratio_of(means)
    won = sum(log > TIE for log in logs.values())
    lost = sum(log < -TIE for log in logs.values())
    return [
        f"{ratio:.3f} ({low:.3f} to {high:.3f})",
        str(len(logs)),
        str(len(means)),
        f"{won} / {len(logs) - won - lost} / {lost}",
        "yes" if ratio >= ASKED and low > 1 else "no",
    ]


if __name__ == "__main__":
    HeadroomAuto.main()
