"""`type_scale`: operators in other element types than float32, in which alone operators were
measured."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float64, Int8

from go_rl.core import ElementType
from go_rl.core.hardware.rates import priced_as
from go_rl.costs.devices import DataSheet
from go_rl.costs.operators.tables import PRODUCTS, OperatorRows
from go_rl.costs.operators.tables.operator_rows import FLOAT_BYTES

Rates = Mapping[str, float]
"""FLOP/s of products by name of the element type, as `go_rl.core.Device.rates`."""


def element_scale(types: Int8[np.ndarray, "R"]) -> Float64[np.ndarray, "R"]:
    """Return [R] the width of an element over that of float32; 1 of unknown types."""
    width = np.array([each.bits / 8 / FLOAT_BYTES or 1.0 for each in ElementType])
    return width[types]


def in_other_types(types: Int8[np.ndarray, "R"]) -> Bool[np.ndarray, "R"]:
    """Return [R] whether a type is known, and another than float32."""
    return ~np.isin(types, (ElementType.UNKNOWN, ElementType.FLOAT32))


def type_scale(
    rows: OperatorRows, types: Int8[np.ndarray, "R"], sheet: DataSheet, rates: Rates
) -> Float64[np.ndarray, "R"]:
    """Return [R] factors on the time that a GPU takes for operators in float32: those of a roofline
    with its rates by element type and with the elements' width, as if each operator came as near to
    the roofline in one type as in another.

    Args:
        rows: the operators.
        types: [R] `ElementType` of each.
        sheet: of the GPU.
        rates: see `priced_as`; where that is 0, float32's counts.
    """
    as_priced = [priced_as(rates, each).label for each in ElementType]
    by_type = [rates.get(name, 0.0) or sheet.matrix_flops for name in as_priced]
    streams = ~rows.is_any(PRODUCTS)
    rate = np.where(streams, sheet.vector_flops, np.array(by_type)[types])
    usual = np.where(streams, sheet.vector_flops, sheet.matrix_flops)
    width = element_scale(types)
    streamed = rows.least_bytes() / sheet.memory_bandwidth
    before = np.maximum(rows.flops() / usual, streamed)
    after = np.maximum(rows.flops() / rate, streamed * width)
    same = ~in_other_types(types) | (before == 0)
    return np.where(same, 1.0, after / np.where(same, 1.0, before))
