"""Starts and proposed batches of tuners with a cost model."""

from __future__ import annotations

import numpy as np

from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Candidate, draw_fresh
from go_rl.tuning.tuners.diverse_choice import diverse_choice
from go_rl.tuning.tuners.observed_trials import ObservedTrials, stochastic_count
from go_rl.tuning.tuners.scored_pool import ScoredCandidates, ScoredPool


def check_count(count: int) -> None:
    """Raise a `TuningError` unless so many candidates can be proposed."""
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
