"""`ObservedTrials`: trials of one operator's candidates, the whole state of a tuner."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType

import numpy as np
from jaxtyping import Float32

from go_rl.costs.trees.candidate_ranks import MeasuredCandidates
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Candidate, CandidateSpace, Trial


class ObservedTrials:
    """Trials in the order that they were observed; a candidate counts once, by its first trial.

    Args:
        space: of the operator.
        seed: of the tuner, >= 0.

    Raises:
        TuningError: the seed is negative.
    """

    def __init__(self, space: CandidateSpace, seed: int) -> None:
        if seed < 0:
            raise TuningError(f"inner tuner: seed must be >= 0, not {seed}")
        self.space, self.seed, self.count = space, seed, 0
        self._candidates: dict[str, Candidate] = {}
        self._seconds: dict[str, float] = {}
        self._rows: list[Float32[np.ndarray, "numbers"]] = []
        """Features of the first candidates, as many as were asked for."""

    def add(self, trials: Sequence[Trial]) -> None:
        """Append trials.

        Raises:
            TuningError: seconds are not above 0 and finite.
        """
        for trial in trials:
            seconds = math.inf if trial.seconds is None else trial.seconds
            if not seconds > 0 or (trial.seconds is not None and not math.isfinite(seconds)):
                raise TuningError(
                    f"inner tuner: seconds of candidate {trial.candidate.key!r} must be finite and "
                    f"above 0, or None, not {trial.seconds}"
                )
            key = trial.candidate.key
            self._seconds.setdefault(key, seconds)
            self._candidates.setdefault(key, trial.candidate)
        self.count += len(trials)

    @property
    def seconds(self) -> Mapping[str, float]:
        """Seconds by the key of a candidate; infinite: it failed."""
        return MappingProxyType(self._seconds)

    @property
    def candidates(self) -> list[Candidate]:
        """Distinct candidates, in the order of `seconds`."""
        return list(self._candidates.values())

    def fastest(self, count: int) -> list[Candidate]:
        """Return up to ``count`` candidates that have a time, fastest first."""
        known = [key for key, seconds in self._seconds.items() if math.isfinite(seconds)]
        ranked = sorted(known, key=lambda key: self._seconds[key])
        return [self._candidates[key] for key in ranked[:count]]

    def measured(self) -> MeasuredCandidates:
        """Return the distinct candidates, failed ones included, for a cost model."""
        new = list(self._candidates.values())[len(self._rows) :]
        if new:
            self._rows.extend(self.space.features(new))
        return MeasuredCandidates(np.stack(self._rows), np.array([*self._seconds.values()]))

    def rng(self) -> np.random.Generator:
        """Return the source of chance of the next proposal, the same until more is observed."""
        return np.random.default_rng((self.seed, self.count))


def stochastic_count(share: float, count: int, rng: np.random.Generator) -> int:
    """Return a whole number that is ``share * count`` on average, rounded up or down by chance."""
    return math.floor(share * count + rng.random())
