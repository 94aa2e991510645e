"""`TypeRates`: what changes for operators in other element types than float32.

Operators were measured in float32 alone (`pricing.log_seconds`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float64, Int8

from go_rl.core import ElementType
from go_rl.core.hardware.rates import priced_as
from go_rl.costs.operators.tables.operator_rows import FLOAT_BYTES

Rates = Mapping[str, float]
"""FLOP/s of products by name of the element type, as `go_rl.core.Device.rates`."""


@dataclass(frozen=True, eq=False)
class TypeRates:
    """Rates and widths of ``R`` operators."""

    rate: Float64[np.ndarray, "R"]
    """[R] FLOP/s of products; 0: that of float32."""
    width: Float64[np.ndarray, "R"]
    """[R] width of an element over that of float32."""
    roofline_share: float = 0.5
    """Weight of the estimate that keeps the distance from the roofline, in the mean of logarithms
    of `go_rl.costs.operators.pricing.log_seconds`."""

    def take(self, rows: np.ndarray) -> TypeRates:
        """Return some rows."""
        return replace(self, rate=self.rate[rows], width=self.width[rows])


def type_rates(types: Int8[np.ndarray, "R"], rates: Rates) -> TypeRates | None:
    """Return rates and widths of operators; None: all are of float32.

    Args:
        types: [R] `ElementType` of each.
        rates: see `priced_as`; where that is 0, float32's counts.
    """
    if not in_other_types(types).any():
        return None
    rate = np.array([rates.get(priced_as(rates, each).label, 0.0) for each in ElementType])
    return TypeRates(rate[types], element_width(types))


def element_width(types: Int8[np.ndarray, "R"]) -> Float64[np.ndarray, "R"]:
    """Return [R] the width of an element over that of float32; 1 of unknown types."""
    width = np.array([each.bits / 8 / FLOAT_BYTES or 1.0 for each in ElementType])
    return width[types]


def in_other_types(types: Int8[np.ndarray, "R"]) -> Bool[np.ndarray, "R"]:
    """Return [R] whether a type is known, and another than float32."""
    return ~np.isin(types, (ElementType.UNKNOWN, ElementType.FLOAT32))
