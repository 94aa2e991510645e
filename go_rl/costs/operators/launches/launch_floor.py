"""Launch floor: the host's time for a launch bounds an operator from below, however small it is."""

from __future__ import annotations

from typing import Any

PRODUCT_SHARPNESS, STREAM_SHARPNESS = 8, 12
"""Exponents of the smooth maximum, of products and attention, and of streams: where host and GPU
take as long, an operator takes 9 % and 6 % longer than either."""


def with_floor(body: Any, floor: Any, sharpness: Any, xp: Any) -> Any:
    """Return logarithms of the smooth maximum of seconds.

    Args:
        body: logarithms of what the GPU takes.
        floor: logarithms of what the host needs.
        sharpness: exponent.
        xp: array module.
    """
    return xp.logaddexp(sharpness * body, sharpness * floor) / sharpness
