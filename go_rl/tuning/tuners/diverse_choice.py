"""Diversity-aware choice: a batch of candidates that are good and unlike each other.

Chen et al., "Learning to Optimize Tensor Programs" (NeurIPS 2018), equation 3: the sum of the
scores plus a reward for each component that the batch covers, a submodular function that is
maximised greedily. A component is a value of a feature.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Int64

from go_rl.tuning.tuners.scored_pool import ScoredCandidates


def diverse_choice(pool: ScoredCandidates, count: int, weight: float) -> ScoredCandidates:
    """Return up to ``count`` candidates of a pool.

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
