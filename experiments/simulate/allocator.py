"""How fast buffers get their offsets: MiniMalloc's instances, and planted ones.

Run: ``python -m experiments simulate.allocator --data DIR`` with the folder that holds
``minimalloc/*.csv`` (columns id, lower, upper, size; the capacity is in the file's name). CP-SAT
alone is the rival.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from experiments.experiment import Experiment, timed
from experiments.page_text import NOTHING, markdown_table
from go_rl.core import Status
from go_rl.objectives.common.allocator.allocate import Buffers, allocate, check_allocation
from go_rl.objectives.common.allocator.cp_sat import solve_with_cp_sat
from go_rl.objectives.common.allocator.search import compile_search

PLANTED_HEADS = ("planted instances", "ours", "CP-SAT alone")
WORDS = ("status", "settled by", "CP-SAT alone")
"""Columns that are text."""
KIB = 1024
PLANTED_SIZES = (300, 340, 380)
PLANTED_SLACKS = (0.0, 0.01, 0.02)
PLANTED_SEEDS = 4
GRID = 1024
"""Instants, and KiB of memory, of a planted instance."""


@dataclass(frozen=True)
class Allocator(Experiment):
    """Options of this experiment."""

    data: Path | None = None
    """Folder that holds ``minimalloc/*.csv``."""
    seconds: float = 20.0
    """Time allowed an instance."""
    seed: int = 0
    """Of the planted instances."""

    def run(self) -> None:
        """Measure every instance, print each row when it is ready, write the tables."""
        compile_search()
        one = np.ones(1, np.int64)
        allocate(Buffers(one - 1, one, one), 1)
        instances = list(published(self.data / "minimalloc")) if self.data else []
        instances += planted(self.seed)
        outcomes = self.write_rows(measure(instance, self.seconds) for instance in instances)
        self.write_page(page(outcomes, self.seconds))


@dataclass(frozen=True)
class Outcome:
    """One row of the table."""

    instance: str
    buffers: int
    capacity: int
    live_bytes: int
    height: int
    status: str
    method: str
    seconds: float
    cp_sat_status: str
    cp_sat_seconds: float


@dataclass(frozen=True)
class Instance:
    """Buffers to allocate within a capacity, bytes."""

    name: str
    buffers: Buffers
    capacity: int


def published(folder: Path) -> Iterator[Instance]:
    """MiniMalloc's instances: the capacity is the second word of the file's name."""
    for path in sorted(folder.glob("*.csv")):
        name, capacity = path.name.split(".")[:2]
        with path.open() as file:
            rows = [[int(r[k]) for k in ("lower", "upper", "size")] for r in csv.DictReader(file)]
        yield Instance(f"MiniMalloc {name}", Buffers(*np.array(rows).T.copy()), int(capacity))


def planted(seed: int) -> Iterator[Instance]:
    """A memory filled without a gap over all time, cut into boxes at random, then enlarged."""
    for count, slack, number in product(PLANTED_SIZES, PLANTED_SLACKS, range(PLANTED_SEEDS)):
        rng = np.random.default_rng([seed, count, round(100 * slack), number])
        capacity = int(GRID * KIB * (1 + slack))
        title = f"planted {count}, {slack:.0%} slack, seed {number}"
        yield Instance(title, cut_memory(rng, count), capacity)


def cut_memory(rng: np.random.Generator, count: int) -> Buffers:
    """Cut the square of time and memory in two, ``count`` - 1 times: a box drawn by its area, in
    time or in memory by a share of the instance's own."""
    boxes, in_memory = [(0, GRID, 0, GRID)], rng.uniform(0.35, 0.65)
    while len(boxes) < count:
        area = np.array([(u - low) * (top - o) for low, u, o, top in boxes], np.float64)
        i = int(rng.choice(len(boxes), p=area / area.sum()))
        low, up, floor, top = boxes[i]
        if rng.random() < in_memory and top - floor > 1:
            at = int(np.clip(floor + (top - floor) * rng.beta(2, 2), floor + 1, top - 1))
            boxes[i : i + 1] = [(low, up, floor, at), (low, up, at, top)]
        elif up - low > 1:
            at = int(np.clip(low + (up - low) * rng.beta(2, 2), low + 1, up - 1))
            boxes[i : i + 1] = [(low, at, floor, top), (at, up, floor, top)]
    lower, upper, floors, tops = np.array(boxes)[rng.permutation(count)].T
    return Buffers(lower.copy(), upper.copy(), (tops - floors) * KIB)


def measure(instance: Instance, seconds: float) -> Outcome:
    """Allocate and check; ask CP-SAT alone."""
    plan, taken = timed(lambda: allocate(instance.buffers, instance.capacity, seconds))
    if plan.status.ok:
        check_allocation(instance.buffers, plan.offsets, instance.capacity)
    (rival, _), rival_seconds = timed(
        lambda: solve_with_cp_sat(instance.buffers, instance.capacity, seconds, tied=False)
    )
    return Outcome(
        instance=instance.name, buffers=len(instance.buffers), capacity=instance.capacity,
        live_bytes=plan.lower_bound, height=plan.height, status=str(plan.status),
        method=plan.method, seconds=taken, cp_sat_status=str(rival), cp_sat_seconds=rival_seconds,
    )  # fmt: skip


def page(outcomes: list[Outcome], seconds: float) -> str:
    """Return the page."""
    solved = sum(outcome.status == Status.OK for outcome in outcomes)
    heads = ("instance", "buffers", "live bytes", "height", "status", "settled by", "s",
             "CP-SAT alone")  # fmt: skip
    return (
        "# Offset allocation: time to place every buffer within the capacity\n\n"
        f"{solved} of {len(outcomes)} instances placed within {seconds:g} s each, compilation not "
        "counted; every allocation was checked. *height* and *live bytes* (a lower bound) are "
        "relative to the capacity. *CP-SAT alone* has two workers and the same time. A planted "
        "instance has a solution.\n\n"
        f"{markdown_table(PLANTED_HEADS, _planted_lines(outcomes, seconds))}\n"
        f"{markdown_table(heads, map(_line, outcomes), WORDS)}"
    )


def _planted_lines(outcomes: list[Outcome], seconds: float) -> list[list[str]]:
    """How many planted instances are placed within some times, and the median time."""
    rows = [o for o in outcomes if o.instance.startswith("planted")]
    ours = [o.seconds if o.status == Status.OK else np.inf for o in rows]
    theirs = [o.cp_sat_seconds if o.cp_sat_status == Status.OK else np.inf for o in rows]
    lines = [
        [f"placed within {limit:g} s"]
        + [f"{sum(t <= limit for t in times)} of {len(rows)}" for times in (ours, theirs)]
        for limit in (1.0, seconds)
    ]
    return [*lines, ["median s", f"{np.median(ours):.2f}", f"{np.median(theirs):.2f}"]]


def _line(o: Outcome) -> list[str]:
    """One row of the Markdown table."""
    rival = f"{o.cp_sat_status}, {o.cp_sat_seconds:.2f} s"
    height = f"{o.height / o.capacity:.4f}" if o.status == Status.OK else NOTHING
    live = f"{o.live_bytes / o.capacity:.4f}"
    return [o.instance, str(o.buffers), live, height, o.status, o.method, f"{o.seconds:.3f}", rival]
