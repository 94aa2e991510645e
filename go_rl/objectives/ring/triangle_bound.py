"""Lower bounds on T_max that hold under the triangle rule only.

Let u reach v, B the units on paths from u to v, both included, W(B) their work; a the chip of u and
c that of v. Let S be the units of B on chip a.

- If S holds a direct predecessor of v, an edge joins a and c. A unit of B on any other chip would
  put a longer path beside it, so all of B is on a and c, and T >= W(B) / 2.
- Otherwise, unless a = c (then T >= W(B)), S is closed under predecessors within B, holds u and no
  predecessor of v; whatever leaves S goes to higher chips and crosses the link behind a. So T is at
  least the seconds of a least such cut, each tensor counted once. Likewise the units of B on c:
  what they read from the others of B crosses the link before c, and none of them is a direct
  successor of u.

Hence T >= min(W(B) / 2, cut) for every pair. Here the question is whether a T is possible after
units have been merged that no plan within T can part, which makes W(B) and cuts larger.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from go_rl.core.graph.heads_tails import sums_after, sums_before
from go_rl.objectives.common.units import RingUnits

MOST_UNITS = 4000
"""Units up to which cuts are looked for."""
MOST_PAIRS = 12
"""Pairs looked at for one T; a few ends for each beginning."""
ENDS = 3
FINE = 10_000_000
"""Capacity that stands for T; all are whole numbers, rounded down."""
UNCUT = 4 * FINE
"""Capacity of what cannot be cut, and of the whole network: more than T is enough."""


@dataclass(frozen=True)
class _Reached:
    """[U] work of what each unit reaches and of what reaches it, itself included."""

    after: Float64[np.ndarray, "U"]
    before: Float64[np.ndarray, "U"]
    total: float

    @staticmethod
    def of(units: RingUnits) -> _Reached:
        after = sums_after(units.succ_ptr, units.succ, units.work)
        before = sums_before(units.pred_ptr, units.pred, units.work)
        return _Reached(after, before, float(units.work.sum()))

    def between(self, u: np.ndarray | int, v: np.ndarray | slice) -> Float64[np.ndarray, "X"]:
        """[X] at most the work on paths from u to v; at most zero unless u reaches v.

        |between| >= |after u| + |before v| - |all|, for sets that overlap in what lies between.
        """
        return self.after[u] + self.before[v] - self.total


def half_between(units: RingUnits) -> float:
    """Return half the largest work between the ends of an edge, ends included."""
    return _half_between(units, _Reached.of(units))


def parts_too_little(units: RingUnits, seconds: float) -> bool:
    """Whether some pair of units proves that no plan under the triangle rule has such a T_max.

    ``units`` are those that plans within ``seconds`` cannot split.
    """
    reached, limit = _Reached.of(units), seconds * (1 + 1e-9)
    if _half_between(units, reached) > limit:
        return True
    if units.num_units > MOST_UNITS:
        return False
    return any(_cut_exceeds(units, u, v, limit) for u, v in _pairs(units, reached, limit))


def _half_between(units: RingUnits, reached: _Reached) -> float:
    ends = np.repeat(np.arange(units.num_units), np.diff(units.succ_ptr))
    return max(0.0, float(reached.between(ends, units.succ).max(initial=0.0)) / 2.0)


def _pairs(units: RingUnits, reached: _Reached, limit: float) -> Iterator[tuple[int, int]]:
    """Yield pairs with too much work between for two chips, the widest beginnings first."""
    leaving = np.bincount(units.tensor_source, units.tensor_seconds, units.num_units)
    begins = np.flatnonzero(leaving + units.latency > limit)
    begins = begins[np.argsort(-reached.after[begins], kind="stable")][: MOST_PAIRS // ENDS]
    for u in begins.tolist():
        wide = np.flatnonzero(reached.between(u, slice(None)) > 2 * limit)
        for v in wide[:ENDS].tolist():
            yield u, v


def _cut_exceeds(units: RingUnits, u: int, v: int, limit: float) -> bool:
    inside = _between(units, u, v)
    preds = units.pred[units.pred_ptr[v] : units.pred_ptr[v + 1]]
    succs = units.succ[units.succ_ptr[u] : units.succ_ptr[u + 1]]
    begins, ends = np.zeros_like(inside), np.zeros_like(inside)
    begins[u], ends[preds], ends[v] = True, True, True
    if _least_cut(units, inside, begins, ends & inside, limit) > limit:
        return True
    begins[succs], ends[preds] = True, False
    return _least_cut(units, inside, begins & inside, ends, limit) > limit


def _between(units: RingUnits, u: int, v: int) -> Bool[np.ndarray, "U"]:
    count = units.num_units
    inside = np.zeros((2, count), np.bool_)
    rows = ((units.succ_ptr, units.succ, u), (units.pred_ptr, units.pred, v))
    for side, (ptr, ids, start) in enumerate(rows):
        matrix = csr_matrix((np.ones(len(ids)), ids, ptr), (count, count))
        found = breadth_first_order(matrix, start, return_predecessors=False)
        inside[side, found] = True
    return inside[0] & inside[1]


def _least_cut(
    units: RingUnits,
    inside: Bool[np.ndarray, "U"],
    begins: Bool[np.ndarray, "U"],
    ends: Bool[np.ndarray, "U"],
    limit: float,
) -> float:
    """Return the least seconds on a link, latency included, between a set closed under
    predecessors that holds ``begins`` and the rest that holds ``ends``; inf where they meet.

    Each tensor is a node of the flow network whose only way on has the capacity of its seconds;
    ways back from every consumer keep the set closed.
    """
    if (begins & ends).any():
        return np.inf
    count, tensors = units.num_units, len(units.tensor_seconds)
    uses = np.diff(units.use_ptr)
    reader_of = np.repeat(np.arange(tensors), uses)
    kept = inside[units.tensor_source[reader_of]] & inside[units.user]
    reader_of, user = reader_of[kept], units.user[kept].astype(np.int64)
    used = np.unique(reader_of)
    maker = units.tensor_source[used].astype(np.int64)
    entry = count + np.arange(tensors)
    exit_ = entry + tensors
    gate, source, sink = count + 2 * tensors + np.arange(3)
    seconds = np.minimum(units.tensor_seconds[used] * (FINE / limit), UNCUT)
    edge_u = np.repeat(np.arange(count), np.diff(units.succ_ptr))
    real = inside[edge_u] & inside[units.succ]
    first, last = np.flatnonzero(begins), np.flatnonzero(ends)
    tails: list[Int64[np.ndarray, "Z"]] = [
        maker, entry[used], exit_[reader_of], units.succ[real].astype(np.int64),
        np.full(len(first), source), last, np.array([gate]),
    ]  # fmt: skip
    heads: list[Int64[np.ndarray, "Z"]] = [
        entry[used], exit_[used], user, edge_u[real], first, np.full(len(last), sink),
        np.array([source]),
    ]  # fmt: skip
    capacity = [np.full(len(part), UNCUT, np.int32) for part in tails]
    capacity[1] = np.floor(seconds).astype(np.int32)
    size = sink + 1
    rows, columns, room = (np.concatenate(part) for part in (tails, heads, capacity))
    network = csr_matrix((room, (rows, columns)), (size, size), dtype=np.int32)
    flow = maximum_flow(network, gate, sink).flow_value
    return flow * (limit / FINE) + units.latency
