"""A lower bound on T_max under the triangle rule: edges whose paths share chips.

Under that rule an edge u -> v keeps B(u, v), all units on paths from u to v, on the chips of u and
v. Let S be units that every legal plan keeps on at most m chips; to begin with, m = 2 and S is one
such B. Add B(u, v) of another edge:

- u and v in S: their chips are among the m, so S and B(u, v) are on m chips;
- one of them in S: on m + 1 chips.

T_max is at least the work of S over m, at every stage of this. Edges are chosen greedily, the
largest gain first, from each of the edges with the most work between as a beginning.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float64, Int64

from go_rl.objectives.common.units import RingUnits

MOST_UNITS = 4000
"""Units up to which this is done: reachability takes their square in bytes."""
MOST_EDGES = 400
"""Edges kept, those with the most work between."""
BEGINNINGS = 60
"""Edges tried as the first of a chain, of the `MOST_EDGES` kept."""
MOST_CHIPS = 12
"""Largest m, the number of chips."""


def chained_between(units: RingUnits, chips: int) -> float:
    """Return the bound in seconds; 0 where no edge lies beside a longer path."""
    if units.num_units > MOST_UNITS:
        return 0.0
    ends, between = _edges_beside_paths(units)
    best = 0.0
    # Each chain of edges yields a bound; the largest holds.
    for first in range(min(BEGINNINGS, len(ends))):
        best = max(best, _grown(units.work, ends, between, first, min(chips, MOST_CHIPS)))
    return best


def _grown(
    work: Float64[np.ndarray, "U"],
    ends: Int64[np.ndarray, "X 2"],
    between: Bool[np.ndarray, "X U"],
    first: int,
    chips: int,
) -> float:
    """Return the best bound of those that begin with one edge."""
    held, m, best = between[first].copy(), 2, 0.0
    while True:
        held = _closed(ends, between, held)
        best = max(best, float(work[held].sum()) / m)
        half = np.flatnonzero(held[ends].sum(axis=1) == 1)
        if m >= chips or not half.size:
            return best
        gain = (between[half] & ~held) @ work
        held |= between[half[int(gain.argmax())]]
        m += 1


def _closed(
    ends: Int64[np.ndarray, "X 2"], between: Bool[np.ndarray, "X U"], held: Bool[np.ndarray, "U"]
) -> Bool[np.ndarray, "U"]:
    """Add what lies between ends that are both held, until nothing changes."""
    while True:
        more = held | between[held[ends].all(axis=1)].any(axis=0)
        if (more == held).all():
            return held
        held = more


def _edges_beside_paths(
    units: RingUnits,
) -> tuple[Int64[np.ndarray, "X 2"], Bool[np.ndarray, "X U"]]:
    """Return edges with units between their ends, most work first, and these units, ends too."""
    count = units.num_units
    reach = np.eye(count, dtype=np.bool_)
    for v in range(count - 1, -1, -1):
        for w in units.succ[units.succ_ptr[v] : units.succ_ptr[v + 1]].tolist():
            reach[v] |= reach[w]
    source = np.repeat(np.arange(count), np.diff(units.succ_ptr))
    found: list[tuple[float, int, int, np.ndarray]] = []
    arrive = np.ascontiguousarray(reach.T)
    for u, v in zip(source.tolist(), units.succ.tolist(), strict=True):
        inside = reach[u] & arrive[v]
        if np.count_nonzero(inside) > 2:
            found.append((float(units.work[inside].sum()), u, v, inside))
    found.sort(key=lambda each: -each[0])
    found = found[:MOST_EDGES]
    ends = np.array([(u, v) for _, u, v, _ in found], np.int64).reshape(-1, 2)
    rows = [inside for *_, inside in found]
    return ends, np.array(rows, np.bool_).reshape(len(rows), count)
