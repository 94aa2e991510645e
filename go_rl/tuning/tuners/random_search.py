"""`RandomCandidates`: candidates drawn without replacement, the control of every other tuner."""

from __future__ import annotations

from collections.abc import Sequence

from go_rl.tuning.loop.nouns import Candidate, CandidateSpace, Trial
from go_rl.tuning.tuners.observed_trials import ObservedTrials
from go_rl.tuning.tuners.proposal import check_count, random_batch


class RandomCandidates:
    """Draws candidates; learns nothing.

    Args:
        space: of the operator.
        seed: random seed.
    """

    def __init__(self, space: CandidateSpace, seed: int) -> None:
        self._observed = ObservedTrials(space, seed)

    def propose(self, count: int) -> list[Candidate]:
        check_count(count)
        return random_batch(self._observed, count, self._observed.rng())

    def observe(self, trials: Sequence[Trial]) -> None:
        self._observed.add(trials)
