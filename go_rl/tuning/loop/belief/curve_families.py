"""Families of saturating curves, for performance over trials (Domhan et al., IJCAI 2015).

x is the number of the trial, from 1; y is performance over the device's peak.
Parameters are bounded so that each curve is non-decreasing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from jaxtyping import Float64

Curve = Callable[[np.ndarray, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class CurveFamily:
    """A family with D parameters."""

    name: str
    parameters: tuple[str, ...]
    lower: tuple[float, ...]
    upper: tuple[float, ...]
    curve: Curve
    """Function of parameters [D, W, 1] and x [n] that returns the values [W, n]."""
    starts: Callable[[float, float], tuple[tuple[float, ...], ...]]
    """Function of the first and last y: the parameters from which least squares begin."""

    def __call__(
        self, theta: Float64[np.ndarray, "W D"], x: Float64[np.ndarray, "n"]
    ) -> Float64[np.ndarray, "W n"]:
        """Return [W, n] values of W curves at x."""
        return self.curve(theta.T[:, :, None], x)


def _log_power(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    a, b, c = theta
    return a / (1 + np.exp(c * (b - np.log(x))))


def _pow2(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    a, b = theta
    return a * np.exp(b * np.log(x))


def _pow4(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    a, b, c, d = theta
    return c - np.exp(-d * np.log(a * x + b))


def _log_linear(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    a, b = theta
    return a * np.log(x) + b


def _log_log_linear(theta: np.ndarray, x: np.ndarray) -> np.ndarray:
    a, b = theta
    return np.log(a * np.log(x) + b)


_ALL = (
    CurveFamily(
        "log-power", ("a", "b", "c"), (0.0, -10.0, 1e-3), (1.0, 10.0, 10.0), _log_power,
        lambda low, high: (
            (1.05 * high, 0.0, 0.5), (1.5 * high, 1.0, 0.5), (1.01 * high, -2.0, 1.0),
        ),
    ),
    CurveFamily(
        "pow2", ("a", "b"), (0.0, 0.0), (1.0, 1.0), _pow2, lambda low, high: ((low, 0.05),)
    ),
    CurveFamily(
        "pow4", ("a", "b", "c", "d"), (1e-6, 1e-6, 0.0, 1e-2), (100.0, 100.0, 2.0, 10.0), _pow4,
        lambda low, high: ((1.0, 1 / max(high - low, 1e-2), 1.05 * high, 1.0),),
    ),
    CurveFamily(
        "log-linear", ("a", "b"), (0.0, 0.0), (1.0, 1.0), _log_linear,
        lambda low, high: ((0.01, low),),
    ),
    CurveFamily(
        "log-log-linear", ("a", "b"), (0.0, 1.0), (np.e, np.e), _log_log_linear,
        lambda low, high: ((0.01, np.exp(low)),),
    ),
)  # fmt: skip
FAMILIES: Mapping[str, CurveFamily] = MappingProxyType({each.name: each for each in _ALL})
"""Families by name: log-power a / (1 + (x / e^b)^-c); pow2 a·x^b; pow4 c - (a·x + b)^-d; log-linear
a·ln x + b; log-log-linear ln(a·ln x + b)."""
