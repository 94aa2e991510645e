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

from go_rl.objectives.ring.ideal_frontier import (
    DONE,
    GROW,
    PAUSE,
    IdealProblem,
    new_frontier,
    with_more_candidates,
)
from go_rl.objectives.ring.ideal_frontier import TRUNCATED as DROPPED
from go_rl.objectives.ring.ideal_states import grow_layers, read_stages
from go_rl.objectives.ring.units import RingUnits

FOUND, NONE, TRUNCATED = 0, 1, 2
"""A partition; proved that there is none; none among the states kept, or stopped."""


@dataclass(frozen=True)
class Limits:
    """What a partition must keep."""

    seconds: float
    """T: the largest stage and link."""
    stages: int
    """k."""
    weight: float
    """Bytes of weights a stage may hold; inf: unlimited."""
    triangle: bool
    width: int
    """States kept a layer."""


def stages_within(
    units: RingUnits, limits: Limits, stop: Callable[[], bool] = lambda: False
) -> tuple[int, Int32[np.ndarray, "U"], Int32[np.ndarray, "U"]]:
    """Return (verdict, order [U], stage [U] by unit); the arrays mean something when FOUND.

    ``stop`` is asked every some hundredths of a second; when it says so, the verdict is TRUNCATED.
    """
    order = np.zeros(units.num_units, np.int32)
    stage = np.zeros(units.num_units, np.int32)
    if units.num_units == 0:
        return FOUND, order, stage
    # Work sums are rounded differently by every order of adding; a hair of slack hides that.
    seconds = limits.seconds * (1.0 + 1e-12)
    link = max(seconds - units.latency, 1e-12 * seconds)
    if units.work.max() > seconds:
        return NONE, order, stage
    problem = _problem(units, limits, seconds, link)
    frontier = new_frontier(units.num_units, limits.width, limits.triangle)
    while (last := grow_layers(problem, frontier)) in (GROW, PAUSE):
        if last == GROW:
            frontier = with_more_candidates(frontier)
        elif stop():
            return TRUNCATED, order, stage
    if last >= 0:
        read_stages(problem, frontier, last, order, stage)
        return FOUND, order, stage
    dropped = last == DONE or frontier.cursor[DROPPED]
    return TRUNCATED if dropped else NONE, order, stage


def _problem(units: RingUnits, limits: Limits, seconds: float, link: float) -> IdealProblem:
    made_ptr, made = _tensors_of(units.tensor_source, units.num_units)
    used_ptr, used = _uses_of(units)
    whole = limits.stages * seconds
    return IdealProblem(
        work=units.work,
        weight=units.weight,
        pred_ptr=units.pred_ptr,
        pred=units.pred,
        succ_ptr=units.succ_ptr,
        succ=units.succ,
        tensor_seconds=units.tensor_seconds,
        use_ptr=units.use_ptr,
        user=units.user,
        made_ptr=made_ptr,
        made=made,
        used_ptr=used_ptr,
        used=used,
        seconds=seconds,
        link=link,
        weight_limit=limits.weight,
        stages=limits.stages,
        triangle=limits.triangle,
        width=limits.width,
        room=whole - units.work.sum() + 1e-12 * whole,
    )


def _tensors_of(source: np.ndarray, units: int) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.zeros(units + 1, np.int64)
    np.cumsum(np.bincount(source, minlength=units), out=offsets[1:])
    return offsets, np.argsort(source, kind="stable").astype(np.int32)


def _uses_of(units: RingUnits) -> tuple[np.ndarray, np.ndarray]:
    tensor = np.repeat(np.arange(len(units.tensor_seconds)), np.diff(units.use_ptr))
    offsets = np.zeros(units.num_units + 1, np.int64)
    np.cumsum(np.bincount(units.user, minlength=units.num_units), out=offsets[1:])
    return offsets, tensor[np.argsort(units.user, kind="stable")].astype(np.int32)
