"""State of a replay, and the trace that it leaves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int64

from go_rl.core.compiled_struct import CompiledStruct
from go_rl.objectives.makespan.simulate.replay_arrays import ReplayArrays


class Trace(NamedTuple):
    """Trace of one replay: ``P`` pieces of kernels and transfers, ``D`` devices."""

    start: Float64[np.ndarray, "P"]
    """[P] start of each piece, in order of starting."""
    end: Float64[np.ndarray, "P"]
    """[P] when its engine was free again."""
    job: Int64[np.ndarray, "P"]
    """[P] see `Jobs`."""
    slot: Int64[np.ndarray, "P"]
    """[P] engine of the pool."""
    peak: Float64[np.ndarray, "D"]
    """[D] peak of the bytes in use."""
    weights: Float64[np.ndarray, "D"]
    """[D] bytes of weights."""


@dataclass(frozen=True, eq=False)
class ReplayState(CompiledStruct):
    """State of a replay at one moment, with room for any plan of a problem: ``J`` jobs, ``M`` of
    them transfers, ``P`` pieces, ``R`` pools and links, ``D`` devices, ``A`` tied arrays of
    weights."""

    start: Float64[np.ndarray, "P"]
    """[P] start of each piece, in order of starting."""
    end: Float64[np.ndarray, "P"]
    """[P] when its engine is free again."""
    job: Int64[np.ndarray, "P"]
    """[P] see `Jobs`."""
    slot: Int64[np.ndarray, "P"]
    """[P] engine of the pool."""
    pool: Int64[np.ndarray, "P"]
    """[P] pool that runs the piece."""
    started: Int64[np.ndarray, "1"]
    """[1] pieces started."""
    to_start: Int64[np.ndarray, "J"]
    """[J] pieces not yet started."""
    running: Int64[np.ndarray, "J"]
    """[J] pieces not yet ended."""
    at: Int64[np.ndarray, "M"]
    """[M] device that sends a transfer on its next link."""
    heap: Int64[np.ndarray, "H"]
    """[H] ready jobs, one binary heap for each pool; a transfer has a place in each of its route.
    """
    offset: Int64[np.ndarray, "R1"]
    """[R + 1] where the heap of each pool begins."""
    size: Int64[np.ndarray, "R"]
    """[R] jobs in it."""
    idle: Int64[np.ndarray, "R"]
    """[R] bit set of free engines."""
    dirty: Int64[np.ndarray, "R"]
    """[R] pools to look at in this moment."""
    is_dirty: Bool[np.ndarray, "R"]
    """[R] whether a pool is among them."""
    marks: Int64[np.ndarray, "1"]
    """[1] number of them."""
    times: Float64[np.ndarray, "X"]
    """[X] heap of events: seconds, the soonest first."""
    what: Int64[np.ndarray, "X"]
    """[X] piece that ends, or -1 - job for the arrival of a transfer, or -1 - J - job for its
    arrival at a device between."""
    events: Int64[np.ndarray, "1"]
    """[1] events in the heap."""
    live: Float64[np.ndarray, "D"]
    """[D] bytes in use now."""
    peak: Float64[np.ndarray, "D"]
    """[D] most bytes in use so far."""
    weights: Float64[np.ndarray, "D"]
    """[D] bytes of weights."""
    tied_on: Bool[np.ndarray, "A D"]
    """[A, D] whether a tied array lies on a device."""

    def trace(self, pieces: int) -> Trace:
        """Return a copy of what happened, of this many pieces."""
        return Trace(
            start=self.start[:pieces].copy(),
            end=self.end[:pieces].copy(),
            job=self.job[:pieces].copy(),
            slot=self.slot[:pieces].copy(),
            peak=self.peak.copy(),
            weights=self.weights.copy(),
        )


def new_replay_state(a: ReplayArrays) -> ReplayState:
    """Return room for the replay of any plan."""
    nodes, devices, engines = len(a.op_kind), len(a.capacity), int(a.engines.sum())
    copies = len(a.user) + len(a.tensor_bytes)
    passed = copies * a.most_hops
    pools = len(a.engines) + min(a.channels, passed)
    parts = int(np.where(a.split, a.engines, 1).max(initial=1))
    return ReplayState.zeros(
        {
            "J": nodes + copies, "M": copies, "P": nodes * parts + passed, "H": nodes + passed,
            "R": pools, "R1": pools + 1, "X": nodes + copies + passed + engines, "D": devices,
            "A": len(a.tied_bytes),
        }
    )  # fmt: skip
