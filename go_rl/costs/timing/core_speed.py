"""`CoreSpeed`: how fast this core runs just now, told by a piece of fixed work.

A virtual core shares its execution units, its clock and its time with strangers. While these are
busy everything takes up to twice as long, for milliseconds or for hours; no count of repeats
averages that away.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from go_rl.core.errors import RecordError
from go_rl.core.files.whole_file import write_text

WORK = "product"
"""Name of the fixed work in files: seconds of another work are not its reference."""
LEFT, RIGHT = (1 << 1800) - 12345, (1 << 1800) - 54321
"""Factors of the fixed work, 60 of CPython's digits each: two products take about six microseconds,
and no memory to speak of, so that the caches stay as they are. A product has less than the 512
bytes that CPython takes from a pool of its own; larger ones lie anywhere, and vary by a seventh."""
FULL_SHARE = 0.005
"""The reference speed is the one that is exceeded in so small a share of the time."""


def fixed_work() -> None:
    """Multiply two long whole numbers, twice.

    Not a loop over an iterator, whose counter passes through memory in each round: on a Zen 4 a sum
    of ones takes 1.22 times as long in some processes, and from some moment on, by where its
    iterator happens to lie, while nothing else is slower.
    """
    _ = LEFT * RIGHT
    _ = RIGHT * LEFT


class CoreSpeed:
    """Times a piece of fixed work.

    Args:
        full: seconds of the work at the core's reference speed.
        work: what is timed.
    """

    def __init__(self, full: float, work: Callable[[], object] = fixed_work) -> None:
        self._full = full
        self._work = work

    def __call__(self) -> float:
        """Return how many times as long as at the reference speed the work takes just now; it is
        done once before it is timed, for what it needs may have left the caches."""
        self._work()
        began = time.perf_counter()
        self._work()
        return (time.perf_counter() - began) / self._full


def full_pace(seconds: float) -> float:
    """Return the seconds of the fixed work at this core's reference speed, having tried for so
    long."""
    seen, pace, end = [], CoreSpeed(1.0), time.perf_counter() + seconds
    while not seen or time.perf_counter() < end:
        seen.append(pace())
    return float(np.quantile(seen, FULL_SHARE))


FULL_PACE, PROCESSOR, OF_WORK = "full_pace_seconds", "processor", "work"


@dataclass(frozen=True)
class FolderPace:
    """Pace of a target's machine, as known in a folder."""

    full_pace: float
    """Seconds of the fixed work at the core's reference speed."""
    processor: str = ""
    """`processor_name` of where it was measured; "": unknown, or no processor measures."""
    work: str = WORK
    """Name of the fixed work; "" in files from before it had one."""

    def check(self, path: Path, target: str, here: str) -> None:
        """Raise a `RecordError` if this machine's processor is known to be another one.

        Args:
            path: of the file that this was read from.
            target: its target.
            here: this machine's processor.
        """
        if self.processor and here and here != self.processor:
            raise RecordError(
                f"{path}: {target!r} was measured on a processor {self.processor}, and this "
                f"machine's is {here}: times of both must not mix; give this machine a name of its "
                "own (--target), or measure into another folder"
            )


def pace_path(folder: Path, target: str) -> Path:
    """Return the file of a target."""
    return folder / f"pace-{target}.json"


def read_pace(path: Path) -> FolderPace:
    """Read what `write_pace` wrote.

    Raises:
        RecordError: the file is damaged.
    """
    try:
        told = json.loads(path.read_text())
        full = float(told[FULL_PACE])
        found = FolderPace(full, str(told.get(PROCESSOR, "")), str(told.get(OF_WORK, "")))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordError(f"{path}: must hold a number {FULL_PACE!r} ({error})") from error
    if not 0 < found.full_pace < float("inf"):
        raise RecordError(f"{path}: {FULL_PACE} must be seconds above 0, not {found.full_pace}")
    return found


def write_pace(path: Path, pace: FolderPace) -> None:
    """Write the file, and the folder if there is none; a reader never sees half of it."""
    told = {FULL_PACE: pace.full_pace, PROCESSOR: pace.processor, OF_WORK: pace.work}
    write_text(path, json.dumps(told) + "\n")
