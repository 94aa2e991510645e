"""The nouns of offset allocation: `Buffers`, `Allocation`, and the error for bad input."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int64

from go_rl.core import GoRLError, Status


class AllocationError(GoRLError):
    """Buffers, a capacity or offsets are malformed, or two buffers share bytes while both live."""


@dataclass(frozen=True, eq=False)
class Buffers:
    """``B`` buffers with known lifetimes. Buffer i is live in the half-open ``[lower, upper)``.

    Raises `AllocationError` naming the first buffer that breaks a rule.
    """

    lower: Int64[np.ndarray, "B"]
    """[B] the step that first needs the buffer."""
    upper: Int64[np.ndarray, "B"]
    """[B] the first step that no longer needs it; above ``lower``."""
    size: Int64[np.ndarray, "B"]
    """[B] bytes, positive."""

    def __post_init__(self) -> None:
        lengths = (len(self.lower), len(self.upper), len(self.size))
        if len(set(lengths)) != 1:
            raise AllocationError(
                "lower, upper and size need one entry a buffer each, "
                f"but have {lengths[0]}, {lengths[1]} and {lengths[2]}"
            )
        for buffer in np.flatnonzero(self.size <= 0)[:1]:
            raise AllocationError(
                f"size[{buffer}] is {self.size[buffer]}; a buffer needs at least 1 byte"
            )
        for buffer in np.flatnonzero(self.upper <= self.lower)[:1]:
            raise AllocationError(
                f"upper[{buffer}] is {self.upper[buffer]}, which must be above "
                f"lower[{buffer}] = {self.lower[buffer]}"
            )
        if self.size.astype(np.float64).sum() >= _MOST_BYTES:
            raise AllocationError("the sizes add up to 2**62 bytes or more, which must be less")

    def __len__(self) -> int:
        return len(self.size)

    def take(self, index: Int64[np.ndarray, "b"]) -> Buffers:
        """Return the buffers at ``index``, in that order."""
        return Buffers(self.lower[index], self.upper[index], self.size[index])


_MOST_BYTES = 2.0**62


@dataclass(frozen=True, eq=False)
class Allocation:
    """Start of each buffer, and the method that decided it. ``B`` buffers."""

    offsets: Int64[np.ndarray, "B"]
    """[B] first byte of each buffer; `NO_OFFSET` everywhere unless the status is OK."""
    height: int
    """Bytes used, the largest ``offset + size``; 0 unless the status is OK."""
    status: Status
    """OK; OUT_OF_MEMORY when proved that no offsets fit; GAVE_UP when the time ran out."""
    lower_bound: int
    """The largest sum of live bytes at any step; no allocation is lower."""
    method: str
    """Method that settled the allocation: ``live-bytes``, ``first-fit``, ``search`` or ``cp-sat``;
    the last one needed where independent stretches of time were settled differently."""


NO_OFFSET = -1
"""The offset of a buffer that was not placed."""


def check_allocation(buffers: Buffers, offsets: Int64[np.ndarray, "n"], capacity: int) -> None:
    """Raise `AllocationError` unless every buffer fits and no two share a byte while both live.

    Compares each buffer with all later ones: O(B^2) comparisons, one row of B at a time.
    """
    if len(offsets) != len(buffers):
        raise AllocationError(f"{len(offsets)} offsets were given for {len(buffers)} buffers")
    ends = offsets + buffers.size
    for buffer in np.flatnonzero((offsets < 0) | (ends > capacity))[:1]:
        raise AllocationError(
            f"buffer {buffer} occupies bytes {offsets[buffer]} to {ends[buffer]}, "
            f"outside 0 to {capacity}"
        )
    for i in range(len(buffers)):
        later = slice(i + 1, None)
        both_live = (buffers.lower[later] < buffers.upper[i]) & (
            buffers.lower[i] < buffers.upper[later]
        )
        shared = (offsets[later] < ends[i]) & (offsets[i] < ends[later])
        for j in np.flatnonzero(both_live & shared)[:1] + i + 1:
            raise AllocationError(
                f"buffers {i} and {j} overlap: both are live from step "
                f"{max(buffers.lower[i], buffers.lower[j])} and share bytes from "
                f"{max(offsets[i], offsets[j])} to {min(ends[i], ends[j])}"
            )
