"""Orders of preference in which buffers are placed: what is hard to place goes first."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float64, Int64

from go_rl.objectives.common.allocator.buffers import Buffers
from go_rl.objectives.common.allocator.sections import Sections, peak_over

FIRST_FIT_ORDERS = ("size", "area", "length size", "tightness size", "birth", "death", "width area")
"""Tried by first fit, in this order. Each is a list of criteria, later ones break ties."""

SEARCH_ORDERS = ("tightness area width", "tightness width area", "width area tightness")
"""Searched to the end; MiniMalloc's."""

QUICK_ORDERS = ("length size", "size")
"""Searched in the first round only: they settle many large instances at once, or never."""


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


DISTURBED = (*SEARCH_ORDERS, *SEARCH_ORDERS, "area width tightness", "size width tightness",
             "width size tightness")  # fmt: skip
"""Sort keys of a disturbed order, drawn anew each time."""
NOISE = 0.1
"""Standard deviation of the logarithm of a disturbed criterion."""
LEVELS = 8
"""Values that a disturbed tightness is rounded to, so that the next criterion breaks ties."""


def disturbed_order(
    buffers: Buffers, sections: Sections, rng: np.random.Generator
) -> Int64[np.ndarray, "B"]:
    """Return buffers from first to last by drawn criteria, each times log-normal noise."""

    def disturbed(values: Int64[np.ndarray, "B"]) -> Float64[np.ndarray, "B"]:
        return values * np.exp(NOISE * rng.standard_normal(len(values)))

    length = buffers.upper - buffers.lower
    tightness = peak_over(sections.live_bytes, sections.first, sections.last)
    if rng.random() < 0.5:
        tightness = np.round(disturbed(tightness) * LEVELS / tightness.max())
    criteria = {
        "tightness": tightness,
        "width": disturbed(sections.last - sections.first + 1),
        "size": disturbed(buffers.size),
        "area": disturbed(buffers.size) * length,
    }
    words = DISTURBED[int(rng.integers(len(DISTURBED)))].split()
    return np.lexsort([-criteria[word] for word in reversed(words)])
