"""`TypeRates`: what is other for operators in other element types than float32.

Products in TF32, and everything in types of 16 bits and fewer, have parameters of their own
(`Precision`); types that were not measured are priced as their neighbours, with their own rate and
width.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from jaxtyping import Bool, Float64, Int8

from go_rl.core import ElementType
from go_rl.core.hardware.rates import priced_as
from go_rl.costs.operator_sizes import FLOAT_BYTES

MEASURED = (ElementType.UNKNOWN, ElementType.FLOAT32, ElementType.TF32, ElementType.BFLOAT16,
            ElementType.FLOAT16)  # fmt: skip
"""Types in which operators were measured; an unknown one counts as float32."""
ROW_BYTES = 16
"""Bytes of which rows must be a multiple for tensor cores to read them as they are."""
Rates = Mapping[str, float]
"""FLOP/s of products by name of the element type, as `go_rl.core.Device.rates`."""


class Precision(IntEnum):
    """Kinds of element types that have parameters of their own."""

    FULL = 0
    """32 bits and more."""
    TF32 = 1
    """Float32 tensors whose products are computed of 19 bits; products alone have it."""
    HALF = 2
    """16 bits and fewer."""


@dataclass(frozen=True, eq=False)
class TypeRates:
    """Rates and widths of ``R`` operators."""

    rate: Float64[np.ndarray, "R"]
    """[R] FLOP/s of products; 0: that of float32."""
    width: Float64[np.ndarray, "R"]
    """[R] width of an element over that of float32."""
    precision: Int8[np.ndarray, "R"]
    """[R] `Precision`."""
    is_measured: Bool[np.ndarray, "R"]
    """[R] whether the type is one of `MEASURED`."""

    def take(self, rows: np.ndarray) -> TypeRates:
        """Return some rows."""
        return TypeRates(
            self.rate[rows], self.width[rows], self.precision[rows], self.is_measured[rows]
        )

    def as_full(self) -> TypeRates:
        """Return the same rates and widths, priced by the parameters of float32."""
        return replace(self, precision=np.zeros_like(self.precision))


def type_rates(types: Int8[np.ndarray, "R"], rates: Rates) -> TypeRates | None:
    """Return rates and widths of operators; None: all are of float32.

    Args:
        types: [R] `ElementType` of each.
        rates: see `priced_as`; where that is 0, float32's counts.
    """
    if not in_other_types(types).any():
        return None
    rate = np.array([rates.get(priced_as(rates, each).label, 0.0) for each in ElementType])
    precision = np.array([_precision(each) for each in ElementType], np.int8)
    return TypeRates(rate[types], element_width(types), precision[types], np.isin(types, MEASURED))


def _precision(element: ElementType) -> Precision:
    if element is ElementType.TF32:
        return Precision.TF32
    return Precision.HALF if 0 < element.bits <= 16 else Precision.FULL


def element_width(types: Int8[np.ndarray, "R"]) -> Float64[np.ndarray, "R"]:
    """Return [R] the width of an element over that of float32; 1 of unknown types."""
    width = np.array([each.bits / 8 / FLOAT_BYTES or 1.0 for each in ElementType])
    return width[types]


def in_other_types(types: Int8[np.ndarray, "R"]) -> Bool[np.ndarray, "R"]:
    """Return [R] whether a type is known, and another than float32."""
    return ~np.isin(types, (ElementType.UNKNOWN, ElementType.FLOAT32))
