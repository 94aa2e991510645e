"""`EvolutionarySearch`: generations of mutants, selected by a predictor.

The search of Ansor (Zheng et al., OSDI 2020, section 5.1) and of CDMPP's schedule search: a
population of the fastest schedules so far and of random ones; parents are drawn by predicted
fitness, and each mutant changes one decision. There is no crossover: a `ScheduleSpace` has none.
The first ones by prediction are measured for real.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np
from jaxtyping import Float64

from go_rl.tuning.config import TuningError
from go_rl.tuning.programs.nouns import Schedule, ScheduleSpace, Trial
from go_rl.tuning.tuners.observed_trials import ObservedTrials
from go_rl.tuning.tuners.online_scorer import OnlineScorer, OnlineScorerConfig
from go_rl.tuning.tuners.proposal import batch_of, check_count, random_batch, starts
from go_rl.tuning.tuners.scored_pool import ScheduleScorer, ScoredPool


@dataclass(frozen=True)
class EvolutionConfig:
    """How schedules evolve."""

    effort: int = 16
    """Schedules scored for each one wanted, at most, the first population apart; see
    `go_rl.tuning.tuners.simulated_annealing.AnnealingConfig`."""
    generations: int = 4
    """Of mutants, as many as the population in each."""
    best_share: float = 0.2
    """Largest share of the first population that are the fastest schedules measured."""
    pressure: float = 4.0
    """The best of a population is this many e-folds likelier to be a parent than the worst."""
    random_share: float = 0.05
    """Share of a batch that is random (epsilon)."""
    diversity: float = 0.0
    """See `go_rl.tuning.tuners.diverse_choice`."""
    learn: bool = True
    """Whether a predictor that is given is corrected by what is measured (`OnlineScorer`); without
    one, trees always learn."""
    model: OnlineScorerConfig = field(default_factory=OnlineScorerConfig)

    def __post_init__(self) -> None:
        for name in ("effort", "generations"):
            if getattr(self, name) < 1:
                raise TuningError(f"evolution: {name} must be >= 1, not {getattr(self, name)}")
        for name in ("best_share", "random_share"):
            if not 0 <= getattr(self, name) <= 1:
                raise TuningError(f"evolution: {name} must be from 0 to 1")
        for name in ("pressure", "diversity"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise TuningError(f"evolution: {name} must be finite and >= 0")


class EvolutionarySearch:
    """Evolves schedules by a predictor, one learned elsewhere or trees fitted on the way.

    Args:
        space: of the operator.
        seed: random seed.
        config: of the search.
        prior: the predictor; None: trees alone, and a random first batch.

    Raises:
        MissingDependencyError: trees are to be fitted, and XGBoost is not installed.
    """

    def __init__(
        self,
        space: ScheduleSpace,
        seed: int,
        config: EvolutionConfig | None = None,
        prior: ScheduleScorer | None = None,
    ) -> None:
        self._config = config or EvolutionConfig()
        self._observed = ObservedTrials(space, seed)
        self._prior = prior
        learns = prior is None or self._config.learn
        self._model = OnlineScorer(self._observed, self._config.model, prior) if learns else None

    def propose(self, count: int) -> list[Schedule]:
        """See `InnerTuner`."""
        check_count(count)
        rng, config = self._observed.rng(), self._config
        scorer = self._model.scorer() if self._model else self._prior
        if scorer is None:
            return random_batch(self._observed, count, rng)
        pool = ScoredPool(self._observed.space, scorer)
        size = ceil(config.effort * count / config.generations)
        first = starts(self._observed, size, config.best_share, rng)
        evolve(self._observed.space, pool, first, config, rng)
        return batch_of(self._observed, pool, count, config.diversity, config.random_share)

    def observe(self, trials: Sequence[Trial]) -> None:
        """See `InnerTuner`."""
        self._observed.add(trials)


def evolve(
    space: ScheduleSpace,
    pool: ScoredPool,
    first: Sequence[Schedule],
    config: EvolutionConfig,
    rng: np.random.Generator,
) -> None:
    """Run generations; all that is scored joins the pool.

    Args:
        space: makes mutants.
        pool: scores.
        first: population.
        config: generations and pressure.
        rng: the source of chance.
    """
    population, size = list(first), len(first)
    for _ in range(config.generations if population else 0):
        odds = parent_odds(pool.scores(population), config.pressure)
        parents = rng.choice(len(population), size, p=odds)
        mutants = [space.neighbour(population[i], rng) for i in parents.tolist()]
        together = {s.key: s for s in (*population, *mutants) if s is not None}
        everyone = list(together.values())
        order = np.argsort(pool.scores(everyone), kind="stable")[:size]
        population = [everyone[i] for i in order.tolist()]


def parent_odds(scores: Float64[np.ndarray, "S"], pressure: float) -> Float64[np.ndarray, "S"]:
    """Return [S] the probability of each to be a parent: exponential in its rank, so that the
    scale of scores does not matter."""
    rank = np.argsort(np.argsort(scores, kind="stable"), kind="stable")
    odds = np.exp(-pressure * rank / max(1, len(scores) - 1))
    return odds / odds.sum()
