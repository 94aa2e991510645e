"""`ScoredPool`: schedules that a cost model scored while it looked for what to measure next."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float32, Float64, Int64

from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Schedule, ScheduleSpace


@runtime_checkable
class ScheduleScorer(Protocol):
    """A cost model of one operator's schedules, whatever it reads of them."""

    def __call__(
        self, schedules: Sequence[Schedule], features: Float32[np.ndarray, "S numbers"], /
    ) -> Float64[np.ndarray, "S"]:
        """Return [S] scores of schedules: the smallest is the fastest. ``features``: what
        `ScheduleSpace.features` says of them."""
        ...


@dataclass(frozen=True, eq=False)
class ScoredSchedules:
    """``S`` distinct schedules, by rising score."""

    schedules: tuple[Schedule, ...]
    scores: Float64[np.ndarray, "S"]
    features: Float32[np.ndarray, "S numbers"]

    def take(self, which: Int64[np.ndarray, "J"]) -> ScoredSchedules:
        """Return some of them."""
        chosen = tuple(self.schedules[i] for i in which.tolist())
        return ScoredSchedules(chosen, self.scores[which], self.features[which])


class ScoredPool:
    """Schedules by key, each scored once.

    Args:
        space: of the operator.
        scorer: scores them.
    """

    def __init__(self, space: ScheduleSpace, scorer: ScheduleScorer) -> None:
        self._space, self._scorer = space, scorer
        self._schedules: dict[str, Schedule] = {}
        self._scores: dict[str, float] = {}
        self._features: dict[str, Float32[np.ndarray, "numbers"]] = {}

    def scores(self, schedules: Sequence[Schedule]) -> Float64[np.ndarray, "S"]:
        """Return [S] the scores of schedules, which join the pool.

        Raises:
            TuningError: the cost model returns too few numbers, or one that is not finite.
        """
        new = list({s.key: s for s in schedules if s.key not in self._scores}.values())
        if new:
            self._add(new)
        return np.array([self._scores[schedule.key] for schedule in schedules], np.float64)

    def rows(self, schedules: Sequence[Schedule]) -> Float32[np.ndarray, "S numbers"]:
        """Return [S, numbers] the features of schedules of the pool."""
        return np.stack([self._features[schedule.key] for schedule in schedules])

    def fresh(self, known: Container[str]) -> ScoredSchedules:
        """Return what is in the pool without the schedules whose keys are known."""
        keys = [key for key in self._schedules if key not in known]
        if not keys:
            return ScoredSchedules((), np.zeros(0), np.zeros((0, 0), np.float32))
        scores = np.array([self._scores[key] for key in keys])
        features = np.stack([self._features[key] for key in keys])
        found = ScoredSchedules(tuple(self._schedules[k] for k in keys), scores, features)
        return found.take(np.argsort(scores, kind="stable"))

    def __len__(self) -> int:
        return len(self._schedules)

    def _add(self, new: Sequence[Schedule]) -> None:
        features = self._space.features(new)
        scores = np.asarray(self._scorer(new, features), np.float64)
        if scores.shape != (len(new),) or not np.isfinite(scores).all():
            raise TuningError(
                f"a cost model must return {len(new)} finite scores, one of each schedule, not "
                f"{scores.shape} of which {np.isfinite(scores).sum()} are finite"
            )
        for schedule, score, row in zip(new, scores.tolist(), features, strict=True):
            self._schedules[schedule.key] = schedule
            self._scores[schedule.key], self._features[schedule.key] = score, row
