"""What every script here inherits: options on the command line, rows that are kept, a page.

A script declares its options as a frozen dataclass, its rows as another, and what is done in `run`;
``python -m experiments FOLDER.NAME`` then calls `Script.main`.
"""

from __future__ import annotations

import inspect
import resource
import shlex
import subprocess
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, TypeVar
from unittest import mock

import tyro
from matplotlib.figure import Figure

from experiments.rows import KeptRows, csv_text
from go_rl.core.files.whole_file import write_text
from go_rl.report.figures import save_figure

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "experiments" / "results"
REMARKS = "\n\n## Remarks\n"
"""Before what is written by hand at the end of a page."""
R = TypeVar("R")


@dataclass(frozen=True)
class Script(ABC):
    """Options of a script."""

    @abstractmethod
    def run(self) -> None:
        """Do what the script is for."""

    @classmethod
    def main(cls, prog: str | None = None) -> None:
        """Run with the options of the command line; the script's docstring is the help. ``prog``:
        how the script was called, for the help."""
        words = inspect.getdoc(inspect.getmodule(cls))
        tyro.cli(cls, prog=prog, description=words, config=(tyro.conf.FlagCreatePairsOff,)).run()

    @property
    def name(self) -> str:
        """Name of the script, such as ``partition.solver_speed``."""
        path = Path(inspect.getfile(type(self))).resolve()
        return ".".join(path.relative_to(ROOT / "experiments").with_suffix("").parts)

    def in_own_process(self, *options: object) -> list[str]:
        """Return the lines that this script prints with other options, in a process of its own.

        Raises:
            RuntimeError: it ends with an error, whose last line is the message.
        """
        command = [sys.executable, "-m", "experiments", self.name, *map(str, options)]
        answer = subprocess.run(command, capture_output=True, text=True)
        if answer.returncode:
            lines = answer.stderr.strip().splitlines() or [f"exit code {answer.returncode}"]
            raise RuntimeError(lines[-1])
        return answer.stdout.splitlines()


def peak_mib() -> float:
    """Return the largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@dataclass(frozen=True)
class Experiment(Script):
    """Options of a script that makes a page of results, with rows, tables and figures beside it."""

    out: Path = field(default=RESULTS, kw_only=True)
    """Folder of the page, of its rows, which are kept between runs, and of its figures."""
    page_name: ClassVar[str] = ""
    """Name of the page where it is not that of the script."""

    @property
    def stem(self) -> Path:
        """Path of the page without its ending; also the folder of runs too large for one file."""
        return self.out / (self.page_name or self.name.rpartition(".")[2])

    def path(self, ending: str) -> Path:
        """Return the path of a file beside the page, such as that which ends in ``.csv``."""
        return self.stem.with_name(self.stem.name + ending)

    def kept_rows(self, kind: type[R], ending: str = ".csv", run: str = "") -> KeptRows[R]:
        """Return the rows made so far; see `KeptRows`."""
        return KeptRows(kind, self.path(ending), run)

    def kept_runs(self, kind: type[R]) -> KeptRows[R]:
        """Return the same for rows with lists: lines of JSON in the folder of the page's name."""
        return KeptRows(kind, self.stem / "runs.jsonl")

    def write_rows(self, rows: Iterable[R], ending: str = ".csv") -> list[R]:
        """Print rows of one kind, at least one, as they are made; write them as a table beside the
        page, and return them."""
        made: list[R] = []
        for row in rows:
            print(row, flush=True)
            made.append(row)
        write_text(self.path(ending), csv_text(type(made[0]), made))
        return made

    def save_figure(self, figure: Figure, ending: str = "") -> None:
        """Write a figure with the name of the page, and an ending where there are several."""
        save_figure(figure, self.path(ending))

    def write_page(self, text: str | Iterable[str], name: str | None = None) -> None:
        """Write the page, with the command that makes it below its title. Its last section, where
        that is `REMARKS`, is written by hand and stays.

        Args:
            text: Markdown, or its lines, that starts with a title.
            name: name of the page where a script makes several.
        """
        whole = text if isinstance(text, str) else "\n".join(text)
        title, _, rest = whole.rstrip("\n").partition("\n")
        command = f"python -m experiments {self.name} {shlex.join(sys.argv[1:])}".strip()
        path = self.stem.with_name(f"{name or self.stem.name}.md")
        known = path.read_text(encoding="utf-8") if path.exists() else ""
        remarks = "".join(known.partition(REMARKS)[1:]) or "\n"
        write_text(path, f"{title}\n\nMade by `{command}`.\n{rest}{remarks}")


def say(done: int, sentence: str) -> None:
    """Print the progress of a comparison."""
    print(done, sentence, flush=True)


def say_loss(*progress: float) -> None:
    """Print the progress of training: numbers of the member and the update, and the loss."""
    *where, loss = progress
    print(*where, f"{loss:.4f}", flush=True)


@contextmanager
def processor_seconds() -> Iterator[None]:
    """Within it, budgets in seconds are those of the processor, whatever else the machine does."""
    with mock.patch.object(time, "perf_counter", time.process_time):
        yield


def timed(run: Callable[[], R], clock: Callable[[], float] = time.perf_counter) -> tuple[R, float]:
    """Return what a call returns, and the seconds that it takes."""
    started = clock()
    found = run()
    return found, clock() - started
