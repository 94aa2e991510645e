"""`evolutionary_search`: generations of mutants, selected by a predictor.

The search of Ansor (Zheng et al., OSDI 2020, section 5.1) and of CDMPP's candidate search: a
population of the fastest candidates so far and of random ones; parents are drawn by predicted
fitness, and each mutant changes one decision. There is no crossover: a `CandidateSpace` has none.
The first ones by prediction are measured for real.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import ceil

import numpy as np
from jaxtyping import Float64

from go_rl.core.config_checks import COUNT, FINITE, SHARE, check_ranges
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Candidate, CandidateSpace
from go_rl.tuning.tuners.model_guided import ModelGuidedTuner
from go_rl.tuning.tuners.observed_trials import ObservedTrials
from go_rl.tuning.tuners.online_scorer import OnlineScorerConfig
from go_rl.tuning.tuners.proposal import batch_of, starts
from go_rl.tuning.tuners.scored_pool import CandidateScorer, ScoredPool


@dataclass(frozen=True)
class EvolutionConfig:
    """Configuration of the evolution of candidates."""

    effort: int = 16
    """Candidates scored for each one wanted, at most, the first population apart; see
    `go_rl.tuning.tuners.simulated_annealing.AnnealingConfig`."""
    generations: int = 4
    """Generations of mutants, each as many as the population."""
    best_share: float = 0.2
    """Largest share of the first population that are the fastest candidates measured."""
    pressure: float = 4.0
    """Selection pressure: e-folds by which the best is likelier to be a parent than the worst."""
    random_share: float = 0.05
    """Share of a batch that is random (epsilon)."""
    diversity: float = 0.0
    """Weight of covering many values of features (`go_rl.tuning.tuners.proposal`)."""
    model: OnlineScorerConfig = field(default_factory=OnlineScorerConfig)

    def __post_init__(self) -> None:
        check_ranges(
            self, "evolution", TuningError, effort=COUNT, generations=COUNT, best_share=SHARE,
            random_share=SHARE, pressure=FINITE, diversity=FINITE,
        )  # fmt: skip


def evolutionary_search(
    space: CandidateSpace,
    seed: int,
    config: EvolutionConfig | None = None,
    prior: CandidateScorer | None = None,
    learn: bool = True,
) -> ModelGuidedTuner:
    """Return the tuner; see `ModelGuidedTuner`."""
    config = config or EvolutionConfig()

    def search(
        observed: ObservedTrials, pool: ScoredPool, count: int, rng: np.random.Generator
    ) -> list[Candidate]:
        size = ceil(config.effort * count / config.generations)
        evolve(space, pool, starts(observed, size, config.best_share, rng), config, rng)
        return batch_of(observed, pool, count, config.diversity, config.random_share)

    return ModelGuidedTuner(space, seed, search, config.model, prior, learn)


def evolve(
    space: CandidateSpace,
    pool: ScoredPool,
    first: Sequence[Candidate],
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
