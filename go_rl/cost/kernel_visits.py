"""`measure_together`: kernels that lie compiled side by side in a worker and are visited in turn.

What disturbs a core lasts for seconds; visits that are seconds apart see it disturbed and not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

import numpy as np

from go_rl.core.warm_worker import WarmWorker, WorkerDied, WorkerFailed, WorkerTimeout
from go_rl.cost.collect_config import CollectConfig
from go_rl.cost.holding import Hold, Release, Visit
from go_rl.cost.kernel_timing import Samples, joined, timing_of
from go_rl.cost.measuring_worker import reason_of

Outcome = dict[str, Any] | str
"""What `go_rl.cost.holding.Holder.answer` returns for a task; or why there is no time."""
LEAST_VISITS = 3
"""However slow: all calls of one visit may have been disturbed."""
MOST_BYTES = 2e9
"""Of the operands of kernels that are measured together."""
T = TypeVar("T")


def batches(items: Iterable[T], size: Callable[[T], float], most: int) -> Iterator[list[T]]:
    """Yield the items in batches of at most ``most``, whose operands fit into memory together.

    Args:
        items: in order.
        size: bytes of an item's operands.
        most: items of a batch.
    """
    batch: list[T] = []
    total = 0.0
    for item in items:
        if batch and (len(batch) == most or total + size(item) > MOST_BYTES):
            yield batch
            batch, total = [], 0.0
        batch.append(item)
        total += size(item)
    if batch:
        yield batch


def measure_together(
    worker: WarmWorker, tasks: Sequence[Any], config: CollectConfig
) -> list[Outcome]:
    """Return the outcome of each kernel.

    A kernel that kills the worker, or takes too long, takes down those that wait beside it; these
    start again without it.

    Args:
        worker: calls `go_rl.cost.holding.Holder.answer`.
        tasks: few enough that their operands fit into memory together.
        config: its ``timing`` says how often each is visited, and for how long.
    """
    outcomes: dict[int, Outcome] = {}
    while waiting := [i for i in range(len(tasks)) if i not in outcomes]:
        try:
            outcomes |= _Together(worker, tasks, waiting, config).measure()
        except _Lost as lost:
            outcomes |= {lost.kernel: lost.reason} | lost.failed
    return [outcomes[i] for i in range(len(tasks))]


def spent(visits: Sequence[Samples]) -> float:
    """Return the seconds of so many calls as were made, had each been as quick as the quickest:
    what disturbs one may last longer than it."""
    calls = np.concatenate([each.seconds for each in visits])
    return len(calls) * float(calls.min())


class _Lost(Exception):  # noqa: N818 - what happened
    """A kernel took the worker's process with it, and all that it held."""

    def __init__(self, kernel: int, reason: str, failed: dict[int, Outcome]) -> None:
        super().__init__(kernel, reason)
        self.kernel = kernel
        self.reason = reason
        self.failed = failed
        """Why others have no time, either."""


class _Together:
    """Measures the kernels with the numbers ``which`` together, once."""

    def __init__(
        self,
        worker: WarmWorker,
        tasks: Sequence[Any],
        which: Sequence[int],
        config: CollectConfig,
    ) -> None:
        self._worker, self._tasks, self._config = worker, tasks, config
        self._which = which
        self._failed: dict[int, Outcome] = {}
        self._about: dict[int, dict[str, Any]] = {}
        self._seen: dict[int, list[Samples]] = {}

    def measure(self) -> dict[int, Outcome]:
        """Return the outcome of each.

        Raises:
            _Lost: of one; the worker holds none any longer.
        """
        for i in self._which:
            about = self._ask(i, Hold(self._tasks[i]))
            if about is not None:
                self._about[i], self._seen[i] = about, []
        place = {i: number for number, i in enumerate(self._about)}
        for _ in range(self._config.timing.visits):
            for i in filter(self._unfinished, place):
                self._visit(i, place[i])
        self._worker.call(Release(), self._config.timeout)
        return self._failed | {i: self._outcome(i) for i in place if i not in self._failed}

    def _unfinished(self, i: int) -> bool:
        seen, timing = self._seen[i], self._config.timing
        return i not in self._failed and (
            len(seen) < min(LEAST_VISITS, timing.visits) or spent(seen) < timing.patience
        )

    def _visit(self, i: int, place: int) -> None:
        samples = self._ask(i, Visit(place, self._config.timing))
        if samples is not None:
            self._seen[i].append(samples)

    def _outcome(self, i: int) -> Outcome:
        return {**asdict(timing_of(joined(self._seen[i]))), **self._about[i]}

    def _ask(self, i: int, request: Hold | Visit) -> Any:
        """Return what the worker answers; None where it fails, which is noted."""
        try:
            return self._worker.call(request, self._config.timeout)
        except WorkerFailed as error:
            self._failed[i] = reason_of(error, self._config.timeout)
        except (WorkerDied, WorkerTimeout) as error:
            raise _Lost(i, reason_of(error, self._config.timeout), self._failed) from None
        return None
