"""The allocator's search and CP-SAT side by side, for what the search did not settle quickly."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from threading import Event

from ortools.sat.python import cp_model

from go_rl.core import Status
from go_rl.objectives.common.allocator.buffers import Buffers
from go_rl.objectives.common.allocator.cp_sat import solve_with_cp_sat
from go_rl.objectives.common.allocator.restarts import Found, RestartedSearch

POLL_SECONDS = 0.01
"""Time between two requests to CP-SAT to stop."""


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
