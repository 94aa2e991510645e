"""Times, sizes and ratios as text."""

from __future__ import annotations

from math import isfinite

from go_rl.core.evaluation import OPTIMAL_GAP

NOTHING = "–"
"""Cell of a printed table without a number."""
WIDEST_GAP = 10.0
"""Gap to the proven bound, as a ratio, beyond which the bound says nothing of use."""
NO_BOUND = "no useful bound"

Unit = tuple[float, str]
"""Units in a second, and the unit's name."""

UNITS: tuple[Unit, ...] = ((1.0, "s"), (1e3, "ms"), (1e6, "µs"), (1e9, "ns"))

BYTE_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def unit_for(seconds: float) -> Unit:
    """Return the unit in which a time reads as 1 to 1,000."""
    for scale, name in UNITS:
        if seconds * scale >= 1.0:
            return scale, name
    return UNITS[1] if seconds == 0 else UNITS[-1]


def seconds_text(seconds: float) -> str:
    """Return a time as text, such as ``1.25 ms``."""
    scale, unit = unit_for(seconds)
    return f"{seconds * scale:.4g} {unit}"


def byte_unit(size: float) -> tuple[float, str]:
    """Return the bytes of the unit in which a size reads as 1 to 1,000, and its name."""
    return next(((scale, name) for scale, name in BYTE_UNITS if size >= scale), (1.0, "B"))


def bytes_text(size: float) -> str:
    """Return bytes as text, such as ``80 GB``."""
    scale, name = byte_unit(size)
    return f"{size / scale:,.4g} {name}"


def number_text(value: float | None, form: str = "{:.3f}") -> str:
    """Return a number in a format, `NOTHING` for None, NaN and infinity."""
    return NOTHING if value is None or not isfinite(value) else form.format(value)


def percent(ratio: float) -> str:
    """Return a gap as text; small ones keep two digits, because 0.0 would claim an optimum."""
    if ratio > WIDEST_GAP:
        return NO_BOUND
    proved = ratio <= OPTIMAL_GAP
    return f"{100 * ratio:.1f} %" if ratio >= 1e-3 or proved else f"{100 * ratio:.2g} %"
