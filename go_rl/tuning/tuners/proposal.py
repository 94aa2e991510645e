"""Starts and proposed batches of tuners with a cost model."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Int64

from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Candidate, draw_fresh
from go_rl.tuning.tuners.observed_trials import ObservedTrials, stochastic_count
from go_rl.tuning.tuners.scored_pool import ScoredCandidates, ScoredPool


def check_count(count: int) -> None:
    """Raise a `TuningError` unless this many candidates can be proposed."""
    if count < 1:
        raise TuningError(f"inner tuner: asked for {count} candidates; ask for at least 1")


def starts(
    observed: ObservedTrials, count: int, best_share: float, rng: np.random.Generator
) -> list[Candidate]:
    """Return up to ``count`` candidates to search from, the fastest so far and random ones.

    Args:
        observed: trials.
        count: wanted.
        best_share: largest share of the fastest ones.
        rng: draws the others.
    """
    best = observed.fastest(int(best_share * count))
    known = {candidate.key for candidate in best}
    others = draw_fresh(observed.space, count - len(best), known, rng)
    return [*best, *others]


def random_batch(observed: ObservedTrials, count: int, rng: np.random.Generator) -> list[Candidate]:
    """Return up to ``count`` random candidates that were not observed."""
    return draw_fresh(observed.space, count, observed.seconds.keys(), rng)


def batch_of(
    observed: ObservedTrials, pool: ScoredPool, count: int, diversity: float, random_share: float
) -> list[Candidate]:
    """Return up to ``count`` candidates that were not observed: most of them from a pool, some
    random ones; fewer only if the space has no more.

    Args:
        observed: trials.
        pool: what the search scored.
        count: wanted.
        diversity: see `diverse_choice`, which chooses among twice as many as wanted.
        random_share: epsilon, on average.
    """
    rng = np.random.default_rng((observed.seed, observed.count, 1))
    wanted = count - stochastic_count(random_share, count, rng)
    found: ScoredCandidates = pool.fresh(observed.seconds)
    found = found.take(np.arange(min(2 * wanted, len(found.candidates))))
    chosen = list(diverse_choice(found, wanted, diversity).candidates)
    known = observed.seconds.keys() | {candidate.key for candidate in chosen}
    missing = count - len(chosen)
    return [*chosen, *(draw_fresh(observed.space, missing, known, rng) if missing else [])]


def diverse_choice(pool: ScoredCandidates, count: int, weight: float) -> ScoredCandidates:
    """Return up to ``count`` candidates of a pool that are good and unlike each other.

    Chen et al., "Learning to Optimize Tensor Programs" (NeurIPS 2018), equation 3: the sum of the
    scores plus a reward for each component that the batch covers, a submodular function that is
    maximised greedily. A component is a value of a feature.

    Args:
        pool: by rising score.
        count: candidates to choose.
        weight: of covering values of all features, in standard deviations of the score; 0: the
            candidates of the smallest scores.
    """
    if weight == 0 or len(pool.candidates) <= count:
        return pool.take(np.arange(min(count, len(pool.candidates))))
    spread = float(pool.scores.std())
    quality = -pool.scores / spread if spread > 0 else np.zeros(len(pool.scores))
    codes = feature_values(pool.features)
    uncovered = np.ones((codes.shape[1], int(codes.max(initial=0)) + 1))
    columns = np.arange(codes.shape[1])
    chosen: list[int] = []
    left = np.ones(len(quality), np.bool_)
    for _ in range(count):
        gain = quality + weight * uncovered[columns, codes].mean(axis=1)
        best = int(np.argmax(np.where(left, gain, -np.inf)))
        uncovered[columns, codes[best]], left[best] = 0.0, False
        chosen.append(best)
    return pool.take(np.array(chosen, np.int64))


def feature_values(features: Float32[np.ndarray, "S numbers"]) -> Int64[np.ndarray, "S varied"]:
    """Return [S, varied] the number of each feature's value among its distinct values; features
    that are the same for all are left out."""
    varied = features[:, (features != features[:1]).any(axis=0)]
    if not varied.shape[1]:
        return np.zeros((len(features), 1), np.int64)
    codes = [np.unique(column, return_inverse=True)[1] for column in varied.T]
    return np.stack(codes, axis=1).astype(np.int64)
