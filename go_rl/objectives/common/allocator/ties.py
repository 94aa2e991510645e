"""Ties: where memory is full before and after an instant, what begins takes the room of what ends.

If one buffer alone ends between two full sections, those that begin take exactly its bytes, and
the other way round: the place of one bounds that of the others. CP-SAT does not see this by itself.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Int64

from go_rl.objectives.common.allocator.buffers import Buffers
from go_rl.objectives.common.allocator.sections import sections_of


def ties_of(buffers: Buffers, capacity: int) -> list[tuple[int, int]]:
    """Return pairs (outer, inner) of buffers: in any allocation the bytes of the inner lie within
    those of the outer."""
    sections = sections_of(buffers)
    full = sections.live_bytes == capacity
    pairs: list[tuple[int, int]] = []
    for s in np.flatnonzero(full[:-1] & full[1:]):
        ends, begins = _at(sections.last, int(s)), _at(sections.first, int(s) + 1)
        if len(ends) == 1:
            pairs += [(ends[0], inner) for inner in begins]
        elif len(begins) == 1:
            pairs += [(begins[0], inner) for inner in ends]
    return pairs


def _at(section: Int64[np.ndarray, "B"], s: int) -> list[int]:
    return np.flatnonzero(section == s).tolist()
