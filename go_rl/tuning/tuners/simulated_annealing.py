"""`simulated_annealing`: parallel chains over a cost model that is fitted to what was measured.

AutoTVM's tuner: Chen et al., "Learning to Optimize Tensor Programs" (NeurIPS 2018), algorithm 1.
There the chains go on from batch to batch; here they start anew from the fastest candidates so far
and from random ones, so that the state is a function of the trials.
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
class AnnealingConfig:
    """Configuration of the search by a cost model."""

    effort: int = 16
    """Candidates scored for each one wanted, at most: to make a neighbour and read its features
    takes TVM 10 to 30 ms, where a trial takes 500."""
    chains: int = 16
    """Chains side by side."""
    patience: int = 12
    """Moves in a row in which no chain finds a better candidate than any before, after which the
    search ends."""
    temperature: float = 1.0
    """Temperature at the first move, in standard deviations of the starts' scores; falls linearly
    to 0."""
    best_share: float = 0.5
    """Largest share of chains that start from the fastest candidates measured."""
    diversity: float = 1.0
    """Weight of covering many values of features; see `go_rl.tuning.tuners.proposal`."""
    random_share: float = 0.05
    """Share of a batch that is random (epsilon)."""
    model: OnlineScorerConfig = field(default_factory=OnlineScorerConfig)

    def __post_init__(self) -> None:
        check_ranges(
            self, "annealing", TuningError, effort=COUNT, chains=COUNT, patience=COUNT,
            best_share=SHARE, random_share=SHARE, temperature=FINITE, diversity=FINITE,
        )  # fmt: skip


def simulated_annealing(
    space: CandidateSpace,
    seed: int,
    config: AnnealingConfig | None = None,
    prior: CandidateScorer | None = None,
    learn: bool = True,
) -> ModelGuidedTuner:
    """Return the tuner; see `ModelGuidedTuner`."""
    config = config or AnnealingConfig()

    def search(
        observed: ObservedTrials, pool: ScoredPool, count: int, rng: np.random.Generator
    ) -> list[Candidate]:
        first = starts(observed, config.chains, config.best_share, rng)
        anneal(space, pool, first, ceil(config.effort * count / config.chains), config, rng)
        return batch_of(observed, pool, count, config.diversity, config.random_share)

    return ModelGuidedTuner(space, seed, search, config.model, prior, learn)


def anneal(
    space: CandidateSpace,
    pool: ScoredPool,
    first: Sequence[Candidate],
    moves: int,
    config: AnnealingConfig,
    rng: np.random.Generator,
) -> None:
    """Move chains from neighbour to neighbour; all that is scored joins the pool.

    Args:
        space: makes neighbours; a chain whose candidate has none stays where it is.
        pool: scores.
        first: a candidate for each chain.
        moves: of each chain, at most.
        config: temperature and patience.
        rng: the source of chance.
    """
    if not first:
        return
    chains = list(first)
    scores = pool.scores(chains)
    scale, best, idle = float(scores.std()) or 1.0, scores.min(initial=np.inf), 0
    for move in range(moves):
        if idle >= config.patience:
            return
        nearby = [space.neighbour(candidate, rng) or candidate for candidate in chains]
        found = pool.scores(nearby)
        heat = config.temperature * scale * (1.0 - move / moves)
        taken = accepted(scores, found, heat, rng)
        chains = [
            new if take else old for old, new, take in zip(chains, nearby, taken, strict=True)
        ]
        scores = np.where(taken, found, scores)
        idle = 0 if found.min() < best else idle + 1
        best = min(best, float(found.min()))


def accepted(
    old: Float64[np.ndarray, "S"],
    new: Float64[np.ndarray, "S"],
    heat: float,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return [S] which moves are made, with the probability of Metropolis et al. (1953),
    min(1, exp((old - new) / heat)); without heat, those that are no worse."""
    lots = rng.random(len(old))
    if heat <= 0:
        return new <= old
    return lots < np.exp(np.minimum((old - new) / heat, 0.0))
