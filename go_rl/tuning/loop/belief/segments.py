"""Curves cut at jumps (DynaTune, section 4.3)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64

JUMP = 0.2
"""A rise by more, relative to the performance before it, begins another segment."""


def segment_starts(curve: Sequence[float]) -> list[int]:
    """Return where the segments of a curve begin, ascending; the trials before the first one that
    worked belong to none."""
    values = np.asarray(curve, np.float64)
    working = np.flatnonzero(values > 0)
    if not len(working):
        return []
    first = int(working[0])
    rises = values[first + 1 :] > (1 + JUMP) * values[first:-1]
    return [first, *(np.flatnonzero(rises) + first + 1).tolist()]


def last_segment(curve: Sequence[float]) -> tuple[int, Float64[np.ndarray, "n"]]:
    """Return how many trials lie before the last jump, and the values from there on: each segment
    has parameters of its own, so that only these tell about the future."""
    start = segment_starts(curve)[-1]
    return start, np.asarray(curve[start:], np.float64)
