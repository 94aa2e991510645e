"""`measure_together`: kernels that lie compiled side by side in a worker and are visited in turn.

What disturbs a core lasts for seconds; visits that are seconds apart see it disturbed and not.
There is no further visit to what is known well enough: the coefficient of variation of what was
measured so far decides, as in Li et al., "AdaTune: Adaptive Tensor Program Compilation Made
Efficient" (NeurIPS 2020), where `TimingConfig.variation` is above 0.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import chain, islice
from typing import Any, TypeVar

import numpy as np

from go_rl.costs.timing.config import CollectConfig
from go_rl.costs.timing.measuring_run import Hold, OtherProcessError, Release, Visit
from go_rl.costs.timing.timing import TimingSamples, is_quiet, joined, timing_of
from go_rl.costs.timing.worker import reason_of
from go_rl.runtime.warm_worker import WarmWorker, WorkerDied, WorkerFailed, WorkerTimeout

RequestOutcome = dict[str, Any] | str
"""Answer of `go_rl.costs.timing.measuring_run.MeasuringRun.answer` for a request; or a text that
says why there is no time."""
VISIT_SECONDS = "visit_seconds"
"""Field of an outcome: seconds on the wall of all its visits, what is discarded included."""
PARTIAL = "partial"
"""Field of an outcome that says that further visits were still to come."""
LEAST_VISITS = 3
"""However slow: all calls of one visit may have been disturbed."""
GROUP = 16
"""Kernels that are compiled between two rounds of visits: the first have times, and are kept,
while the last are not compiled yet."""
LEAST_VARIED = 2
"""Visits from which there is a variation."""
DEATHS = 3
"""Deaths of the worker between two requests, of which no kernel is known to be the cause, until
that which was asked for next counts as it."""
CHECK_SECONDS = 0.02
"""Seconds from one look whether the core is still disturbed to the next."""
MOST_BYTES = 2e9
"""Most bytes of the operands of kernels that are measured together."""
Keep = Callable[[dict[int, RequestOutcome]], None]
T = TypeVar("T")


class NotReady:
    """In place of a request: the next one is not ready yet; meanwhile programs are visited."""


NOT_READY = NotReady()


def batches(
    items: Iterable[T], size: Callable[[T], float], most: int
) -> Iterator[Generator[T, None, None]]:
    """Yield the items in batches of at most ``most``, whose operands fit into memory together.

    A batch takes each item when it is asked for, so that its first can be used while its last is
    not made yet; it must be exhausted before the next batch is asked for.

    Args:
        items: in order.
        size: bytes of an item's operands.
        most: items of a batch.
    """
    iterator = iter(items)
    ahead: list[T] = []

    def batch() -> Generator[T, None, None]:
        count, total = 0, 0.0
        for item in chain([ahead.pop()], iterator):
            if count and (count == most or total + size(item) > MOST_BYTES):
                ahead.append(item)
                return
            count, total = count + 1, total + size(item)
            yield item

    for first in iterator:
        ahead.append(first)
        while ahead:
            yield batch()


def measure_together(
    worker: WarmWorker, requests: Iterable[Any], config: CollectConfig, keep: Keep | None = None
) -> list[RequestOutcome]:
    """Return the outcome of each kernel.

    A kernel that kills the worker, or takes too long, takes down those that wait beside it; these
    start again without it. Where the worker died between two requests, all start again.

    Args:
        worker: calls `go_rl.costs.timing.measuring_run.MeasuringRun.answer`.
        requests: few enough that their operands fit into memory together; each is taken when its
            turn to be compiled comes; or `NOT_READY`.
        config: its ``timing`` says how often each is visited, and for how long.
        keep: is told outcomes, by request, as soon as there are any, and what they have become when
            their visits are over; who stops before the end has these.
    """
    outcomes: dict[int, RequestOutcome] = {}
    taken: list[Any] = []
    more = iter(requests)
    deaths = 0

    def waiting() -> Iterator[tuple[int, Any] | None]:
        yield from [(i, request) for i, request in enumerate(taken) if i not in outcomes]
        for request in more:
            if request is NOT_READY:
                yield None
            else:
                taken.append(request)
                yield len(taken) - 1, request

    while True:
        try:
            outcomes |= _Together(worker, config, keep).measure(waiting())
        except _Lost as lost:
            deaths += lost.between
            blamed = not lost.between or deaths == DEATHS
            outcomes |= ({lost.kernel: lost.reason} if blamed else {}) | lost.failed
        else:
            return [outcomes[i] for i in range(len(taken))]


def settled(visits: Sequence[TimingSamples], variation: float) -> bool:
    """Return whether the times of visits vary so little that no further one is needed.

    Args:
        visits: of one program; the time of a visit is that of `timing_of`.
        variation: the largest coefficient of variation, standard deviation over mean; 0: never.
    """
    if variation == 0 or len(visits) < LEAST_VARIED:
        return False
    seconds = np.array([timing_of(visit).seconds for visit in visits])
    return float(seconds.std(ddof=1) / seconds.mean()) <= variation


def spent(visits: Sequence[TimingSamples]) -> float:
    """Return the seconds of so many calls as were made, had each been as quick as the quickest:
    what disturbs one may last longer than it."""
    calls = np.concatenate([each.seconds for each in visits])
    return len(calls) * float(calls.min())


class _Lost(Exception):  # noqa: N818 - what happened
    """A kernel took the worker's process with it, and all that it held."""

    def __init__(
        self, kernel: int, reason: str, failed: dict[int, RequestOutcome], between: bool = False
    ) -> None:
        super().__init__(kernel, reason)
        self.kernel = kernel
        self.reason = reason
        self.failed = failed
        """Reason why other requests have no time, either."""
        self.between = between
        """Whether that was between two requests: another may have taken it."""


class _Together:
    """Measures kernels together, once."""

    def __init__(self, worker: WarmWorker, config: CollectConfig, keep: Keep | None) -> None:
        self._worker, self._config, self._keep = worker, config, keep
        self._failed: dict[int, RequestOutcome] = {}
        self._about: dict[int, dict[str, Any]] = {}
        self._seen: dict[int, list[TimingSamples]] = {}
        self._visiting: dict[int, float] = {}
        self._finished: set[int] = set()
        """Programs that need no further visit."""
        self._disturbed: Counter[int] = Counter()
        """Visits of each program that were disturbed: the longest ones most often."""
        self._waited = 0.0
        """Seconds waited for a core that nobody disturbs, since the last quiet visit."""

    def measure(self, requests: Iterator[tuple[int, Any] | None]) -> dict[int, RequestOutcome]:
        """Return the outcome of each request, by its number; None: the next is not ready.

        Raises:
            _Lost: of one; the worker holds none any longer.
        """
        rounds = LEAST_VISITS  # so that who stops a run early has something
        # Moments in which nobody disturbs the core are for visits, all others for compiling.
        size = 1 if self._config.timing.most_slowed else GROUP
        while group := list(islice(requests, size)):
            ready = [each for each in group if each is not None]
            for i, request in ready:
                self._hold(i, request)
            visited = [self._round() for _ in range(rounds if ready else 1)]
            if not ready and not any(visited):
                time.sleep(CHECK_SECONDS)
            rounds = 1 if ready else rounds
        began = time.perf_counter()
        while (visited := self._round()) is not None:
            if not visited and self._config.timing.most_slowed:
                time.sleep(CHECK_SECONDS)
                self._waited += time.perf_counter() - began
            began = time.perf_counter()
        if self._seen:
            self._worker.call(Release(), self._config.timeout)
        return self._failed | {i: self._outcome(i) for i in self._seen if i not in self._failed}

    def _hold(self, i: int, request: Any) -> None:
        about = self._ask(i, Hold(len(self._seen), request))
        if about is not None:
            self._about[i], self._seen[i] = about, []

    def _round(self) -> int | None:
        """Visit all that are held and need it, until the core is disturbed; return how many visits
        counted. None: nothing needs any."""
        seen = self._seen
        places = [(place, i) for place, i in enumerate(seen) if i not in self._finished]
        if not places:
            return None
        visited: list[int] = []
        if self._config.timing.most_slowed:  # the next may be the last before a disturbance
            places.sort(key=lambda each: (self._disturbed[each[1]], -len(seen[each[1]])))
        for place, i in places:
            if not self._visit(i, place):
                break
            visited.append(i)
        if self._keep is not None:
            self._keep({i: self._outcome(i) for i in visited if self._is_news(i)})
        return len(visited)

    def _is_news(self, i: int) -> bool:
        """Whether the last visit gave the first times that count, or the last."""
        few = len(self._seen[i]) == LEAST_VISITS
        return i not in self._failed and (few or not self._unfinished(i))

    def _unfinished(self, i: int) -> bool:
        seen, timing = self._seen[i], self._config.timing
        if i in self._failed or len(seen) >= timing.visits or settled(seen, timing.variation):
            return False
        return len(seen) < LEAST_VISITS or spent(seen) < timing.patience

    def _visit(self, i: int, place: int) -> bool:
        """Visit one; False: the core was disturbed, and the visit does not count."""
        timing, began = self._config.timing, time.perf_counter()
        patient = self._waited < timing.wait
        asked = timing if patient else replace(timing, most_slowed=0.0)
        samples = self._ask(i, Visit(place, asked))
        self._visiting[i] = self._visiting.get(i, 0.0) + time.perf_counter() - began
        if samples is None:
            return i in self._failed
        if is_quiet(samples, timing.most_slowed):
            self._waited = 0.0
        elif patient:
            self._disturbed[i] += 1
            return False
        self._seen[i].append(samples)
        if not self._unfinished(i):
            self._finished.add(i)
        return True

    def _outcome(self, i: int) -> RequestOutcome:
        seen, most = self._seen[i], self._config.timing.most_slowed
        quiet = [each for each in seen if is_quiet(each, most)]
        timing = asdict(timing_of(joined(quiet or seen)))
        took = {VISIT_SECONDS: self._visiting[i]}
        return {**timing, **took, **self._about[i], PARTIAL: self._unfinished(i)}

    def _ask(self, i: int, request: Hold | Visit) -> Any:
        """Return what the worker answers; None where it fails, which is noted."""
        try:
            return self._worker.call(request, self._config.timeout)
        except WorkerFailed as error:
            if error.kind == OtherProcessError.__name__:
                reason = "the worker's process died between two requests"
                raise _Lost(i, reason, self._failed, between=True) from None
            self._failed[i] = reason_of(error, self._config.timeout)
            self._finished.add(i)
        except (WorkerDied, WorkerTimeout) as error:
            raise _Lost(i, reason_of(error, self._config.timeout), self._failed) from None
        return None
