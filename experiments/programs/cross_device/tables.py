"""Pieces of runs, their metrics, and the tables of a target device.

A piece is what arms know: a count of measured programs, chosen by k-means or at random. Its metrics
are named ``count|arm|metric``; the arm of a random choice ends in the number of the draw.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan

import numpy as np

from experiments.page_text import cell, grid_table
from experiments.programs.cdmpp.cross_model import COLUMNS
from experiments.programs.cdmpp.runs import Metrics
from experiments.programs.cross_device.arms import Arms
from experiments.programs.cross_device.setting import Setting
from go_rl.costs.learning.metrics import latency_metrics

DRAW = re.compile(r"(.*\(random\)) \d+")
CHANCE = "(random)"
"""At the end of an arm that learns from random choices."""
EXPLODED = 1e5


@dataclass(frozen=True)
class Piece:
    """What arms know of the target."""

    count: int
    """Programs measured."""
    draw: int | None = None
    """Number of a random choice; None: by k-means."""

    @property
    def name(self) -> str:
        """In the names of runs."""
        return f"{self.count}" + ("" if self.draw is None else f"-random{self.draw}")


def piece_metrics(setting: Setting, piece: Piece, arms: Arms) -> Metrics:
    """Return metrics of arms by count, arm and name, and the rows learned from and tested."""
    test, end = setting.test, "" if piece.draw is None else f" {piece.draw}"
    group = test.inputs.task * len(test.inputs.targets) + test.inputs.target
    sizes = {"learned": float(len(setting.train.seconds)), "tested": float(len(test.seconds))}
    return sizes | {
        f"{piece.count}|{arm}{end}|{name}": value
        for arm, seconds in arms.items()
        for name, value in latency_metrics(seconds, test.seconds, group).items()
    }


def arm_values(runs: Sequence[Metrics], count: int, arm: str, column: str) -> list[float]:
    """Return a column of an arm, run by run and draw by draw."""
    return [
        value
        for run in runs
        for name, value in run.items()
        if name.startswith(f"{count}|") and name.endswith(f"|{column}")
        if _arm(name) == arm
    ]


def arms_of(runs: Sequence[Metrics], count: int) -> list[str]:
    """Return the arms of a count in their order, repetitions once."""
    names = (name for run in runs for name in run if name.startswith(f"{count}|"))
    return list(dict.fromkeys(map(_arm, names)))


def target_lines(
    title: str, runs: Sequence[Metrics], table: int, counts: Sequence[int],
    columns: Mapping[str, str],
) -> list[str]:  # fmt: skip
    """Return the section of a target: all arms with nothing measured and with some programs, then
    errors by count.

    Args:
        title: of the section.
        runs: metrics, run by run.
        table: programs measured, of the second table.
        counts: those of the third.
        columns: arms of the third, each by the head of its column.
    """
    learned, tested = (np.mean([run[name] for run in runs]) for name in ("learned", "tested"))
    sizes = f"{learned:,.0f} rows learned from, {tested:,.0f} tested; runs: {len(runs)}."
    lines = ["", f"## {title}", "", sizes]
    for count in (0, table):
        head = f"{count} programs measured" if count else "nothing measured"
        lines += ["", *all_arms(runs, count, head)]
    lines += ["", "MAPE in % by programs measured, first run; random: mean (least to largest).", ""]
    by_count = grid_table(
        "programs", map(str, counts), columns,
        lambda count, arm: _spread(arm_values(runs[:1], int(count), arm, "mape")),
    )  # fmt: skip
    return [*lines, *by_count.splitlines()]


def all_arms(runs: Sequence[Metrics], count: int, head: str) -> list[str]:
    """Return the lines of the table of all arms of a count. Random choices are of the first run:
    they are left out where a cell is the mean of several."""
    arms = [arm for arm in arms_of(runs, count) if len(runs) == 1 or not arm.endswith(CHANCE)]
    columns = {title: name for name, title in COLUMNS.items()}
    return grid_table(
        head, arms, columns, lambda arm, name: mean_cell(arm_values(runs, count, arm, name))
    ).splitlines()


def mean_cell(values: list[float]) -> str:
    """Return the mean of values as a cell; an exploded one by its power of ten."""
    mean = float(np.mean(values)) if values else nan
    return f"{mean:.0e}" if abs(mean) > EXPLODED else cell(mean, 2)


def _spread(values: list[float]) -> str:
    """The mean, and the range of several."""
    several = len(values) > 1
    return mean_cell(values) + (f" ({min(values):.2f} to {max(values):.2f})" if several else "")


def _arm(name: str) -> str:
    """Of a metric's name."""
    arm = name.split("|")[1]
    found = DRAW.fullmatch(arm)
    return found[1] if found else arm
