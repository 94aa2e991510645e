"""Pieces of runs and tables that predictors on other devices share.

A piece is what arms know: a count of measured programs or tasks, chosen by k-means or at random.
Its metrics are named ``count|arm|metric``; the arm of a random choice ends in the number of the
draw.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from math import nan
from pathlib import Path

import numpy as np

from experiments.page_text import cell, table_lines
from experiments.programs.cdmpp.cross_model import COLUMNS
from experiments.programs.cdmpp.runs import Metrics, OutOfTimeError, RunFolder
from experiments.programs.cross_device.arms import Arms
from experiments.programs.cross_device.setting import Setting
from go_rl.costs.learning.metrics import latency_metrics

DRAW = re.compile(r"(.*\(random\)) \d+")
CHANCE = "(random)"
"""At the end of an arm that learns from random choices."""
EXPLODED = 1e5
Place = tuple[str, int]
"""Target or scenario, and seed."""


@dataclass(frozen=True, kw_only=True)
class CrossOptions:
    """Options that the tables share."""

    runs: Path
    """Folder of finished runs."""
    counts: tuple[int, ...] = (10, 20, 50, 100, 200)
    """Programs measured on the target."""
    table: int = 50
    """Of these, in the tables of all arms."""
    draws: int = 10
    """Repetitions of random choice, in the first run."""
    steps: int = 500
    """Updates of each network."""
    seeds: int = 3
    """Runs of which a cell is the mean; each draws its own test programs."""
    minutes: float = 1e9
    """Of a processor: stop behind the piece, at least one, that ends later; the next call goes
    on."""


@dataclass(frozen=True)
class Piece:
    """What arms know of the target."""

    count: int
    """Programs or tasks measured."""
    draw: int | None = None
    """Number of a random choice; None: by k-means."""

    @property
    def name(self) -> str:
        """In the names of runs."""
        return f"{self.count}" + ("" if self.draw is None else f"-random{self.draw}")


def pieces_of(options: CrossOptions) -> list[Piece]:
    """Return all pieces, those of the tables of all arms first."""
    counts = [options.table, *(count for count in options.counts if count != options.table)]
    draws = [Piece(count, draw) for count in counts for draw in range(options.draws)]
    return [Piece(0), *map(Piece, counts), *draws]


def run_pieces(
    options: CrossOptions,
    places: Iterable[Place],
    run: Callable[[str, int], str],
    setting: Callable[[str, int], Setting],
    arms: Callable[[Setting, Piece], Arms],
) -> tuple[dict[str, list[Metrics]], dict[str, int]]:
    """Return metrics by target, seed by seed, and how many pieces of it are missing; random choices
    are of the first seed.

    Args:
        options: of the script.
        places: targets and seeds.
        run: name of the run of a target and a seed.
        setting: its rows and configuration.
        arms: those of a piece of it.
    """
    folder = RunFolder(options.runs, time.process_time(), options.minutes, time.process_time)

    def make(target: str, seed: int, piece: Piece) -> Metrics:
        own = setting(target, seed)
        return piece_metrics(own, piece, arms(own, piece))

    found: dict[Place, Metrics] = {place: Metrics() for place in places}
    missing: dict[str, int] = {}
    for piece in pieces_of(options):
        for (target, seed), known in found.items():
            if piece.draw is not None and seed:
                continue
            try:
                known |= folder.kept(
                    f"{run(target, seed)}-{piece.name}",
                    partial(make, target, seed, piece),
                )
            except OutOfTimeError:
                missing[target] = missing.get(target, 0) + 1
    names = dict.fromkeys(target for target, _ in found)
    return {
        t: [run for (name, _), run in found.items() if name == t and run] for t in names
    }, missing


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


def arm_values(runs: list[Metrics], count: int, arm: str, column: str) -> list[float]:
    """Return a column of an arm, run by run and draw by draw."""
    return [
        value
        for run in runs
        for name, value in run.items()
        if name.startswith(f"{count}|") and name.endswith(f"|{column}")
        if _arm(name) == arm
    ]


def arms_of(runs: list[Metrics], count: int) -> list[str]:
    """Return the arms of a count in their order, repetitions once."""
    names = (name for run in runs for name in run if name.startswith(f"{count}|"))
    return list(dict.fromkeys(map(_arm, names)))


def target_lines(
    options: CrossOptions, title: str, what: str, runs: list[Metrics], columns: dict[str, str]
) -> list[str]:
    """Return the section of a target or scenario: all arms with nothing measured and with
    ``options.table``, then errors by count.

    Args:
        options: of the script.
        title: of the section.
        what: is measured, in the plural.
        runs: metrics, run by run.
        columns: arms of the last table, each by the head of its column.
    """
    learned, tested = (np.mean([run[name] for run in runs]) for name in ("learned", "tested"))
    sizes = f"{learned:,.0f} rows learned from, {tested:,.0f} tested; runs: {len(runs)}."
    lines = ["", f"## {title}", "", sizes]
    for count in (0, options.table):
        head = f"{count} {what} measured" if count else "nothing measured"
        lines += ["", *all_arms(runs, count, head)]
    said = f"MAPE in % by {what} measured, first run; random: mean (least to largest)."
    return [*lines, "", said, "", *by_count(runs, options.counts, what, columns)]


def all_arms(runs: list[Metrics], count: int, head: str) -> list[str]:
    """Return the lines of the table of all arms of a count. Random choices are of the first run:
    they are left out where a cell is the mean of several."""
    arms = [arm for arm in arms_of(runs, count) if len(runs) == 1 or not arm.endswith(CHANCE)]
    rows = [
        [arm, *(mean_cell(arm_values(runs, count, arm, column)) for column in COLUMNS)]
        for arm in arms
    ]
    return table_lines([head, *COLUMNS.values()], rows)


def by_count(
    runs: list[Metrics], counts: Sequence[int], what: str, columns: dict[str, str]
) -> list[str]:
    """Return the lines of the table of mean errors by count, of the first run.

    Args:
        runs: metrics, run by run.
        counts: rows.
        what: is counted.
        columns: arms, each by the head of its column.
    """
    rows = [
        [
            f"{count}",
            *(_spread(arm_values(runs[:1], count, arm, "mape")) for arm in columns.values()),
        ]
        for count in counts
    ]
    return table_lines([what, *columns], rows)


def missing_lines(missing: dict[str, int]) -> list[str]:
    """Return the lines that say what has not run yet."""
    rest = ", ".join(f"{count} pieces of {target}" for target, count in missing.items())
    return ["", "## Not run yet", "", f"{rest}."] if missing else []


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
