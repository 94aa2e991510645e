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
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from go_rl.core.optimizer import Milestone

LINES = 100
"""Lines that a counted command writes to a file at most."""


def console() -> Console:
    """Return standard output for tables; a pipe gets wide lines without colours."""
    terminal = sys.stdout.isatty()
    return Console(file=sys.stdout, width=None if terminal else 160, highlight=False)


@contextmanager
def working(sentence: str) -> Iterator[Callable[[str], None]]:
    """Show a spinner with what is going on; yields the function that changes its sentence.

    It is on standard error, and only on a terminal; a `Milestone` stays, and is shown anywhere.
    Whatever libraries print meanwhile goes to standard error too, so that standard output holds
    results only.
    """
    error = Console(file=sys.stderr)
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with (
        Progress(*columns, console=error, transient=True, disable=not error.is_terminal) as bar,
        _output_to_error(),
    ):
        task = bar.add_task(sentence, total=None)

        def report(text: str) -> None:
            if isinstance(text, Milestone):
                error.print(text, markup=False, soft_wrap=True)
            bar.update(task, description=text)

        yield report


@contextmanager
def counting(sentence: str, total: int) -> Iterator[Callable[[int, str], None]]:
    """Show a bar of ``total`` steps; yields the function that takes (steps done, a sentence).

    As `working`, it is on standard error; where that is no terminal, a line now and then is.
    """
    error = Console(file=sys.stderr)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
               TimeElapsedColumn(), TimeRemainingColumn())  # fmt: skip
    with (
        Progress(*columns, console=error, disable=not error.is_terminal) as bar,
        _output_to_error(),
    ):
        task = bar.add_task(sentence, total=total)
        every = max(1, total // LINES)

        def advance(done: int, text: str) -> None:
            bar.update(task, completed=done, description=text)
            if not error.is_terminal and (done % every == 0 or done == total):
                error.print(f"{done}/{total}  {text}", markup=False)

        yield advance


@contextmanager
def _output_to_error() -> Iterator[None]:
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


def tell(message: str) -> None:
    """Print a line of progress on standard error."""
    with suppress(OSError):
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()


def complain(message: str) -> None:
    """Print one line on standard error; one that takes nothing more changes no exit code."""
    with suppress(OSError):
        sys.stderr.write(f"go-rl: {' '.join(message.split())}\n")
        sys.stderr.flush()
