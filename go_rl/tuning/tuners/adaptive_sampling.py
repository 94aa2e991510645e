"""Adaptive sampling: few candidates that stand for many, by k-means with a growing k.

Chameleon (Ahn et al., ICLR 2020, section 3.2): what the agents saw is clustered, k grows until
more clusters no longer help, and only one candidate of each cluster is measured; here the one of
the smallest score, there the one that is nearest to the centre.
"""

from __future__ import annotations

from math import ceil

import numpy as np
from jaxtyping import Float64, Int64

from go_rl.tuning.tuners.scored_pool import ScoredCandidates

SHARES = (0.25, 0.5, 0.75, 1.0)
"""Values of k as shares of the wanted number."""
ITERATIONS = 20
"""Iterations of Lloyd's algorithm, at most."""


def standardised(features: np.ndarray) -> Float64[np.ndarray, "S numbers"]:
    """Return [S, numbers] features with mean 0 and deviation 1; constant ones become 0."""
    table = features.astype(np.float64)
    spread = table.std(axis=0)
    return (table - table.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def adaptive_sample(
    pool: ScoredCandidates, count: int, knee: float, rng: np.random.Generator
) -> ScoredCandidates:
    """Return the best candidate of each cluster of a pool, at most ``count``.

    Args:
        pool: by rising score.
        count: the largest k.
        knee: k stops to grow where the clusters' inertia falls by less than this share of that of
            a single cluster.
        rng: draws the first centres.
    """
    if len(pool.candidates) <= 1:
        return pool
    points = standardised(pool.features)
    total = float(np.square(points).sum())
    owner, before = np.zeros(len(points), np.int64), total
    for k in sorted({min(len(points), ceil(share * count)) for share in SHARES}):
        tried, inertia = k_means(points, k, rng)
        if before < total and before - inertia < knee * total:
            break
        owner, before = tried, min(inertia, total * (1 - 1e-12))
    _, best = np.unique(owner, return_index=True)  # the first of a cluster has its smallest score
    return pool.take(np.sort(best))


def k_means(
    points: Float64[np.ndarray, "S D"], k: int, rng: np.random.Generator
) -> tuple[Int64[np.ndarray, "S"], float]:
    """Return [S] the cluster of each point, and the inertia: the sum of squared distances to the
    centres. Lloyd's algorithm from the centres of k-means++ (Arthur and Vassilvitskii, 2007).

    Args:
        points: at least k.
        k: clusters; some may be empty.
        rng: draws the first centres.
    """
    centres = _first_centres(points, k, rng)
    owner = np.full(len(points), -1, np.int64)
    for _ in range(ITERATIONS):
        distance = _squared_distances(points, centres)
        nearest = distance.argmin(axis=1)
        if (nearest == owner).all():
            break
        owner = nearest
        for j in np.unique(owner):
            centres[j] = points[owner == j].mean(axis=0)
    return owner, float(_squared_distances(points, centres).min(axis=1).sum())


def _first_centres(
    points: Float64[np.ndarray, "S D"], k: int, rng: np.random.Generator
) -> Float64[np.ndarray, "k D"]:
    """Points drawn one after the other, in proportion to the squared distance to those drawn."""
    chosen = [int(rng.integers(len(points)))]
    for _ in range(k - 1):
        distance = _squared_distances(points, points[chosen]).min(axis=1)
        distance[chosen] = 0.0
        total = distance.sum()
        odds = distance / total if total > 0 else np.full(len(points), 1 / len(points))
        chosen.append(int(rng.choice(len(points), p=odds)))
    return points[chosen].copy()


def _squared_distances(
    points: Float64[np.ndarray, "S D"], centres: Float64[np.ndarray, "k D"]
) -> Float64[np.ndarray, "S k"]:
    squares = np.square(points).sum(axis=1)[:, None] + np.square(centres).sum(axis=1)
    return np.maximum(squares - 2.0 * points @ centres.T, 0.0)
