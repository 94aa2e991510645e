"""Runs suites on worker processes until each has the count asked for; resumes after any kill."""

from __future__ import annotations

import math
import multiprocessing
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .progress_file import ProgressFile
from .suite import Failure, Suite
from .trial import Batch, run_batch

BATCH_SECONDS = 5.0
"""A worker reports about this often; a kill loses at most this much."""
MOST_INDICES = 512
"""Trials handed to a worker at once; what it has no time for comes back."""
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Runner:
    """Worker processes, a folder of progress files, and a deadline."""

    folder: Path
    processes: int = 1
    seconds: float = math.inf
    """Start nothing new after this long."""
    started: float = field(default_factory=time.monotonic)

    def run(self, suite: Suite, fraction: float, tell: Callable[[int, int], None]) -> list[Failure]:
        """Bring a suite to a fraction of its full count; return all failures that stand.

        ``tell`` is given the trials done and those that failed, of those asked for, after each
        batch.
        """
        file, now = ProgressFile(self.folder, suite), commit()
        record, wanted = file.read(), chosen(suite, fraction)
        todo = [index for index in wanted if record.todo(index, now)]
        done, failed = len(wanted) - len(todo), set(record.failures) - set(todo)
        tell(done, len(failed))
        for batch in self._batches(suite, todo):
            file.append(batch, now)
            done += len(batch.indices)
            failed |= {failure.index for failure in batch.failures}
            tell(done, len(failed))
        return list(file.read().failures.values())

    @property
    def _over(self) -> bool:
        return time.monotonic() - self.started > self.seconds

    def _batches(self, suite: Suite, todo: Sequence[int]) -> Iterator[Batch]:
        """Batches as workers end them; a trial that kills its worker is found and reported."""
        left = deque(todo)
        while left and not self._over:
            under_way: dict[Future[Batch], list[int]] = {}
            try:
                with _pool(self.processes) as pool:
                    while under_way or (left and not self._over):
                        while left and len(under_way) < self.processes and not self._over:
                            taken = [left.popleft() for _ in range(min(MOST_INDICES, len(left)))]
                            under_way[pool.submit(run_batch, suite, taken, BATCH_SECONDS)] = taken
                        ended, _ = wait(under_way, return_when=FIRST_COMPLETED)
                        for future in ended:
                            batch = future.result()
                            taken = under_way.pop(future)
                            left.extendleft(reversed(taken[len(batch.indices) :]))
                            yield batch
            except BrokenProcessPool:
                suspects = [index for taken in under_way.values() for index in taken]
                yield from (self._alone(suite, index) for index in suspects if not self._over)

    def _alone(self, suite: Suite, index: int) -> Batch:
        """A trial in a process of its own."""
        try:
            with _pool(1) as pool:
                return pool.submit(run_batch, suite, [index], BATCH_SECONDS).result()
        except BrokenProcessPool:
            died = Failure(suite.name, index, "the process that ran it died")
            return Batch((index,), (died,), 0.0)


def chosen(suite: Suite, fraction: float) -> list[int]:
    """The trials of a fraction, drawn once for all: a larger fraction holds every smaller one."""
    order = np.random.default_rng(suite.count).permutation(suite.count)
    return order[: math.ceil(fraction * suite.count)].tolist()


def commit() -> str:
    """The commit of the working tree, with ``+`` where it has changes; ``unknown`` without git."""
    asked = ["git", "-C", str(ROOT), "describe", "--always", "--abbrev=9", "--exclude=*"]
    try:
        found = subprocess.run([*asked, "--dirty=+"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def _pool(processes: int) -> ProcessPoolExecutor:
    """Fresh interpreters: nothing of this process's threads is copied."""
    return ProcessPoolExecutor(processes, multiprocessing.get_context("spawn"))
