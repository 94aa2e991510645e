"""Offset allocation: give every buffer of a device its place in memory, or prove that none fits.

Static memory allocation is strip packing with fixed positions in time. Pricing a plan by peak live
bytes is only a bound; `allocate` confirms it. Each stretch of time that no buffer links to the rest
is settled alone, by the first of these that succeeds: the live-bytes bound, first fit in several
orders, the complete search of `allocator_search` from several orders in turn, then that search and
CP-SAT side by side.
"""

from __future__ import annotations

import time

import numpy as np
from jaxtyping import Int64

from go_rl.core import Status
from go_rl.objectives.common.allocator.buffers import (
    NO_OFFSET,
    Allocation,
    AllocationError,
    Buffers,
    check_allocation,
)
from go_rl.objectives.common.allocator.first_fit import first_fit_within
from go_rl.objectives.common.allocator.restarts import Found, RestartedSearch
from go_rl.objectives.common.allocator.search import compile_search
from go_rl.objectives.common.allocator.sections import Sections, sections_of

__all__ = ["Allocation", "AllocationError", "Buffers", "allocate", "check_allocation"]

LIVE_BYTES, FIRST_FIT, SEARCH, CP_SAT = METHODS = ("live-bytes", "first-fit", "search", "cp-sat")
"""Methods that can settle an allocation, cheapest first."""

SEARCH_SECONDS = 1.0
"""Time that the search has for itself before CP-SAT joins in."""
CP_SAT_BUFFERS = 3000
"""The most buffers of a stretch that CP-SAT is asked about; more take it longer to read in."""


def allocate(buffers: Buffers, capacity: int, seconds: float = 10.0) -> Allocation:
    """Return an offset for every buffer such that all end within ``capacity`` bytes.

    Proves that none exist where live bytes exceed the capacity or the search is exhausted; gives up
    after about ``seconds``, in which the once-only compilation of the search does not count.
    Raises `AllocationError` for a negative capacity or no time.
    """
    if capacity < 0:
        raise AllocationError(f"capacity is {capacity} bytes; it must be at least 0")
    if not seconds > 0:
        raise AllocationError(f"seconds is {seconds}; the time allowed must be positive")
    offsets = np.full(len(buffers), NO_OFFSET, np.int64)
    if len(buffers) == 0:
        return Allocation(offsets, 0, Status.OK, 0, LIVE_BYTES)
    sections = sections_of(buffers)
    bound = int(sections.live_bytes.max())
    if bound > capacity:
        return Allocation(offsets, 0, Status.OUT_OF_MEMORY, bound, LIVE_BYTES)
    status, method = _settle(buffers, sections, offsets, capacity, seconds)
    if status is not Status.OK:
        return Allocation(np.full_like(offsets, NO_OFFSET), 0, status, bound, method)
    height = int((offsets + buffers.size).max())
    return Allocation(offsets, height, Status.OK, bound, method)


def _settle(
    buffers: Buffers,
    sections: Sections,
    offsets: Int64[np.ndarray, "B"],
    capacity: int,
    seconds: float,
) -> tuple[Status, str]:
    """Write the offsets of each independent stretch; return how it went and what settled it."""
    deadline = time.monotonic() + seconds
    hard: list[Int64[np.ndarray, "b"]] = []
    for stretch in sections.independent:
        found = first_fit_within(buffers.take(stretch), capacity, deadline)
        if found is None:
            hard.append(stretch)
        else:
            offsets[stretch] = found
    method = FIRST_FIT
    if hard:
        deadline += compile_search()
    for stretch in sorted(hard, key=len):
        (status, found), settled_by = _settle_hard(buffers.take(stretch), capacity, deadline)
        if found is None:
            return status, settled_by
        offsets[stretch] = found
        method = max(method, settled_by, key=METHODS.index)
    return Status.OK, method


def _settle_hard(buffers: Buffers, capacity: int, deadline: float) -> tuple[Found, str]:
    """Search one stretch; where that takes long, let CP-SAT work beside it. Returns what was found
    and what settled it."""
    search = RestartedSearch(buffers, capacity)
    alone = min(deadline, time.monotonic() + SEARCH_SECONDS)
    if len(buffers) > CP_SAT_BUFFERS:
        alone = deadline
    found = search.run(alone)
    if found[0] is not Status.GAVE_UP or alone == deadline:
        return found, SEARCH
    # Only here, where a second was spent already: importing OR-Tools takes a quarter of one.
    from go_rl.objectives.common.allocator.cp_sat import search_beside_cp_sat

    found, by_search = search_beside_cp_sat(search, buffers, capacity, deadline)
    return found, SEARCH if by_search else CP_SAT
