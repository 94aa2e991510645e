"""`ReplayBackend`: tuning over recorded pools, with a clock of its own.

Measuring a schedule gives the seconds that were recorded for it and advances the clock by what
building and timing it took then; nothing else takes time. Equal runs are equal to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from jaxtyping import Float32, Int64

from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Schedule, ScheduleSpace, Trial, TunedOperator
from go_rl.tuning.pools.schedule_pool import PoolSet, SchedulePool

NEAREST = 8
"""Schedules of a pool that are neighbours of one."""


class PoolSpace:
    """The schedules of a pool.

    Args:
        pool: of the operator.
    """

    def __init__(self, pool: SchedulePool) -> None:
        self._pool = pool
        self._schedules = [Schedule(f"{key:016x}") for key in pool.keys.tolist()]
        self._rows = {each.key: row for row, each in enumerate(self._schedules)}

    def draw(self, count: int, rng: np.random.Generator) -> list[Schedule]:
        """Return up to ``count`` random schedules, without replacement."""
        chosen = rng.permutation(len(self._schedules))[:count]
        return [self._schedules[row] for row in chosen.tolist()]

    def neighbour(self, schedule: Schedule, rng: np.random.Generator) -> Schedule | None:
        """Return one of the `NEAREST` schedules by features; None: the pool has one schedule."""
        near = self._near[self.row(schedule)]
        return self._schedules[int(near[rng.integers(len(near))])] if len(near) else None

    def features(self, schedules: Sequence[Schedule]) -> Float32[np.ndarray, "S numbers"]:
        """Return [S, numbers] recorded features."""
        return self._pool.features[[self.row(each) for each in schedules]]

    def row(self, schedule: Schedule) -> int:
        """Return where a schedule lies in the pool.

        Raises:
            TuningError: it is not there.
        """
        if schedule.key not in self._rows:
            raise TuningError(
                f"{self._pool.operator.name}: schedule {schedule.key!r} is not in the recorded pool"
            )
        return self._rows[schedule.key]

    @cached_property
    def _near(self) -> Int64[np.ndarray, "S near"]:
        """[S, near] rows of the nearest schedules, by features of deviation 1."""
        features = self._pool.features.astype(np.float64)
        deviation = features.std(0)
        scaled = (features - features.mean(0)) / np.where(deviation > 0, deviation, 1.0)
        squares = (scaled**2).sum(1)
        distances = squares[:, None] + squares - 2 * scaled @ scaled.T
        np.fill_diagonal(distances, np.inf)
        count = min(NEAREST, len(features) - 1)
        return np.argsort(distances, axis=1, kind="stable")[:, :count]


class ReplayBackend:
    """A network's recorded pools as a back end.

    Args:
        pools: of the network.
    """

    def __init__(self, pools: PoolSet) -> None:
        self._pools, self._now = pools, 0.0
        self._spaces = [PoolSpace(pool) for pool in pools.pools]

    @property
    def target(self) -> str:
        """Of the recording."""
        return self._pools.target

    @property
    def operators(self) -> tuple[TunedOperator, ...]:
        """The recorded operators."""
        return tuple(pool.operator for pool in self._pools.pools)

    @property
    def fixed_seconds(self) -> float:
        """0: nothing else was recorded."""
        return 0.0

    @property
    def peak_flops(self) -> float:
        """Of the target."""
        return self._pools.peak_flops

    def space(self, operator: int) -> ScheduleSpace:
        """Return the pool of an operator."""
        return self._spaces[operator]

    def measure(self, operator: int, schedules: Sequence[Schedule]) -> list[Trial]:
        """Return what was recorded, and advance the clock."""
        trials = [self.trial(operator, schedule) for schedule in schedules]
        self._now += sum(trial.spent for trial in trials)
        return trials

    def trial(self, operator: int, schedule: Schedule) -> Trial:
        """Return what was recorded of a schedule."""
        pool, row = self._pools.pools[operator], self._spaces[operator].row(schedule)
        seconds, spent = float(pool.seconds[row]), float(pool.spent[row])
        if np.isnan(seconds):
            return Trial(schedule, None, spent, "it failed when it was recorded")
        return Trial(schedule, seconds, spent)

    def clock(self) -> float:
        """Return seconds of the replay."""
        return self._now
