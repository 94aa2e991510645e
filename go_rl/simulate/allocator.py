"""Offset allocation: give every buffer of a device its place in memory, or prove that none fits.

Static memory allocation is strip packing with fixed positions in time. Pricing a plan by peak live
bytes is only a bound; `allocate` confirms it. Each stretch of time that no buffer links to the rest
is settled alone, by the first of these that succeeds: the live-bytes bound, first fit in several
orders, the complete search of `allocator_search` from several orders in turn, and CP-SAT.
"""

from __future__ import annotations

import time

import numpy as np
from jaxtyping import Int64

from go_rl.core import Status
from go_rl.simulate.allocator_buffers import NO_OFFSET, Allocation, AllocationError, Buffers
from go_rl.simulate.allocator_check import check_allocation
from go_rl.simulate.allocator_cpsat import solve_with_cp_sat
from go_rl.simulate.allocator_first_fit import first_fit_within
from go_rl.simulate.allocator_orders import SEARCH_ORDERS, orders_of
from go_rl.simulate.allocator_search import search_within
from go_rl.simulate.allocator_sections import sections_of

__all__ = ["Allocation", "AllocationError", "Buffers", "allocate", "check_allocation"]

METHODS = ("live-bytes", "first-fit", "search", "cp-sat")
"""What can settle an allocation, from the cheapest on."""

CP_SAT_SHARE = 0.3
"""The part of the time kept for CP-SAT after the search."""


def allocate(buffers: Buffers, capacity: int, seconds: float = 10.0) -> Allocation:
    """Return an offset for every buffer such that all end within ``capacity`` bytes.

    Proves that none exist where live bytes exceed the capacity or the search is exhausted; gives up
    after about ``seconds``. Raises `AllocationError` for a negative capacity or no time.
    """
    if capacity < 0:
        raise AllocationError(f"capacity is {capacity} bytes; it must be at least 0")
    if not seconds > 0:
        raise AllocationError(f"seconds is {seconds}; the time allowed must be positive")
    deadline = time.monotonic() + seconds
    offsets = np.full(len(buffers), NO_OFFSET, np.int64)
    if len(buffers) == 0:
        return Allocation(offsets, 0, Status.OK, 0, METHODS[0])
    sections = sections_of(buffers)
    bound = int(sections.live_bytes.max())
    if bound > capacity:
        return Allocation(offsets, 0, Status.OUT_OF_MEMORY, bound, METHODS[0])
    settled_by = 0
    for stretch in sections.independent:
        status, method, found = _settle(buffers.take(stretch), capacity, deadline)
        if found is None:
            return Allocation(np.full_like(offsets, NO_OFFSET), 0, status, bound, method)
        offsets[stretch] = found
        settled_by = max(settled_by, METHODS.index(method))
    height = int((offsets + buffers.size).max())
    return Allocation(offsets, height, Status.OK, bound, METHODS[settled_by])


def _settle(
    buffers: Buffers, capacity: int, deadline: float
) -> tuple[Status, str, Int64[np.ndarray, "B"] | None]:
    """Allocate one independent stretch: how it went, what settled it, and the offsets if any."""
    sections = sections_of(buffers)
    offsets = first_fit_within(buffers, sections, capacity, deadline)
    if offsets is not None:
        return Status.OK, "first-fit", offsets
    now = time.monotonic()
    orders = orders_of(buffers, sections, SEARCH_ORDERS)
    until = deadline - CP_SAT_SHARE * max(deadline - now, 0.0)
    status, offsets = search_within(buffers, sections, orders, capacity, until)
    if status is not Status.GAVE_UP:
        return status, "search", offsets
    left = deadline - time.monotonic()
    if left <= 0:
        return status, "search", None
    status, offsets = solve_with_cp_sat(buffers, capacity, left)
    return status, "cp-sat", offsets
