"""Offset allocation put to CP-SAT: rectangles at fixed places in time may not overlap; alone, or
beside the allocator's own search for what that did not settle quickly."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
from jaxtyping import Int64
from ortools.sat.python import cp_model

from go_rl.core import Status
from go_rl.objectives.common.allocator.buffers import Buffers
from go_rl.objectives.common.allocator.restarts import Found, RestartedSearch
from go_rl.objectives.common.allocator.sections import sections_of
from go_rl.runtime.interruptible_cp_sat import solve_interruptibly

POLL_SECONDS = 0.01
"""Time between two requests to CP-SAT to stop."""


def solve_with_cp_sat(
    buffers: Buffers,
    capacity: int,
    seconds: float,
    workers: int = 2,
    tied: bool = True,
    solver: cp_model.CpSolver | None = None,
) -> tuple[Status, Int64[np.ndarray, "B"] | None]:
    """Return OK with offsets [B], OUT_OF_MEMORY when proved that none fit, or GAVE_UP.

    ``tied`` adds what `ties_of` knows; a ``solver`` of one's own can be stopped from elsewhere.
    """
    deadline = time.monotonic() + seconds
    unit = int(np.gcd.reduce(buffers.size))
    model = cp_model.CpModel()
    offsets, lifetimes, places = [], [], []
    for lower, upper, size in zip(
        buffers.lower.tolist(), buffers.upper.tolist(), (buffers.size // unit).tolist(), strict=True
    ):
        offset = model.new_int_var(0, capacity // unit - size, "")
        offsets.append(offset)
        lifetimes.append(model.new_fixed_size_interval_var(lower, upper - lower, ""))
        places.append(model.new_fixed_size_interval_var(offset, size, ""))
    model.add_no_overlap_2d(lifetimes, places)
    for outer, inner in ties_of(buffers, capacity) if tied else ():
        room = int(buffers.size[outer] - buffers.size[inner]) // unit
        model.add_linear_constraint(offsets[inner] - offsets[outer], 0, room)
    solver = solver or cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = max(deadline - time.monotonic(), 1e-3)
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = 0
    status = solve_interruptibly(solver, model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return Status.OK, np.array([solver.value(x) for x in offsets], np.int64) * unit
    return (Status.OUT_OF_MEMORY if status == cp_model.INFEASIBLE else Status.GAVE_UP), None


def ties_of(buffers: Buffers, capacity: int) -> list[tuple[int, int]]:
    """Return pairs (outer, inner) of buffers: in any allocation the bytes of the inner lie within
    those of the outer.

    Where memory is full before and after an instant, what begins takes the room of what ends: if
    one buffer alone ends between two full sections, those that begin take exactly its bytes, and
    the other way round. CP-SAT does not see this by itself.
    """
    sections = sections_of(buffers)
    full = sections.live_bytes == capacity
    pairs: list[tuple[int, int]] = []
    for s in np.flatnonzero(full[:-1] & full[1:]):
        ends, begins = _at(sections.last, int(s)), _at(sections.first, int(s) + 1)
        if len(ends) == 1:
            pairs += [(ends[0], inner) for inner in begins]
        elif len(begins) == 1:
            pairs += [(begins[0], inner) for inner in ends]
    return pairs


def _at(section: Int64[np.ndarray, "B"], s: int) -> list[int]:
    return np.flatnonzero(section == s).tolist()


def search_beside_cp_sat(
    search: RestartedSearch, buffers: Buffers, capacity: int, deadline: float
) -> tuple[Found, bool]:
    """Return what was found, and whether the search found it; the first to settle stops the other.

    Args:
        search: goes on where it stopped.
        buffers: of one stretch.
        capacity: bytes.
        deadline: of `time.monotonic`.
    """
    solver, stop = cp_model.CpSolver(), Event()

    def ask() -> Found:
        left = max(deadline - time.monotonic(), 1e-3)
        found = solve_with_cp_sat(buffers, capacity, left, solver=solver)
        if found[0] is not Status.GAVE_UP:
            stop.set()
        return found

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask)
        try:
            found = search.run(deadline, stop)
        finally:
            while not asked.done():  # a model still being built cannot be stopped yet
                solver.stop_search()
                time.sleep(POLL_SECONDS)
        by_search = found[0] is not Status.GAVE_UP
        return (found if by_search else asked.result()), by_search
