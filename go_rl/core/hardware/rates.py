"""Rates of products by element type, from vendors' data sheets: dense, with 32-bit accumulation.

Where a type is absent, no unit of the device is faster at it than at a wider one (`priced_as`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from go_rl.core.errors import HardwareError, nearest
from go_rl.core.graph.element_type import ElementType

TERA = 1e12
WIDER = {ElementType.FLOAT4: ElementType.FLOAT8, ElementType.FLOAT8: ElementType.BFLOAT16,
         ElementType.INT4: ElementType.INT8}  # fmt: skip
"""Types to which devices without units for a narrower one convert it."""
_STATED_ELSEWHERE = ElementType.UNKNOWN, ElementType.FLOAT32
TYPE_NAMES = tuple(each.label for each in ElementType if each not in _STATED_ELSEWHERE)
"""Types whose rates a device may state; that of float32 is its peak."""


def _halves(rate: float, **others: float) -> dict[ElementType, float]:
    """Rates in TFLOP/s: one for both halves, others by type."""
    found = {ElementType.FLOAT16: rate, ElementType.BFLOAT16: rate}
    found |= {ElementType[name.upper()]: other for name, other in others.items()}
    return {each: value * TERA for each, value in found.items()}


_A100 = _halves(312.0, tf32=156.0, int8=624.0, int4=1248.0, float64=19.5, int32=19.5, int64=9.7,
               int16=19.5)  # fmt: skip
_H100 = _halves(989.0, tf32=494.5, float8=1979.0, int8=1979.0, float64=67.0, int32=33.5,
               int64=16.7, int16=33.5)  # fmt: skip
_V100 = {ElementType.FLOAT16: 125 * TERA, ElementType.FLOAT64: 7.8 * TERA}
_MI200 = _halves(181.0, int8=181.0, int4=181.0, float64=45.3)
RATES: Mapping[str, Mapping[ElementType, float]] = {
    "p4": {ElementType.INT8: 22 * TERA, ElementType.FLOAT64: 0.178 * TERA},
    "p100": {ElementType.FLOAT16: 21.2 * TERA, ElementType.FLOAT64: 5.3 * TERA},
    **dict.fromkeys(("v100", "v100-16gb", "v100-sxm-32gb"), _V100),
    "t4": {ElementType.FLOAT16: 65 * TERA, ElementType.INT8: 130 * TERA,
           ElementType.INT4: 260 * TERA, ElementType.FLOAT64: 0.254 * TERA},
    "rtx-2080-ti": {ElementType.FLOAT16: 53.8 * TERA, ElementType.INT8: 215 * TERA,
                    ElementType.INT4: 430 * TERA, ElementType.FLOAT64: 0.42 * TERA},
    **dict.fromkeys(("a100", "a100-40gb", "a100-sxm-40gb", "a100-80gb", "a100-sxm-80gb"), _A100),
    "a10": _halves(125.0, tf32=62.5, int8=250.0, int4=500.0, float64=0.976),
    "a30": _halves(165.0, tf32=82.0, int8=330.0, int4=661.0, float64=10.3),
    "a40": _halves(149.7, tf32=74.8, int8=299.3, int4=598.7, float64=0.585),
    "a4000": _halves(76.7, tf32=38.3, int8=153.4, int4=306.7, float64=0.3),
    "a6000": _halves(154.8, tf32=77.4, int8=309.7, int4=619.3, float64=0.605),
    "rtx-3080": _halves(59.5, tf32=29.8, int8=238.0, int4=476.0, float64=0.465),
    "rtx-3090": _halves(71.0, tf32=35.6, int8=284.0, int4=568.0, float64=0.556),
    "l4": _halves(121.0, tf32=60.5, float8=242.5, int8=242.5, int4=485.0, float64=0.49),
    "rtx-4090": _halves(165.2, tf32=82.6, float8=330.3, int8=660.6, int4=1321.2, float64=1.29),
    **dict.fromkeys(("h100", "h200"), _H100),
    "h100-pcie": _halves(756.0, tf32=378.0, float8=1513.0, int8=1513.0, float64=51.0,
                         int32=25.6, int64=12.8, int16=25.6),
    "mi100": {ElementType.FLOAT16: 184.6 * TERA, ElementType.BFLOAT16: 92.3 * TERA,
              ElementType.INT8: 184.6 * TERA, ElementType.FLOAT64: 11.5 * TERA},
    **dict.fromkeys(("mi210", "mi250"), _MI200),
    "tpu-v4": {ElementType.INT8: 275 * TERA},
    "tpu-v5e": {ElementType.INT8: 394 * TERA},
    "cpu-1": {ElementType.FLOAT64: 64e9},
}  # fmt: skip
"""FLOP/s (of whole numbers operations/s) by short name of the device."""


def rates_of(name: str) -> tuple[tuple[str, float], ...]:
    """Return the rates of a device of the table, by name of the type; none: nothing is stated."""
    return tuple((each.label, rate) for each, rate in RATES.get(name, {}).items())


def priced_as(rates: Iterable[str], element: ElementType) -> ElementType:
    """Return the type whose rate holds for products in an element type: its own where one is
    stated, else that of the next wider type to which a device converts it; float32 where none is.

    Args:
        rates: names of the types of which rates are stated.
        element: type of the product.
    """
    stated = set(rates)
    while element is not ElementType.UNKNOWN and element.label not in stated:
        element = WIDER.get(element, ElementType.UNKNOWN)
    return element or ElementType.FLOAT32


def replaced_types(types: Iterable[ElementType], rates: Iterable[str]) -> str:
    """Return words on the types that are priced as others, such as ``float8 (priced as
    bfloat16)``; empty: there are none."""
    stated = tuple(rates)
    pairs = [(each, priced_as(stated, each)) for each in types]
    return ", ".join(
        f"{one.label} (priced as {other.label})" for one, other in pairs if one is not other
    )


def check_rates(rates: tuple[tuple[str, float], ...], where: str) -> None:
    """Raise a `HardwareError` for a rate that is no finite number >= 0, or of an unknown type."""
    for name, rate in rates:
        if name == "float32":
            raise HardwareError(f"{where}: rates: the rate of float32 is peak_flops")
        if name not in TYPE_NAMES:
            raise HardwareError(
                f"{where}: rates: {name!r} is no element type{nearest(name, TYPE_NAMES)} Types: "
                f"{', '.join(TYPE_NAMES)}"
            )
        if not 0 <= rate < float("inf"):
            raise HardwareError(
                f"{where}: rates: {name} must be a finite number of FLOP/s, or 0 where the device "
                f"cannot compute in it; not {rate}"
            )
