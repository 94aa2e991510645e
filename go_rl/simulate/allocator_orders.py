"""Orders of preference in which buffers are placed: what is hard to place goes first."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

from go_rl.simulate.allocator_buffers import Buffers
from go_rl.simulate.allocator_sections import Sections, peak_over

FIRST_FIT_ORDERS = ("size", "area", "length size", "tightness size", "birth", "death", "width area")
"""Tried by first fit, in this order. Each is a list of criteria, later ones break ties."""

SEARCH_ORDERS = (
    "width area tightness",
    "tightness area width",
    "tightness width area",
    "length size",
    "size",
)
"""Tried by the search; the first three are MiniMalloc's."""


def orders_of(
    buffers: Buffers, sections: Sections, names: tuple[str, ...]
) -> dict[str, Int64[np.ndarray, "B"]]:
    """Return the named orders: for each, the indices of the buffers from first to last."""
    length = buffers.upper - buffers.lower
    criteria = {
        "size": -buffers.size,
        "length": -length,
        "area": -(buffers.size.astype(np.float64) * length),
        "width": sections.first - sections.last,
        "tightness": -peak_over(sections.live_bytes, sections.first, sections.last),
        "birth": buffers.lower,
        "death": -buffers.upper,
    }
    return {name: np.lexsort([criteria[word] for word in reversed(name.split())]) for name in names}
