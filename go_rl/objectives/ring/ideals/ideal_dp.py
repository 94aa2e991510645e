"""Bounded dynamic programming over ideals: can the units be cut into k stages of at most T?

An ideal is a set of units closed under predecessors; a stage is the difference of two ideals. The
cut of an ideal (the tensors that leave it) is what the link behind its stage carries, and depends
on the ideal alone. States (ideal, stages, load of the open stage) grow unit by unit; of states
with the same ideal only those that no other beats in stages and load survive. Kept whole, this is
exact, so an empty frontier *proves* that no partition with that T exists; beyond ``width`` states a
layer the least wasteful are kept, and it is a heuristic (Bautista and Pereira, "A dynamic
programming based heuristic for the assembly line balancing problem", EJOR 2009).

Under the triangle rule a tensor that crosses a cut must be consumed before the next cut; a stage
may be two chips side by side without an edge between them: then all chip paths between two stages
are equally long, and no triangle can close. That is sufficient, not necessary, so an empty frontier
proves nothing under that rule.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int32

from go_rl.core.graph.condensation import sorted_rows
from go_rl.objectives.common.units import RingUnits
from go_rl.objectives.ring.ideals.frontier import (
    DONE,
    GROW,
    PAUSE,
    IdealLimits,
    new_frontier,
    with_more_candidates,
)
from go_rl.objectives.ring.ideals.frontier import TRUNCATED as DROPPED
from go_rl.objectives.ring.ideals.states import grow_layers, read_stages
from go_rl.runtime.decoder_calls import count_decoder_calls

FOUND, NONE, TRUNCATED = 0, 1, 2
"""A partition; proved that there is none; none among the states kept, or stopped."""


@dataclass(frozen=True)
class Limits:
    """Limits that a partition must keep."""

    seconds: float
    """T: the largest stage and link."""
    stages: int
    """Number of stages k."""
    weight: float
    """Bytes of weights a stage may hold; inf: unlimited."""
    triangle: bool
    width: int
    """States kept a layer."""


def stages_within(
    units: RingUnits, limits: Limits, stop: Callable[[], bool] = lambda: False
) -> tuple[int, Int32[np.ndarray, "U"], Int32[np.ndarray, "U"]]:
    """Return (verdict, order [U], stage [U] by unit); the arrays mean something when FOUND.

    ``stop`` is called every few hundredths of a second; True makes the verdict TRUNCATED.
    """
    count_decoder_calls()
    order = np.zeros(units.num_units, np.int32)
    stage = np.zeros(units.num_units, np.int32)
    if units.num_units == 0:
        return FOUND, order, stage
    # Work sums are rounded differently by every order of adding; a hair of slack hides that.
    seconds = limits.seconds * (1.0 + 1e-12)
    link = max(seconds - units.latency, 1e-12 * seconds)
    if units.work.max() > seconds:
        return NONE, order, stage
    bounds = _ideal_limits(units, limits, seconds, link)
    frontier = new_frontier(units.num_units, limits.width, limits.triangle)
    while (last := grow_layers(units, bounds, frontier)) in (GROW, PAUSE):
        if last == GROW:
            frontier = with_more_candidates(frontier)
        elif stop():
            return TRUNCATED, order, stage
    if last >= 0:
        read_stages(frontier, last, order, stage)
        return FOUND, order, stage
    dropped = last == DONE or frontier.cursor[DROPPED]
    return TRUNCATED if dropped else NONE, order, stage


def _ideal_limits(units: RingUnits, limits: Limits, seconds: float, link: float) -> IdealLimits:
    count, tensors = units.num_units, np.arange(len(units.tensor_seconds))
    made_ptr, made = sorted_rows(units.tensor_source, tensors, count)
    used_ptr, used = sorted_rows(units.user, np.repeat(tensors, np.diff(units.use_ptr)), count)
    whole = limits.stages * seconds
    return IdealLimits(
        made_ptr=made_ptr,
        made=made.astype(np.int32),
        used_ptr=used_ptr,
        used=used.astype(np.int32),
        seconds=seconds,
        link=link,
        weight_limit=limits.weight,
        stages=limits.stages,
        triangle=limits.triangle,
        width=limits.width,
        room=whole - units.work.sum() + 1e-12 * whole,
    )
