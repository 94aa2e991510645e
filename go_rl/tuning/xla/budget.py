"""`TuningBudget`: the seconds that tuning may take, of which replayed measurements are a part."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Clock = Callable[[], float]
"""Returns seconds, from any start."""


class TuningBudget:
    """Budget that counts from when it is made."""

    def __init__(self, seconds: float, clock: Clock = time.perf_counter) -> None:
        self.seconds = seconds
        """Seconds of the budget in all."""
        self._clock, self._began, self._charged = clock, clock(), 0.0

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Pause the budget within the context."""
        before = self._clock()
        yield
        self._began += self._clock() - before

    def charge(self, seconds: float) -> None:
        """Count seconds that passed in an earlier run."""
        self._charged += seconds

    @property
    def spent(self) -> float:
        """Seconds spent."""
        return self._clock() - self._began + self._charged

    @property
    def left(self) -> float:
        """Seconds left, at least 0."""
        return max(0.0, self.seconds - self.spent)

    @property
    def over(self) -> bool:
        """Whether nothing is left."""
        return self.spent >= self.seconds
