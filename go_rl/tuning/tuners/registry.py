"""The inner tuners by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from go_rl.tuning.config import TuningError, check_name
from go_rl.tuning.loop.nouns import Candidate, CandidateSpace, InnerTuner, MakeInnerTuner, Trial
from go_rl.tuning.tuners.chameleon import chameleon
from go_rl.tuning.tuners.evolutionary_search import evolutionary_search
from go_rl.tuning.tuners.observed_trials import ObservedTrials
from go_rl.tuning.tuners.proposal import check_count, random_batch
from go_rl.tuning.tuners.scored_pool import CandidateScorer
from go_rl.tuning.tuners.simulated_annealing import simulated_annealing

DEFAULT_TUNER = "annealing"


@runtime_checkable
class MakeGuidedTuner(Protocol):
    """Makes tuners that may be given a predictor."""

    def __call__(
        self,
        space: CandidateSpace,
        seed: int,
        *,
        prior: CandidateScorer | None = None,
        learn: bool = True,
    ) -> InnerTuner:
        """Make one, as it is configured by default."""
        ...


RANDOM = "random"
GUIDED: Mapping[str, MakeGuidedTuner] = MappingProxyType({
    DEFAULT_TUNER: simulated_annealing, "evolution": evolutionary_search, "chameleon": chameleon,
})  # fmt: skip
TUNERS = (*GUIDED, RANDOM)
"""Names, the default first."""


def inner_tuner(
    name: str = DEFAULT_TUNER, prior: CandidateScorer | None = None, learn: bool = True
) -> MakeInnerTuner:
    """Return what makes the inner tuner of an operator.

    Args:
        name: of `TUNERS`.
        prior: a predictor of candidates that was learned elsewhere, for the tuners that have a cost
            model.
        learn: whether trees correct it by what is measured; without a predictor they always do.

    Raises:
        TuningError: there is no such tuner, or ``random`` is given a predictor.
    """
    if name == RANDOM:
        if prior is not None:
            raise TuningError("the inner tuner 'random' takes no predictor")
        return RandomCandidates
    check_name("inner tuner", name, TUNERS)
    made = GUIDED[name]
    return lambda space, seed: made(space, seed, prior=prior, learn=learn)


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
