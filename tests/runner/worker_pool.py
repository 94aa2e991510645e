"""Runs suites on worker processes until each has the count asked for; resumes after any kill."""

import math
import multiprocessing
import os
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from .progress_file import ProgressFile
from .suite import Batch, Failure, Suite, run_batch

BATCH_SECONDS = 5.0
"""A worker reports about this often; a kill loses at most this much."""
MOST_INDICES = 512
"""Trials handed to a worker at once; what it has no time for comes back."""
MOST_BATCHES = 60
"""A worker is replaced after so many: what JAX has compiled piles up."""
ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Runner:
    """Worker processes, a folder of progress files, and a deadline."""

    folder: Path
    processes: int = 1
    seconds: float = math.inf
    """Start nothing new after this long."""
    started: float = field(default_factory=time.monotonic)

    def run(
        self, suite: Suite, wanted: Sequence[int], tell: Callable[[int, int], None]
    ) -> list[Failure]:
        """Run those of the trials wanted that were not run yet; return all failures that stand.

        ``tell`` is given the trials done and those that failed, of those wanted, after each batch.
        """
        file, now = ProgressFile(self.folder, suite), commit()
        record = file.read()
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
                yield from self._one_by_one(suite, suspects)

    def _one_by_one(self, suite: Suite, suspects: Sequence[int]) -> Iterator[Batch]:
        """Trials of which one kills its process; it is the one under way when that dies."""
        left = deque(suspects)
        while left and not self._over:
            try:
                with _pool(1) as pool:
                    while left and not self._over:
                        yield pool.submit(run_batch, suite, [left[0]], BATCH_SECONDS).result()
                        left.popleft()
            except BrokenProcessPool:
                died = Failure(suite.name, left[0], "the process that ran it died")
                yield Batch((left.popleft(),), (died,), 0.0)


def chosen(suite: Suite, fraction: float) -> list[int]:
    """The trials of a fraction, drawn once for all: a larger fraction holds every smaller one."""
    order = np.random.default_rng(suite.count).permutation(suite.count)
    return order[: math.ceil(fraction * suite.count)].tolist()


def commit() -> str:
    """The commit checked out, with ``+`` where code differs from it; ``unknown`` without git."""
    try:
        name = _git("rev-parse", "--short=9", "HEAD")
        changes = _git("status", "--porcelain", "--untracked-files=no", "--", "go_rl", "tests")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name + "+" * bool(changes)


def _git(*asked: str) -> str:
    command = ["git", "-C", str(ROOT), *asked]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _pool(processes: int) -> ProcessPoolExecutor:
    """Fresh interpreters: nothing of this process's threads is copied."""
    return ProcessPoolExecutor(
        processes,
        multiprocessing.get_context("spawn"),
        end_with_parent,
        max_tasks_per_child=MOST_BATCHES,
    )


def end_with_parent() -> None:
    """Let this worker end as soon as the process that started it is gone, however that ended."""

    def watch() -> None:
        if (parent := multiprocessing.parent_process()) is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
