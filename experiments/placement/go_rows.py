"""The fourteen rows of GO's table 2, as training graphs of the zoo on P100-class devices."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Protocol

from experiments.experiment import timed
from go_rl.api.options import OptimizeOptions
from go_rl.api.problem import problem_for
from go_rl.core import Plan, Problem
from go_rl.graphs.cutting.colocation import Colocation
from go_rl.graphs.zoo import zoo_graph
from go_rl.verify.check_plan import check_plan

ROWS = {
    "RNNLM 2 layers": ("rnnlm-2-layers-training", 2),
    "RNNLM 4 layers": ("rnnlm-4-layers-training", 4),
    "RNNLM 8 layers": ("rnnlm-8-layers-training", 8),
    "GNMT 2 layers": ("gnmt-2-layers-training", 2),
    "GNMT 4 layers": ("gnmt-4-layers-training", 4),
    "GNMT 8 layers": ("gnmt-8-layers-training", 8),
    "Transformer-XL 2 layers": ("transformer-xl-2-layers-training", 2),
    "Transformer-XL 4 layers": ("transformer-xl-4-layers-training", 4),
    "Transformer-XL 8 layers": ("transformer-xl-8-layers-training", 8),
    "Inception-v3 b32": ("inception-v3-b32-training", 2),
    "Inception-v3 b64": ("inception-v3-b64-training", 2),
    "AmoebaNet-D": ("amoebanet-d-6-192-training", 4),
    "WaveNet 2x18": ("wavenet-2x18-training", 2),
    "WaveNet 4x36": ("wavenet-4x36-training", 4),
}
"""Graph of the zoo and number of devices."""
SMALL_FIRST = (
    "Transformer-XL 2 layers", "WaveNet 2x18", "Transformer-XL 4 layers",
    "Transformer-XL 8 layers", "WaveNet 4x36", "RNNLM 2 layers", "Inception-v3 b32",
    "Inception-v3 b64", "AmoebaNet-D", "RNNLM 4 layers", "RNNLM 8 layers", "GNMT 2 layers",
    "GNMT 4 layers", "GNMT 8 layers",
)  # fmt: skip
"""Rows by what a search of them takes, the quickest first."""


def row_problem(
    row: str, decide: str | tuple[str, ...] = "placement", colocate: Colocation = "graph"
) -> Problem:
    """Return the problem of a row, with analytical prices."""
    name, devices = ROWS[row]
    asked = OptimizeOptions(
        "makespan", decide, hardware=f"p100x{devices}", colocate=colocate, cost="analytical"
    )
    return problem_for(zoo_graph(name), asked)


@dataclass(frozen=True)
class RowOptions:
    """Options of the scripts that search on rows of GO's table."""

    rows: tuple[str, ...] = SMALL_FIRST
    """Rows of GO's table."""
    colocate: Colocation = "graph"
    """Operators that must share a device: graph (none) or gradients."""
    samples: int = 2000
    """Plans that a search may price."""
    seeds: int = 1
    """Runs of each arm."""
    minutes: float = float("inf")
    """After so many no further run is begun."""

    def keys(self, arms: Iterable[str]) -> Iterator[tuple[str, str, int, int, Colocation]]:
        """Yield row, arm, seed, samples and colocation of all runs until the time is over."""
        end = time.perf_counter() + 60 * self.minutes
        for seed, row, arm in product(range(self.seeds), self.rows, arms):
            if time.perf_counter() < end:
                yield row, arm, seed, self.samples, self.colocate


class OfRow(Protocol):
    """A run on a row of the table."""

    @property
    def row(self) -> str:
        """Name in `ROWS`."""
        ...


def known_rows(runs: Iterable[OfRow]) -> list[str]:
    """Return the rows that any run is of, in the order of `ROWS`."""
    known = {run.row for run in runs}
    return [row for row in ROWS if row in known]


def best_after(curve: Iterable[Sequence[float]], count: int) -> float:
    """Return the last number of the points of a curve up to so many samples, the least of them; NaN
    where there is no point."""
    return min((point[-1] for point in curve if point[0] <= count), default=float("nan"))


def searched(solve: Callable[[], Plan], problem: Problem) -> tuple[Plan, float]:
    """Return a plan, which the checker accepts if it is usable, and the seconds of its search."""
    plan, spent = timed(solve)
    if plan.evaluation.status.ok:
        verdict = check_plan(plan, problem)
        assert verdict.ok, verdict.sentence
    return plan, spent
