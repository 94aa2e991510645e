"""Residuals of the model of products on convolutions, by their sizes alone, of each library.

A convolution has one algorithm in `product_model`; libraries choose among several, mostly by sizes
and alike on all GPUs whose libraries have Winograd's convolutions, and on all others. So the rest
is a quadratic function of the logarithms of sizes, fitted by ridge regression (Hoerl and Kennard
1970) to all measured GPUs of either kind together.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float, Float64

from go_rl.costs.operators.tables import OperatorRows

SIZES = ("batch", "input_size", "input_channel", "output_channel", "kernel_size", "stride")
CENTRE = np.array([5.0, 5.0, 6.0, 6.0, np.log2(3), 0.0])
SCALE = np.array([2.0, 2.0, 2.0, 2.0, 1.0, 1.0])
"""Binary logarithms of usual sizes, and their spread."""
TERMS = 1 + len(SIZES) + len(SIZES) * (len(SIZES) + 1) // 2
RIDGE = 10.0
"""Rows that the penalty counts as much as."""
LARGEST, OUTLIER = 0.5, 1.0
"""Logarithms: of the correction, and of a row's rest that counts, at most."""


def terms(rows: OperatorRows) -> Float64[np.ndarray, "R terms"]:
    """Return [R, TERMS] one, logarithms of sizes and their products; of a convolution in groups
    their number counts in place of its output channels, which are as many as those of the input."""
    columns = {name: rows.sizes[name] for name in SIZES}
    groups = rows.sizes["groups"]
    columns["output_channel"] = np.where(rows.op == "grouped", groups, columns["output_channel"])
    x = np.stack([np.log2(np.maximum(each, 1)) for each in columns.values()], axis=1)
    x = (x - CENTRE) / SCALE
    first, second = np.triu_indices(len(SIZES))
    return np.concatenate([np.ones((len(x), 1)), x, x[:, first] * x[:, second]], axis=1)


def fit_residuals(
    rows: OperatorRows, rest: Float64[np.ndarray, "R"], weight: Float64[np.ndarray, "R"]
) -> Float64[np.ndarray, "terms"]:
    """Return [TERMS] coefficients.

    Args:
        rows: convolutions.
        rest: [R] logarithms of measured over predicted seconds.
        weight: [R] of rows; 0: of a GPU that is left out.
    """
    x, each = terms(rows), weight * len(weight) / max(weight.sum(), 1e-12)
    normal = x.T @ (each[:, None] * x) + RIDGE * np.eye(TERMS)
    return np.linalg.solve(normal, x.T @ (each * np.clip(rest, -OUTLIER, OUTLIER)))


def residuals(
    coefficients: Float[np.ndarray, "*R terms"], rows: OperatorRows
) -> Float64[np.ndarray, "R"]:
    """Return [R] logarithms by which convolutions take longer than products; coefficients are
    those of all rows, or of each."""
    return np.clip((terms(rows) * coefficients).sum(1), -LARGEST, LARGEST)
