"""`check_allocation`: an independent check of offsets, without code of what proposes them."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

from go_rl.objectives.common.allocator.buffers import AllocationError, Buffers


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
