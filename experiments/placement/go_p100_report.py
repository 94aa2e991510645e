"""The page of `go_placement_p100.py`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

from experiments.page_text import cell, grid_table, markdown_table
from experiments.placement.go_rows import devices, known_rows
from experiments.placement.two_prices import ANALYTICAL, LEARNED
from experiments.statistics import geometric_mean, with_range

AGAINST = "expert"
"""Method against which steps are stated."""
POLICIES = ("policy", "dispatch")
"""Those that have control arms."""
NEAR = 0.01
"""Relative difference of steps up to which two methods count as level."""


@dataclass(frozen=True)
class Run:
    """One method and seed on one row, under each of the prices."""

    row: str
    method: str
    seed: int
    samples: int
    judged: dict[str, dict[str, float | None]] = field(default_factory=dict)
    """By the prices of the search, then by those of the judge: ms a step; None: it does not fit."""
    moved: dict[str, float] = field(default_factory=dict)
    """By the prices of the search: FLOP on another device than in the plan of analytical prices."""
    seconds: dict[str, float] = field(default_factory=dict)
    """By the prices of the search: time of the search, compilation included."""
    weights: str = ""
    """Of the learned prices."""


class Table:
    """Runs by row and method."""

    def __init__(self, runs: Sequence[Run], methods: Sequence[str]) -> None:
        self.runs = runs
        self.methods = [m for m in methods if any(run.method == m for run in runs)]
        self.rows = known_rows(runs)
        self.prices = list(runs[0].judged) if runs else []

    def step(self, row: str, method: str, found_with: str, judge: str) -> float:
        """Mean ms a step over seeds; NaN without runs, or if a plan does not fit."""
        steps = [run.judged[found_with][judge] for run in self._of(row, method)]
        known = [np.nan if each is None else each for each in steps]
        return float(np.mean(known)) if known else np.nan

    def loss(self, row: str, method: str, found_with: str, judge: str) -> float:
        """How much longer a plan takes, by the judge's prices, than that found with them."""
        return self.step(row, method, found_with, judge) / self.step(row, method, judge, judge)

    def best(self, row: str, found_with: str, judge: str) -> float:
        """Step, by the judge's prices, of the plan that is the best by ``found_with``."""
        steps = [self.step(row, method, found_with, found_with) for method in self.methods]
        chosen = self.methods[int(np.nanargmin(steps))]
        return self.step(row, chosen, found_with, judge)

    def moved(self, row: str, method: str, found_with: str) -> float:
        """Mean over seeds of `Run.moved`."""
        known = [run.moved[found_with] for run in self._of(row, method)]
        return float(np.mean(known)) if known else np.nan

    def _of(self, row: str, method: str) -> list[Run]:
        return [run for run in self.runs if (run.row, run.method) == (row, method)]


def page(runs: Sequence[Run], methods: Sequence[str], samples: int, accuracy: str) -> str:
    """Return the page.

    Args:
        runs: finished ones.
        methods: order of the columns.
        samples: of each search.
        accuracy: table of the errors of both prices on the P100's rows.
    """
    table = Table(runs, methods)
    parts = [*_head(table, samples, accuracy), *_steps(table), *_ratios(table), *_losses(table),
             *_arms(table)]  # fmt: skip
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _head(table: Table, samples: int, accuracy: str) -> list[str]:
    hours = sum(sum(run.seconds.values()) for run in table.runs) / 3600
    several = {run.method for run in table.runs if run.seed}
    drawn = ", ".join(method for method in table.methods if method in several) or "none"
    weights = ", ".join(sorted({run.weights for run in table.runs}))
    return [
        "# GO's table by prices learned from the P100's real times",
        f"Placement only, {samples} samples, the problems of `go_placement`. Every method searches "
        "under each of three prices with the same seed, and every plan is judged by all of them: "
        f"*analytical*, the roofline; *learned:gpus* ({weights}), fitted to launches on five GPUs, "
        "the P100 among them, the host's part of each included; *learned, quick host*, the same "
        "with the analytical model's 4 µs in place of the host's part. No plan was run on GPUs: a "
        "loss is what the wrong prices cost if the judge's are right. Operators are priced as the "
        "graph has them, one launch each, and each device waits for its own host only. "
        f"Mean of several seeds: {drawn}; one run of all others, a dash where there is none. "
        f"Search {hours:.2f} hours, compilation included, beside other work.",
        "## How right the prices are",
        "Mean absolute percentage error, and geometric mean of "
        "predicted over measured, on all rows of the P100, of which up to 7,000 were learned from; "
        "`left_out_gpus` has the errors without them.",
        accuracy,
    ]


def _steps(table: Table) -> list[str]:
    parts = []
    for prices in (LEARNED, ANALYTICAL):
        columns = {"devices": devices}
        for method in (m for m in table.methods if "(" not in m):
            columns[method] = lambda row, m=method, p=prices: cell(table.step(row, m, p, p), 2)
        parts += [
            f"## Milliseconds a step, found and judged by {prices}",
            grid_table("row", table.rows, columns),
        ]
    return parts


def _ratios(table: Table) -> list[str]:
    """Methods and control arms against the expert by each of the prices, and their rank."""
    counts = {
        m: sum(np.isfinite(table.step(row, m, ANALYTICAL, ANALYTICAL)) for row in table.rows)
        for m in table.methods
    }
    ratios = {
        p: {m: geometric_mean(_over(table, m, AGAINST, p)) for m in table.methods}
        for p in table.prices
    }
    full = [method for method, count in counts.items() if count == len(table.rows)]

    def ratio(method: str, prices: str) -> str:
        own = ratios[prices][method]
        rank = 1 + sum(ratios[prices][m] < own for m in full)
        return f"{cell(own)}, {rank}" if method in full else cell(own)

    columns = {"rows": lambda method: str(counts[method])}
    for prices in table.prices:
        columns[f"{prices}, rank"] = lambda method, p=prices: ratio(method, p)
    return [
        "## The ranking of methods",
        f"Step over that of *{AGAINST}* found and judged by the same "
        "prices, geometric means over the rows of the method, and the rank among methods that have "
        "all rows.",
        grid_table("method", table.methods, columns),
        _swaps(table, full),
    ]


def _swaps(table: Table, methods: Sequence[str]) -> str:
    """Of pairs of methods that differ under both prices, how many change their order."""
    said = []
    for prices in table.prices:
        if prices == ANALYTICAL:
            continue
        swapped = counted = 0
        for row in table.rows:
            for one, other in combinations(methods, 2):
                logs = [
                    np.log(table.step(row, one, p, p) / table.step(row, other, p, p))
                    for p in (ANALYTICAL, prices)
                ]
                if all(abs(each) > NEAR for each in logs):
                    counted += 1
                    swapped += logs[0] * logs[1] < 0
        said.append(f"{swapped / max(1, counted):.0%} of {counted:,} under {prices}")
    return (
        f"Pairs of methods on a row that differ by more than {NEAR:.0%} under both prices, and "
        f"change their order against *{ANALYTICAL}*: {'; '.join(said)}."
    )


def _losses(table: Table) -> list[str]:
    """What plans lose under other prices than their own, and how far they are from each other."""
    others = [p for p in table.prices if p != ANALYTICAL]
    pairs = [pair for p in others for pair in ((ANALYTICAL, p), (p, ANALYTICAL))]
    columns: dict[str, Callable[[str], str]] = {}
    for one, two in pairs:
        columns[f"{one} judged by {two}"] = lambda method, pair=(one, two): _spread(
            [table.loss(row, method, *pair) for row in table.rows]
        )
    for p in others:
        columns[f"moved, {p}"] = lambda method, p=p: cell(
            float(np.nanmean([table.moved(row, method, p) for row in table.rows])), 2
        )
    best = [
        _spread([table.best(row, *pair) / table.best(row, pair[1], pair[1]) for row in table.rows])
        for pair in pairs
    ]
    grid = grid_table("method", table.methods, columns)
    return [
        "## What the wrong prices cost",
        "Step of the plan found with the first prices over that "
        "of the plan that the same method found with the second, both judged by the second: "
        "geometric mean over rows, smallest and largest. *moved*: share of the FLOP on another "
        f"device than in the plan of *{ANALYTICAL}*, mean over rows.",
        f"{grid}| {' | '.join(['best of all', *best, *('' for _ in others)])} |",
    ]


def _arms(table: Table) -> list[str]:
    """Policies beside their control arms and others, paired by row."""
    lines = []
    for policy in (p for p in POLICIES if p in table.methods):
        for method in table.methods:
            if method == policy or method.partition(" (")[0] in set(POLICIES) - {policy}:
                continue
            ratios = {p: _over(table, method, policy, p) for p in table.prices}
            rows = int(np.isfinite(ratios[ANALYTICAL]).sum())
            lines.append([policy, method, str(rows), *(_spread(ratios[p]) for p in table.prices)])
    return [
        "## Policies beside their control arms",
        "Step of the other method over that of the "
        "policy, found and judged by the same prices: geometric mean over the rows that both have, "
        "smallest and largest. Above 1 the policy is ahead.",
        markdown_table(["policy", "method", "rows", *table.prices], lines),
    ]


def _over(table: Table, method: str, policy: str, prices: str) -> list[float]:
    steps = [
        [table.step(row, each, prices, prices) for row in table.rows] for each in (method, policy)
    ]
    return [one / other for one, other in zip(*steps, strict=True)]


def _spread(values: Sequence[float]) -> str:
    known = [value for value in values if np.isfinite(value)]
    return with_range(known, ".3f", geometric_mean, ".2f")
