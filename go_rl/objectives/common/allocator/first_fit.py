"""First fit: place buffers one by one, each at the lowest offset free throughout its lifetime."""

from __future__ import annotations

import time
from typing import no_type_check

import numpy as np
from jaxtyping import Int64
from numba import njit

from go_rl.objectives.common.allocator.buffers import Buffers
from go_rl.objectives.common.allocator.orders import FIRST_FIT_ORDERS, orders_of
from go_rl.objectives.common.allocator.sections import sections_of

REPAIRS = 12
"""Rounds of repair before the search takes over."""


@njit(cache=True)
@no_type_check
def first_fit(lower, upper, size, order):
    """Return the offsets [B] that first fit gives buffers taken in ``order`` [B]. O(B^2).

    The buffers placed so far are kept sorted by offset, so that one pass over them finds the
    lowest gap.
    """
    count = len(order)
    offsets = np.zeros(count, np.int64)
    placed = np.empty(count, np.int64)
    for done in range(count):
        i = order[done]
        offset = 0
        for k in range(done):
            j = placed[k]
            if offsets[j] >= offset + size[i]:
                break
            if lower[j] < upper[i] and lower[i] < upper[j]:
                offset = max(offset, offsets[j] + size[j])
        offsets[i] = offset
        slot = done
        while slot > 0 and offsets[placed[slot - 1]] > offset:
            placed[slot] = placed[slot - 1]
            slot -= 1
        placed[slot] = i
    return offsets


def first_fit_within(
    buffers: Buffers, capacity: int, deadline: float
) -> Int64[np.ndarray, "B"] | None:
    """Return the first first-fit offsets that end within ``capacity`` bytes, or None.

    Each order of `FIRST_FIT_ORDERS` is tried as it is, then the one of least height is repaired:
    buffers that end too high move to the front (squeaky wheel; Joslin and Clements, 1999).
    """
    best_order, least = None, np.inf
    for order in orders_of(buffers, sections_of(buffers), FIRST_FIT_ORDERS).values():
        offsets = first_fit(buffers.lower, buffers.upper, buffers.size, order)
        height = int((offsets + buffers.size).max())
        if height <= capacity:
            return offsets
        if height < least:
            best_order, least = order, height
        if time.monotonic() > deadline:
            return None
    assert best_order is not None
    return _repaired(buffers, best_order, capacity, deadline)


def _repaired(
    buffers: Buffers, order: Int64[np.ndarray, "B"], capacity: int, deadline: float
) -> Int64[np.ndarray, "B"] | None:
    """Move what does not fit to the front of the order, a few times; None if that never helps."""
    for _ in range(REPAIRS):
        offsets = first_fit(buffers.lower, buffers.upper, buffers.size, order)
        too_high = offsets + buffers.size > capacity
        if not too_high.any():
            return offsets
        if time.monotonic() > deadline:
            return None
        order = np.concatenate([order[too_high[order]], order[~too_high[order]]])
    return None
