"""How far suites are: a bar each on a terminal, elsewhere a line now and then."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

EVERY_SECONDS = 60.0
"""Between two lines where there is no terminal."""
Tell = Callable[[int, int], None]
"""Takes the trials done and those lost."""


@contextmanager
def bars() -> Iterator[Callable[[str, int], Tell]]:
    """Yield the function that begins a bar: of a name and a number of trials."""
    console = Console(file=sys.stderr)
    columns = (
        TextColumn("{task.description:<17}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[lost]} lost"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:

        def begin(name: str, total: int) -> Tell:
            bar = progress.add_task(name, total=total, lost=0)
            line = _lines(name, total)

            def tell(done: int, lost: int) -> None:
                progress.update(bar, completed=done, lost=lost)
                if not console.is_terminal:
                    line(done, lost)

            return tell

        yield begin


def _lines(name: str, total: int) -> Tell:
    last = -EVERY_SECONDS

    def tell(done: int, lost: int) -> None:
        nonlocal last
        now = time.monotonic()
        if done == total or now - last >= EVERY_SECONDS:
            last = now
            print(f"{name} {done:,}/{total:,}, {lost} lost", file=sys.stderr, flush=True)

    return tell
