"""The complete search from several orders of preference: some to the end, others from scratch.

How long a search takes depends on its order by factors of thousands (heavy tails; Gomes, Selman,
Kautz, "Boosting combinatorial search through randomization", AAAI 1998). So each of a few named
orders is continued in slices that double, which keeps the proof that nothing fits, and between
them disturbed orders are searched for a few nodes each, after Luby, Sinclair, Zuckerman, "Optimal
speedup of Las Vegas algorithms", 1993.
"""

from __future__ import annotations

import time
from threading import Event

import numpy as np
from jaxtyping import Int64

from go_rl.core import Status
from go_rl.objectives.common.allocator.buffers import Buffers
from go_rl.objectives.common.allocator.orders import (
    QUICK_ORDERS,
    SEARCH_ORDERS,
    disturbed_order,
    orders_of,
)
from go_rl.objectives.common.allocator.search import (
    BITS,
    EXHAUSTED,
    MASK,
    RUNNING,
    SOLVED,
    SearchState,
    run_search,
    start_search,
)
from go_rl.objectives.common.allocator.sections import sections_of

FIRST_SLICE = 3000
"""Nodes given to each named order in the first round, at least two a buffer."""
GROWTH = 3
"""Nodes of a round relative to the one before."""
RESTART_SHARE = 1.0
"""Nodes of disturbed orders in a round, relative to those of the named ones."""
RESTART_NODES = 2000
"""Nodes of the shortest search from a disturbed order."""
NODES_A_PIECE = 400_000
"""Buffers times nodes between two looks at the clock: some hundredths of a second."""

Found = tuple[Status, Int64[np.ndarray, "B"] | None]
"""OK with offsets [B], OUT_OF_MEMORY when proved that none exist, or GAVE_UP."""


class RestartedSearch:
    """Searches of one stretch of buffers; `run` may be called again to go on.

    The buffers must be live at no step together with more bytes than ``capacity``.
    """

    def __init__(self, buffers: Buffers, capacity: int) -> None:
        self._unit = int(np.gcd.reduce(buffers.size))
        self._capacity = capacity // self._unit
        self._buffers, self._sections = buffers, sections_of(buffers)
        self._fits_keys = len(buffers) <= MASK
        self._fits_keys &= int(buffers.size.sum()) // self._unit < 1 << (62 - BITS)
        self._rng, self._restarts = np.random.default_rng(0), 0
        self._nodes = max(FIRST_SLICE, 2 * len(buffers))
        self._named: list[tuple[Int64[np.ndarray, "B"], SearchState]] = []

    def run(self, deadline: float, stop: Event | None = None) -> Found:
        """Search until ``deadline``, a `time.monotonic` instant, or until ``stop`` is set."""
        if not self._fits_keys:
            return Status.GAVE_UP, None
        if not self._named:
            names = SEARCH_ORDERS + QUICK_ORDERS
            orders = orders_of(self._buffers, self._sections, names)
            self._named = [(order, self._start(order)) for order in orders.values()]
        while time.monotonic() < deadline and not (stop and stop.is_set()):
            for order, search in self._named:
                found = self._slice(order, search, self._nodes, deadline)
                if found[0] is not Status.GAVE_UP:
                    return found
            spent = 0
            while spent < RESTART_SHARE * len(self._named) * self._nodes:
                self._restarts += 1
                nodes = RESTART_NODES * luby(self._restarts)
                order = disturbed_order(self._buffers, self._sections, self._rng)
                found = self._slice(order, self._start(order), nodes, deadline)
                if found[0] is not Status.GAVE_UP:
                    return found
                spent += nodes
                if time.monotonic() > deadline or (stop and stop.is_set()):
                    break
            self._nodes *= GROWTH
            self._named = self._named[: len(SEARCH_ORDERS)]
        return Status.GAVE_UP, None

    def _start(self, order: Int64[np.ndarray, "B"]) -> SearchState:
        sections, size = self._sections, self._buffers.size // self._unit
        return start_search(sections.first[order], sections.last[order], size[order])

    def _slice(
        self, order: Int64[np.ndarray, "B"], search: SearchState, nodes: int, deadline: float
    ) -> Found:
        """Run some nodes, in pieces short enough to notice the deadline."""
        piece, outcome = max(NODES_A_PIECE // len(search.size), 1), RUNNING
        for start in range(0, nodes, piece):
            outcome = int(run_search(search, self._capacity, min(piece, nodes - start)))
            if outcome != RUNNING or time.monotonic() > deadline:
                break
        if outcome == SOLVED:
            offsets = np.empty(len(order), np.int64)
            offsets[order] = search.floor * self._unit
            return Status.OK, offsets
        return (Status.OUT_OF_MEMORY if outcome == EXHAUSTED else Status.GAVE_UP), None


def luby(i: int) -> int:
    """Return the i-th term, from 1, of Luby's sequence 1 1 2 1 1 2 4 ..."""
    power = i.bit_length()
    if i == 2**power - 1:
        return 2 ** (power - 1)
    return luby(i - 2 ** (power - 1) + 1)
