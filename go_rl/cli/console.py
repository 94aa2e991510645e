"""Where a command's output goes: results to standard output, progress to standard error."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bar

from go_rl.api.progress import Progress
from go_rl.core.optimizer import Milestone
from go_rl.core.printable import message_line, name_line, printable
from go_rl.report.text_table import TextTable

PIPE_WIDTH = 160
"""Characters of a line where standard output is no terminal."""
AS_IT_IS: dict[str, Any] = {"markup": False, "emoji": False, "highlight": False}
LINES = 100
"""Lines that a counted command writes to a file at most."""


def console() -> Console:
    """Return standard output for tables; a pipe gets wide lines without colours.

    Text is printed as it is: ``[ms]`` and ``:x:`` in names and units are no markup.
    """
    width = None if sys.stdout.isatty() else PIPE_WIDTH
    return Console(file=sys.stdout, width=width, **AS_IT_IS)


def print_table(out: Console, table: TextTable) -> None:
    """Print a table, in parts where the terminal is too narrow."""
    for part in table.tables(out.width):
        out.print(part)


def print_line(out: Console, text: str) -> None:
    """Print a sentence in one line, however long; the terminal wraps it."""
    out.print(printable(text), soft_wrap=True)


@contextmanager
def working(sentence: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner with what is going on; yields the function that changes its sentence.

    It is on standard error, and only on a terminal; a `Milestone` stays, and is shown anywhere.
    Whatever libraries print meanwhile goes to standard error too, so that standard output holds
    results only.
    """
    error = Console(file=sys.stderr, **AS_IT_IS)
    columns = (SpinnerColumn(), _sentence(), TimeElapsedColumn())
    with (
        Bar(*columns, console=error, transient=True, disable=not error.is_terminal) as bar,
        output_to_error(),
    ):
        task = bar.add_task(name_line(sentence), total=None)

        def report(text: str) -> None:
            if isinstance(text, Milestone):
                error.print(message_line(text), soft_wrap=True)
            bar.update(task, description=name_line(text))

        yield report


@contextmanager
def counting(sentence: str, total: int | None = None, kept: str = "") -> Iterator[Progress]:
    """Show a bar of the work that is done, of ``total`` where that is known from the start; yields
    the function that is told how much that is, of 0 where sentences alone say it.

    As `working`, it is on standard error; where that is no terminal, a line now and then is.

    Args:
        sentence: what is being done.
        total: all of the work; None: not known yet.
        kept: what stays when the user ends a command that can go on, such as ``finished runs``.

    Raises:
        KeyboardInterrupt: the user ended it; says what is kept.
    """
    error = Console(file=sys.stderr, **AS_IT_IS)
    columns = (_sentence(), BarColumn(), MofNCompleteColumn(),
               TimeElapsedColumn(), TimeRemainingColumn())  # fmt: skip
    with Bar(*columns, console=error, disable=not error.is_terminal) as bar, output_to_error():
        task = bar.add_task(name_line(sentence), total=total)

        def report(done: int, total: int, text: str) -> None:
            bar.update(task, total=total or None, completed=done, description=name_line(text))
            every = max(1, total // LINES)
            if isinstance(text, Milestone):
                error.print(message_line(text), soft_wrap=True)
            elif not error.is_terminal and (done % every == 0 or done == total):
                count = f"{done}/{total}  " if total else ""
                error.print(f"{count}{message_line(text)}", soft_wrap=True)

        try:
            yield report
        except KeyboardInterrupt as stop:
            if kept and not str(stop):
                raise type(stop)(
                    f"stopped; {kept} are kept, and the same command goes on from there"
                ) from None
            raise


def _sentence() -> TextColumn:
    return TextColumn("{task.description}", markup=False)


@contextmanager
def output_to_error() -> Iterator[None]:
    """Also for compiled libraries, which write to the file descriptor."""
    sys.stdout.flush()
    kept = os.dup(1)
    try:
        os.dup2(2, 1)
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)


def print_json(document: Any) -> None:
    """Print one JSON document on standard output."""
    sys.stdout.write(json.dumps(document, allow_nan=False) + "\n")


def complain(message: str) -> None:
    """Print one line on standard error; one that takes nothing more changes no exit code."""
    with suppress(OSError):
        sys.stderr.write(f"go-rl: {message_line(' '.join(message.split()))}\n")
        sys.stderr.flush()
