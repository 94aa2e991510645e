"""`OnlineScorer`: boosted trees fitted again and again to what was measured of an operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.core.config_checks import Range, check_ranges
from go_rl.costs.trees.candidate_ranks import (
    CandidateRanks,
    CandidateRanksConfig,
    MeasuredCandidates,
    import_xgboost,
)
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Candidate
from go_rl.tuning.tuners.observed_trials import ObservedTrials
from go_rl.tuning.tuners.scored_pool import CandidateScorer

FEWEST = 2
"""Candidates that trees are fitted to."""


@dataclass(frozen=True)
class OnlineScorerConfig:
    """Configuration of the fits of a tuner's trees."""

    refit_every: int = 8
    """Distinct candidates between two fits; a fit uses the largest multiple of them."""
    trees: CandidateRanksConfig = field(default_factory=CandidateRanksConfig)

    def __post_init__(self) -> None:
        check_ranges(self, "inner tuner", TuningError, refit_every=Range(FEWEST))


class OnlineScorer:
    """Makes a `CandidateScorer` of the trials that were observed, a function of these alone.

    Args:
        observed: of the tuner.
        config: of the fits.
        prior: a predictor that was learned elsewhere. Alone it scores before the first fit; later
            its score is one more feature of the trees, which learn how far to trust it.

    Raises:
        MissingDependencyError: XGBoost is not installed.
    """

    def __init__(
        self,
        observed: ObservedTrials,
        config: OnlineScorerConfig,
        prior: CandidateScorer | None = None,
    ) -> None:
        import_xgboost()
        self._observed, self._config, self._prior = observed, config, prior
        self._fitted: tuple[int, CandidateRanks] | None = None

    def scorer(self) -> CandidateScorer | None:
        """Return the current scorer; None: too little was measured."""
        number = len(self._observed.seconds)
        number -= number % self._config.refit_every
        known = list(self._observed.seconds.values())[:number]
        if not np.isfinite(known).any():
            return self._prior
        if self._fitted is None or self._fitted[0] != number:
            self._fitted = number, self._fit(number)
        ranks = self._fitted[1]
        return lambda candidates, features: ranks.predict(self._wide(candidates, features))

    def _fit(self, number: int) -> CandidateRanks:
        measured, candidates = self._observed.measured(), self._observed.candidates[:number]
        features = self._wide(candidates, measured.features[:number])
        trees = replace(self._config.trees, seed=self._observed.seed % 2**31)
        return CandidateRanks.fit(MeasuredCandidates(features, measured.seconds[:number]), trees)

    def _wide(
        self, candidates: Sequence[Candidate], features: Float32[np.ndarray, "S numbers"]
    ) -> Float32[np.ndarray, "S wide"]:
        """Features, behind them the score of the prior."""
        if self._prior is None:
            return features
        score: Float64[np.ndarray, "S"] = np.asarray(self._prior(candidates, features))
        return np.concatenate([features, score[:, None].astype(np.float32)], axis=1)
