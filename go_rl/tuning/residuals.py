"""`Residuals`: how far a prediction is off on kernels that nobody measured, from those measured.

A Gaussian process (Rasmussen and Williams 2006, chapters 2 and 5) of the logarithm of measured over
predicted seconds: a constant, and what kernels with similar features have in common. So a model
that learned on another processor, or knows nothing of this one, is put right while tuning.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from jaxtyping import Float, Float64
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

LENGTHS = (0.3, 0.6, 1.2, 2.4)
"""Distances, in root mean squares over standardised features, within which residuals resemble."""
NOISES = (0.03, 0.1, 0.3, 1.0)
"""Variances of what features do not tell, as shares of the variance that they do."""
FEWEST = 8
"""Measured kernels without which nothing is put right."""
MOST = 1000
"""Measured kernels that count; of more, the last ones: the time to learn grows with their cube."""
SPREAD = 1e-6
"""Least standard deviation of a feature that counts."""


@dataclass(frozen=True, eq=False)
class Residuals:
    """What was learned."""

    mean: Float64[np.ndarray, "F"]
    scale: Float64[np.ndarray, "F"]
    """[F] standard deviation of each feature; inf: it is no feature."""
    known: Float64[np.ndarray, "K F"]
    """[K, F] standardised features of the kernels learned from."""
    constant: float
    weights: Float64[np.ndarray, "K"]
    length: float
    noise: float

    def at(self, features: Float[np.ndarray, "J F"]) -> Float64[np.ndarray, "J"]:
        """Return [J] the expected logarithm of measured over predicted seconds."""
        near = _alike((features - self.mean) / self.scale, self.known, self.length)
        return self.constant + near @ self.weights


def learn_residuals(
    features: Float[np.ndarray, "K F"], residual: Float64[np.ndarray, "K"]
) -> Residuals | None:
    """Return what is learned from ``K`` kernels; None: they are fewer than `FEWEST`.

    Length and noise are those of `LENGTHS` and `NOISES` under which the data are likeliest.

    Args:
        features: [K, F].
        residual: [K] logarithms of measured over predicted seconds; the last `MOST` count.
    """
    if len(residual) < FEWEST:
        return None
    features, residual = np.asarray(features[-MOST:], np.float64), residual[-MOST:]
    mean, scale = features.mean(axis=0), features.std(axis=0)
    scale = np.where(scale > SPREAD, scale, np.inf)
    known = (features - mean) / scale
    constant = float(np.median(residual))
    rest = residual - constant
    best: tuple[float, float, float, np.ndarray] | None = None
    for length, noise in product(LENGTHS, NOISES):
        unlikely, weights = _fitted(_alike(known, known, length), noise, rest)
        if best is None or unlikely < best[0]:
            best = unlikely, length, noise, weights
    assert best is not None
    _, length, noise, weights = best
    return Residuals(mean, scale, known, constant, weights, length, noise)


def _alike(
    left: Float64[np.ndarray, "J F"], right: Float64[np.ndarray, "K F"], length: float
) -> Float64[np.ndarray, "J K"]:
    """[J, K] squared-exponential covariance, 1 for equal features."""
    squares = cdist(left, right, "sqeuclidean") / max(1, left.shape[1])
    return np.exp(-0.5 * squares / length**2)


def _fitted(
    alike: Float64[np.ndarray, "K K"], noise: float, rest: Float64[np.ndarray, "K"]
) -> tuple[float, Float64[np.ndarray, "K"]]:
    """The negative log likelihood, the best variance in place, up to a constant; and weights."""
    count = len(rest)
    factor = cho_factor(alike + noise * np.eye(count), lower=True)
    weights = cho_solve(factor, rest)
    variance = max(float(rest @ weights) / count, 1e-12)
    return 0.5 * count * np.log(variance) + np.log(np.diag(factor[0])).sum(), weights
