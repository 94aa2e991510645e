"""Pages of results: what every script of the experiments writes in the same way."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from go_rl.core.files.whole_file import write_text

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "experiments" / "results"
NOTHING = "–"
"""Cell without a number."""


def run_script(main: Callable[[Any], None], options: type[Any], description: str | None) -> None:
    """Run a script with the options of the command line."""
    main(tyro.cli(options, description=description, config=(tyro.conf.FlagCreatePairsOff,)))


def write_page(path: Path, text: str, script: str) -> None:
    """Write a page, with the command that makes it below its title.

    Args:
        path: file, or its name without the ending.
        text: Markdown that starts with a title.
        script: file of the script, ``__file__``.
    """
    title, _, rest = text.partition("\n")
    words = shlex.join(sys.argv[1:])
    command = f"python -m {module_of(script)} {words}".strip()
    write_text(path.with_suffix(".md"), f"{title}\n\nMade by `{command}`.\n{rest}")


def module_of(script: str) -> str:
    """Return the module of a script, such as ``experiments.partition.mcm_rivals``."""
    return ".".join(Path(script).resolve().relative_to(ROOT).with_suffix("").parts)


def table_lines(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return the lines of a table in Markdown."""
    return [
        "| " + " | ".join(heads) + " |",
        "|" + "---|" * len(heads),
        *("| " + " | ".join(row) + " |" for row in rows),
    ]


def geometric_mean(values: Iterable[float]) -> float:
    """Return the geometric mean of the finite values; NaN of none."""
    logs = [np.log(value) for value in values if np.isfinite(value)]
    return float(np.exp(np.mean(logs))) if logs else float("nan")


def cell(value: float, digits: int = 3) -> str:
    """Return a number with so many decimals, or a dash for NaN."""
    return NOTHING if np.isnan(value) else f"{value:.{digits}f}"


def rounded(value: float, digits: int = 6) -> float:
    """Return a number with so many significant digits."""
    return float(f"{value:.{digits}g}")


def short(value: object) -> str:
    """Return a value as text; numbers have four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def say(done: int, sentence: str) -> None:
    """Print the progress of a comparison."""
    print(done, sentence, flush=True)


def repeated_seconds(
    run: Callable[[], object], repeats: int, clock: Callable[[], float] = time.perf_counter
) -> Sequence[float]:
    """Return the seconds of several calls, after one that compiles and is not counted."""
    run()
    found = []
    for _ in range(repeats):
        started = clock()
        run()
        found.append(clock() - started)
    return found
