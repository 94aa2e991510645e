"""States of dynamic programming over ideals, as arrays; see `ideal_dp`."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float64, Int8, Int32, Int64

from go_rl.core.compiled_struct import CompiledStruct

NO_STATE, DONE, GROW, PAUSE = -1, -2, -3, -4
"""End states of `grow_layers`, where it does not return the number of the best last state: no state
is left, or none of the last layer is complete; `Frontier.candidate` is full; enough candidates for
one call."""
TIE = 1e-3
"""Weight of a state's cut beside its waste when states must be dropped."""
EXTEND, OPEN_ONE, OPEN_TWO = 0, 1, 2
"""A unit joins the open stage, or opens a stage of one chip or of two side by side."""
PARENT, UNIT, MOVE, KEY, CHIPS, SIDE, TWO = range(7)
"""Columns of a candidate's integers."""
LOAD, HELD, CUT, WASTE, LOAD_B, HELD_B = range(6)
"""Columns of a state's seconds and bytes; LOAD_B < 0: no unit on the second chip yet."""
INSIDE, READY, NEED, TOUCHED, SIDE_A, SIDE_B = range(6)
"""Bit sets of a state: the ideal; units that may come next; units that must come before the next
cut; units behind the ideal's edges; units on each chip of the open stage."""
LAYER, STATES, TRUNCATED = range(3)
"""Places in `Frontier.cursor`: the layer to grow, its states, whether any state was dropped."""
CANDIDATES = 1024
"""Room for candidates to begin with."""
CANDIDATES_A_CALL = 100_000
"""A call of `grow_layers` pauses after this many: some hundredths of a second."""


@dataclass(frozen=True, eq=False)
class IdealLimits(CompiledStruct):
    """Limits on cutting units into stages, and the units' tensors by unit; read-only. ``U`` units,
    ``X`` tensors."""

    made_ptr: Int64[np.ndarray, "rows"]
    made: Int32[np.ndarray, "X"]
    """[X] tensors by the unit that makes them."""
    used_ptr: Int64[np.ndarray, "rows"]
    used: Int32[np.ndarray, "uses"]
    """Tensors by the units that use them."""
    seconds: float
    """T: the largest stage."""
    link: float
    """Largest sum of tensors at a cut, seconds."""
    weight_limit: float
    stages: int
    triangle: bool
    width: int
    """States kept a layer."""
    room: float
    """Seconds of k stages of T that need not be filled."""


@dataclass(frozen=True, eq=False)
class Frontier(CompiledStruct):
    """States of the current and of the next layer, and how each came to be.

    ``w`` width, ``W`` words of a bit set, ``C`` candidates.
    """

    sets: Int64[np.ndarray, "2 kinds w W"]
    """Bit sets of the states, by parity of the layer."""
    value: Float64[np.ndarray, "w 6"]
    count: Int64[np.ndarray, "w"]
    """Stages so far."""
    key: Int64[np.ndarray, "w"]
    """Hash of the ideal."""
    two: Bool[np.ndarray, "w"]
    """The open stage is two chips."""
    history: Int32[np.ndarray, "layers w 2"]
    """Parent state and unit."""
    marks: Int8[np.ndarray, "layers w 3"]
    """Move, side, two chips."""
    candidate: Int64[np.ndarray, "C 7"]
    candidate_value: Float64[np.ndarray, "C 6"]
    alive: Bool[np.ndarray, "C"]
    order: Int64[np.ndarray, "C"]
    """Candidates sorted; in the end those kept."""
    buffer: Int64[np.ndarray, "C"]
    sort_key: Int64[np.ndarray, "C"]
    worth: Float64[np.ndarray, "C"]
    """View of `sort_key` as floats: floats >= 0 sort like their bits."""
    cursor: Int64[np.ndarray, "3"]


def new_frontier(units: int, width: int, triangle: bool) -> Frontier:
    """Allocate a frontier that holds the empty ideal."""
    words, kinds = (units + 63) // 64, 6 if triangle else 2
    return Frontier(
        sets=np.zeros((2, kinds, width, words), np.int64),
        value=np.zeros((width, 6)),
        count=np.zeros(width, np.int64),
        key=np.zeros(width, np.int64),
        two=np.zeros(width, np.bool_),
        history=np.zeros((units + 1, width, 2), np.int32),
        marks=np.zeros((units + 1, width, 3), np.int8),
        cursor=np.array([0, 1, 0], np.int64),
        **_candidates(CANDIDATES),
    )


def with_more_candidates(frontier: Frontier) -> Frontier:
    """Return the same states with room for twice the candidates."""
    return replace(frontier, **_candidates(2 * len(frontier.order)))


def _candidates(count: int) -> dict[str, np.ndarray]:
    sort_key = np.zeros(count, np.int64)
    return {
        "candidate": np.zeros((count, 7), np.int64),
        "candidate_value": np.zeros((count, 6)),
        "alive": np.zeros(count, np.bool_),
        "order": np.zeros(count, np.int64),
        "buffer": np.zeros(count, np.int64),
        "sort_key": sort_key,
        "worth": sort_key.view(np.float64),
    }
