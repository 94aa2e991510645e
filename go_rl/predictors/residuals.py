"""`Residuals`: how far a prediction is off on kernels that nobody measured, from those measured.

A Gaussian process (Rasmussen and Williams 2006, chapters 2 and 5) of the logarithm of measured over
predicted seconds: a constant, and what kernels with similar features have in common. So a model
that learned on another processor, or knows nothing of this one, is corrected by what is measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Float32, Float64
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from go_rl.kernels import KernelSet
from go_rl.predictors.boosted import summed_features
from go_rl.predictors.kernels.features import kernel_features

LENGTHS = (0.3, 0.6, 1.2, 2.4)
"""Distances, in root mean squares over standardised features, within which residuals resemble."""
NOISES = (0.03, 0.1, 0.3, 1.0)
"""Variances of what features do not tell, as shares of the variance that they do."""
FEWEST = 8
"""Measured kernels without which nothing is corrected."""
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
        apart = _squares((features - self.mean) / self.scale, self.known)
        return self.constant + _alike(apart, self.length) @ self.weights


def compared_features(kernels: KernelSet) -> Float32[np.ndarray, "K F"]:
    """Return [K, F] by which kernels resemble each other: sums over their nodes, no opcodes."""
    return summed_features(kernel_features(kernels, ()), 0)


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
    squares = _squares(known, known)
    fits = {
        (length, noise): _fitted(alike, noise, residual - constant)
        for length in LENGTHS
        for alike in [_alike(squares, length)]
        for noise in NOISES
    }
    length, noise = min(fits, key=lambda each: fits[each][0])
    return Residuals(mean, scale, known, constant, fits[length, noise][1], length, noise)


def _squares(
    left: Float64[np.ndarray, "J F"], right: Float64[np.ndarray, "K F"]
) -> Float64[np.ndarray, "J K"]:
    """[J, K] mean squares over features of how far kernels are apart."""
    return cdist(left, right, "sqeuclidean") / max(1, left.shape[1])


def _alike(squares: Float64[np.ndarray, "J K"], length: float) -> Float64[np.ndarray, "J K"]:
    """[J, K] squared-exponential covariance, 1 for equal features."""
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
