"""The same question put to CP-SAT: rectangles at fixed places in time may not overlap."""

from __future__ import annotations

import time

import numpy as np
from jaxtyping import Int64
from ortools.sat.python import cp_model

from go_rl.core import Status
from go_rl.objectives.common.allocator.buffers import Buffers
from go_rl.objectives.common.allocator.ties import ties_of
from go_rl.runtime.interruptible_cp_sat import solve_interruptibly


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
