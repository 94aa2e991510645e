"""`ObservedTrials`: what is known of one operator's schedules, the whole state of a tuner."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from jaxtyping import Float32

from go_rl.costs.trees.schedule_ranks import MeasuredSchedules
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Schedule, ScheduleSpace, Trial


class ObservedTrials:
    """Trials in the order that they were observed; a schedule counts once, by its first trial.

    Args:
        space: of the operator.
        seed: of the tuner, >= 0.

    Raises:
        TuningError: the seed is negative.
    """

    def __init__(self, space: ScheduleSpace, seed: int) -> None:
        if seed < 0:
            raise TuningError(f"inner tuner: seed must be >= 0, not {seed}")
        self.space, self.seed, self.count = space, seed, 0
        self._schedules: dict[str, Schedule] = {}
        self._seconds: dict[str, float] = {}
        self._rows: list[Float32[np.ndarray, "numbers"]] = []
        """Features of the first schedules, as many as were asked for."""

    def add(self, trials: Sequence[Trial]) -> None:
        """Append trials.

        Raises:
            TuningError: seconds are not above 0 and finite.
        """
        for trial in trials:
            seconds = math.inf if trial.seconds is None else trial.seconds
            if not seconds > 0 or (trial.seconds is not None and not math.isfinite(seconds)):
                raise TuningError(
                    f"inner tuner: seconds of schedule {trial.schedule.key!r} must be finite and "
                    f"above 0, or None, not {trial.seconds}"
                )
            key = trial.schedule.key
            self._seconds.setdefault(key, seconds)
            self._schedules.setdefault(key, trial.schedule)
        self.count += len(trials)

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds by the key of a schedule; infinite: it failed."""
        return MappingProxyType(self._seconds)

    @property
    def schedules(self) -> list[Schedule]:
        """Distinct schedules, in the order of `seconds`."""
        return list(self._schedules.values())

    @property
    def timed(self) -> int:
        """Distinct schedules that have a time."""
        return sum(map(math.isfinite, self._seconds.values()))

    def fastest(self, count: int) -> list[Schedule]:
        """Return up to ``count`` schedules that have a time, fastest first."""
        known = [key for key, seconds in self._seconds.items() if math.isfinite(seconds)]
        ranked = sorted(known, key=lambda key: self._seconds[key])
        return [self._schedules[key] for key in ranked[:count]]

    def measured(self) -> MeasuredSchedules:
        """Return the distinct schedules, failed ones included, for a cost model."""
        new = list(self._schedules.values())[len(self._rows) :]
        if new:
            self._rows.extend(self.space.features(new))
        return MeasuredSchedules(np.stack(self._rows), np.array([*self._seconds.values()]))

    def rng(self) -> np.random.Generator:
        """Return the source of chance of the next proposal, the same until more is observed."""
        return np.random.default_rng((self.seed, self.count))


def stochastic_count(share: float, count: int, rng: np.random.Generator) -> int:
    """Return a whole number that is ``share * count`` on average, rounded up or down by chance."""
    return math.floor(share * count + rng.random())
