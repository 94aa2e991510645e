"""Live view of tuning: a dashboard on a terminal, plain lines elsewhere, both on standard error;
and what is said at the end."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from go_rl.cli.console import AS_IT_IS, console, output_to_error, print_line, print_table
from go_rl.cli.folders import check_folder
from go_rl.cli.next_command import changed_options, say_next
from go_rl.core.printable import message_line
from go_rl.core.unit_text import unit_for
from go_rl.report.text_table import TextTable

if TYPE_CHECKING:
    from go_rl.api.tune import TuningConfig, TuningProgress

ROWS = 16
"""Parts that the dashboard shows, those with most of the model's time first."""
LINE_SECONDS = 10.0
"""Least seconds between two lines where there is no terminal."""
PEAKS = " ▁▂▃▄▅▆▇█"
WIDTH = 48
"""Points of the curve."""


@dataclass(frozen=True)
class View:
    """Callbacks of a running search."""

    watch: Callable[[TuningProgress], None]
    report: Callable[[str], None]


@contextmanager
def tuning_view(silent: bool = False) -> Iterator[View]:
    """Show how tuning goes on; yields what is told.

    Args:
        silent: show nothing, as with ``--json``.
    """
    error = Console(file=sys.stderr, **AS_IT_IS)
    with output_to_error():
        if silent:
            yield View(lambda _: None, lambda _: None)
        elif error.is_terminal:
            with Live(console=error, refresh_per_second=4, transient=True) as live:
                yield _dashboard_view(live)
        else:
            yield _lines_view(error)


@dataclass(frozen=True)
class Ending:
    """Closing output of a command that tuned."""

    tables: Sequence[TextTable]
    notes: Sequence[str]
    sentences: Sequence[str]
    """Sentences about what was found."""
    kind: str
    """Second word of the command."""
    model: Sequence[str]
    """Model as the user named it, with the options that say how it is read."""
    tune: TuningConfig
    """Configuration of this run."""
    folder: Path
    """Folder of the results."""


def say_ending(ending: Ending) -> None:
    """Print what was found, where the results are, and the command that tunes on for as long."""
    out = console()
    for table in ending.tables:
        print_table(out, table)
    for sentence in (*(f"{note}." for note in ending.notes), *ending.sentences):
        print_line(out, sentence)
    print_line(out, f"written to {ending.folder}")
    tune = ending.tune
    trials = None if tune.trials is None else 2 * tune.trials
    longer = replace(tune, minutes=2 * tune.minutes, trials=trials)
    words = [*ending.model, *changed_options(longer)]
    say_next(out, "tune", ending.kind, *words, "--out", ending.folder)


def tuning_folder(out: str | None, model: str) -> Path:
    """Return the folder of a run, by default one named after its model.

    Raises:
        PlanError: nothing can be written there.
    """
    name = "".join(c if c.isalnum() or c in "-_." else "-" for c in model)
    folder = Path(out or Path("out") / f"tune-{name}")
    check_folder(folder)
    return folder


def _dashboard_view(live: Live) -> View:
    history: list[float] = []
    shown: list[Any] = [Text(), Text()]

    def watch(progress: TuningProgress) -> None:
        history.append(progress.seconds)
        shown[0] = dashboard(progress, history)
        live.update(Group(*shown))

    def report(sentence: str) -> None:
        shown[1] = Text(f"{sentence} ...")
        live.update(Group(*shown))

    return View(watch, report)


def _lines_view(error: Console) -> View:
    last: dict[str, float] = {"shown": -float("inf")}
    best = [float("inf")]

    def due(what: str) -> bool:
        now = time.monotonic()
        if now - last.get(what, -float("inf")) < LINE_SECONDS:
            return False
        last[what] = now
        return True

    def watch(progress: TuningProgress) -> None:
        if progress.seconds < best[0] and due("shown"):
            best[0] = progress.seconds
            error.print(message_line(line(progress)), soft_wrap=True)

    def report(sentence: str) -> None:
        if due(sentence.partition(":")[0]):  # what counts on says the same before its colon
            error.print(message_line(sentence), soft_wrap=True)

    return View(watch, report)


def line(progress: TuningProgress) -> str:
    """Return progress as one line."""
    scale, unit = unit_for(progress.default_seconds)
    return (
        f"{progress.minutes:.2f}/{progress.of_minutes:g} min  {progress.trials:,} trials  "
        f"{progress.model}: {scale * progress.seconds:.4g} {unit} of "
        f"{scale * progress.default_seconds:.4g} {unit}  ({progress.doing})"
    )


def dashboard(progress: TuningProgress, history: list[float]) -> Group:
    """Return the dashboard: latency and its curve, time left, and a row for each part."""
    done = min(progress.minutes, progress.of_minutes)
    bar = ProgressBar(total=progress.of_minutes, completed=done, width=WIDTH)
    parts = [_parts(progress)] if progress.parts else []
    return Group(
        Text(line(progress)), Text(f"latency so far  {sparkline(history)}"), bar, Text(), *parts
    )


def sparkline(values: list[float]) -> str:
    """Return a curve of blocks, from 0 to the highest of the last values."""
    every = max(1, -(-len(values) // WIDTH))
    shown = values[::-1][::every][::-1]
    top = max(shown, default=0.0) or 1.0
    return "".join(PEAKS[max(1, round((len(PEAKS) - 1) * value / top))] for value in shown)


def _parts(progress: TuningProgress) -> Table:
    scale, unit = unit_for(max((part.uses * part.seconds for part in progress.parts), default=1.0))
    table = Table(box=None, pad_edge=False)
    table.add_column("operator", no_wrap=True, overflow="ellipsis")
    heads = ("uses", f"before [{unit}]", f"best [{unit}]", "trials", "share of time",
             f"predicted gain [{unit}]")  # fmt: skip
    for head in heads:
        table.add_column(Text(head), justify="right")
    ranked = sorted(progress.parts, key=lambda part: -part.uses * part.seconds)
    for part in ranked[:ROWS]:
        gain = part.predicted_gain
        cells: list[Any] = [
            part.name, str(part.uses), f"{scale * part.uses * part.default_seconds:.4g}",
            f"{scale * part.uses * part.seconds:.4g}", f"{part.trials:,}", f"{part.share:.0%}",
            "" if gain is None else f"{scale * gain:.3g}",
        ]  # fmt: skip
        table.add_row(*(Text(cell) for cell in cells))
    if len(ranked) > ROWS:
        table.add_row(Text(f"and {len(ranked) - ROWS} more"))
    return table
