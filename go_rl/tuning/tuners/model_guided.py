"""`ModelGuidedTuner`: the frame of all tuners with a cost model, around a search of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from go_rl.tuning.loop.nouns import Candidate, CandidateSpace, Trial
from go_rl.tuning.tuners.observed_trials import ObservedTrials
from go_rl.tuning.tuners.online_scorer import OnlineScorer, OnlineScorerConfig
from go_rl.tuning.tuners.proposal import check_count, random_batch
from go_rl.tuning.tuners.scored_pool import CandidateScorer, ScoredPool

Search = Callable[[ObservedTrials, ScoredPool, int, np.random.Generator], list[Candidate]]
"""Search that returns up to this many candidates that were not observed, none only where the space
has no more, of what it scores in a pool that begins empty."""


class ModelGuidedTuner:
    """Searches by a cost model; batches before anything has a time are random.

    Args:
        space: of the operator.
        seed: random seed.
        search: chooses a batch.
        model: of the boosted trees.
        prior: a predictor that was learned elsewhere, if there is one; see `OnlineScorer`.
        learn: whether trees correct the predictor by what is measured; without one, they always
            learn.

    Raises:
        MissingDependencyError: trees are to be fitted, and XGBoost is not installed.
    """

    def __init__(
        self,
        space: CandidateSpace,
        seed: int,
        search: Search,
        model: OnlineScorerConfig,
        prior: CandidateScorer | None = None,
        learn: bool = True,
    ) -> None:
        self._observed = ObservedTrials(space, seed)
        self._search, self._prior = search, prior
        learns = learn or prior is None
        self._model = OnlineScorer(self._observed, model, prior) if learns else None

    def propose(self, count: int) -> list[Candidate]:
        check_count(count)
        rng = self._observed.rng()
        scorer = self._model.scorer() if self._model else self._prior
        if scorer is None:
            return random_batch(self._observed, count, rng)
        return self._search(self._observed, ScoredPool(self._observed.space, scorer), count, rng)

    def observe(self, trials: Sequence[Trial]) -> None:
        self._observed.add(trials)
