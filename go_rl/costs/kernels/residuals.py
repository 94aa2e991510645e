"""`Residuals`: how far a prediction is off on kernels that nobody measured, from those measured.

A Gaussian process (Rasmussen and Williams 2006, chapters 2 and 5) of the logarithm of measured over
predicted seconds: a constant, and what kernels with similar features have in common. So a model
that learned on another processor, or knows nothing of this one, is corrected by what is measured.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Float32, Float64
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist

from go_rl.core import TrainingError
from go_rl.costs.kernels.features import kernel_features
from go_rl.costs.learning.predictor import Predictor
from go_rl.costs.trees.boosted import summed_features
from go_rl.graphs.cutting.kernel_set import KernelSet
from go_rl.runtime.saved_model import SavedKind

LENGTHS = (0.3, 0.6, 1.2, 2.4)
"""Distances, in root mean squares over standardised features, within which residuals resemble."""
NOISES = (0.03, 0.1, 0.3, 1.0)
"""Variances of what features do not tell, as shares of the variance that they do."""
FEWEST = 8
"""Measured kernels without which nothing is corrected."""
MOST = 1000
"""Measured kernels that count; of more, the last ones: the time to learn grows with their cube."""
ARRAYS = ("mean", "scale", "known", "weights")
NUMBERS = ("constant", "length", "noise")
"""Fields of a file's manifest."""
KIND = SavedKind("go_rl-residuals", "residuals")
SPREAD = 1e-6
"""Least standard deviation of a feature that counts."""


@dataclass(frozen=True, eq=False)
class ResidualExamples:
    """``K`` kernels that were predicted and measured."""

    features: Float[np.ndarray, "K F"]
    """[K, F] `compared_features`."""
    residual: Float64[np.ndarray, "K"]
    """[K] logarithms of measured over predicted seconds."""


@dataclass(frozen=True, eq=False)
class Residuals(Predictor[ResidualExamples, Float[np.ndarray, "J F"]]):
    """Residuals that were learned."""

    mean: Float64[np.ndarray, "F"]
    scale: Float64[np.ndarray, "F"]
    """[F] standard deviation of each feature; inf: it is no feature."""
    known: Float64[np.ndarray, "K F"]
    """[K, F] standardised features of the kernels learned from."""
    constant: float
    weights: Float64[np.ndarray, "K"]
    length: float
    noise: float

    what = KIND.what
    unit = "log ratio"

    def __post_init__(self) -> None:
        self.check_fitted(bool(len(self.known)))

    @classmethod
    def fit(cls, examples: ResidualExamples) -> Residuals:
        """Return what is learned from at least `FEWEST` kernels, of which the last `MOST` count.

        Length and noise are those of `LENGTHS` and `NOISES` under which the data are likeliest.
        """
        if len(examples.residual) < FEWEST:
            raise TrainingError(
                f"residuals are learned from {FEWEST} kernels or more, not {len(examples.residual)}"
            )
        residual = examples.residual[-MOST:]
        features = np.asarray(examples.features[-MOST:], np.float64)
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
        return cls(mean, scale, known, constant, fits[length, noise][1], length, noise)

    def predict(self, inputs: Float[np.ndarray, "J F"]) -> Float64[np.ndarray, "J"]:
        """Return [J] the expected logarithm of measured over predicted seconds."""
        apart = _squares((inputs - self.mean) / self.scale, self.known)
        return self.constant + _alike(apart, self.length) @ self.weights

    def save(self, path: Path) -> None:
        """Write the residuals to a file that `load` reads."""
        arrays = {name: getattr(self, name) for name in ARRAYS}
        arrays["scale"] = np.where(np.isinf(self.scale), 0.0, self.scale)  # files hold finite ones
        numbers = {name: getattr(self, name) for name in NUMBERS}
        KIND.write(path, arrays, numbers)

    @classmethod
    def load(cls, source: str | Path) -> Residuals:
        """Read a saved file; none ship with the package."""
        with KIND.opened(source) as saved:
            numbers = {name: float(saved.manifest[name]) for name in NUMBERS}
            rows, columns = saved.arrays["known"].shape
            sizes = ((columns,), (columns,), (rows, columns), (rows,))
            arrays = saved.tree(dict(zip(ARRAYS, map(np.empty, sizes), strict=True)))
        arrays["scale"] = np.where(arrays["scale"] > 0, arrays["scale"], np.inf)
        fields: dict[str, Any] = {**arrays, **numbers}
        return cls(**fields)


def compared_features(kernels: KernelSet) -> Float32[np.ndarray, "K F"]:
    """Return [K, F] by which kernels resemble each other: sums over their nodes, no opcodes."""
    return summed_features(kernel_features(kernels, ()), 0)


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
