"""`TypeRates`: what changes for operators in other element types than float32.

The models of operators learn float32 alone (`pricing.log_seconds`). The constants below are of 704
operators that an H100 ran in float32, bfloat16 and float16 (``experiments/results/h100``): softmax
and layer norm hardly gain by narrow elements, products whose rows are no multiple of 16 bytes reach
a part of the rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float64, Int8

from go_rl.core import ElementType
from go_rl.core.hardware.rates import priced_as
from go_rl.core.operators import FLOAT_BYTES
from go_rl.costs.operators.tables import OperatorRows

ALIGNED = 8
"""Elements of which rows must be a multiple for the rate of a type narrower than float32."""
RAGGED_RATE = 0.17
"""Share of that rate that other products of matrices reach at most."""
NARROWING = {"softmax": 0.15, "ln": 0.23}
"""Power of the width of an element by which an operator's bytes count; 1 of other operators."""
ROOFLINE_SHARE = {"bmm": 0.25, "linear": 0.5, "conv": 0.25}
"""Weight of the estimate that keeps the distance from the roofline, in the mean of logarithms of
`pricing.log_seconds`; 0 of streams."""
Rates = Mapping[str, float]
"""FLOP/s of products by name of the element type, as `go_rl.core.Device.rates`."""


@dataclass(frozen=True, eq=False)
class TypeRates:
    """Rates and widths of ``R`` operators."""

    rate: Float64[np.ndarray, "R"]
    """[R] FLOP/s of products; 0: that of float32."""
    width: Float64[np.ndarray, "R"]
    """[R] width of an element over that of float32."""
    roofline_share: float | None = None
    """One weight in place of `ROOFLINE_SHARE` for all operators."""

    def share(self, group: str) -> float:
        """Return the weight of the estimate that keeps the distance from the roofline."""
        return (
            ROOFLINE_SHARE.get(group, 0.0) if self.roofline_share is None else (self.roofline_share)
        )

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


def narrowing(rows: OperatorRows) -> Float64[np.ndarray, "R"]:
    """Return [R] powers of the width of an element by which bytes count."""
    found = np.ones(len(rows))
    for name, power in NARROWING.items():
        found[rows.op == name] = power
    return found


def element_width(types: Int8[np.ndarray, "R"]) -> Float64[np.ndarray, "R"]:
    """Return [R] the width of an element over that of float32; 1 of unknown types."""
    width = np.array([each.bits / 8 / FLOAT_BYTES or 1.0 for each in ElementType])
    return width[types]


def in_other_types(types: Int8[np.ndarray, "R"]) -> Bool[np.ndarray, "R"]:
    """Return [R] whether a type is known, and another than float32."""
    return ~np.isin(types, (ElementType.UNKNOWN, ElementType.FLOAT32))
