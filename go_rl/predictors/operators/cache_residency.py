"""What an operator finds in the last cache of a GPU because the launch before it left it there.

Operators are measured one launch after the other on the same tensors, and a network reads what it
has just written: while all that is read and written fits, nothing comes from memory. Of the GPUs
measured only the A100's cache is large enough to show it (32 MB in three tensors take the time of
the launch, 36 MB that of memory).
"""

from __future__ import annotations

from typing import Any

import numpy as np

FITS = float(np.log(0.8))
"""Logarithm of bytes over the cache's at which half come from memory, where learning starts."""
SHARPNESS = 8.0
"""Of the step from cache to memory, in logarithms of bytes."""
BYTES_PER_CLOCK = 16.0
"""That a cache gives each multiprocessor: microbenchmarks of T4, P4, P100 and V100 (Jia and others,
2018, 2019) find 12 to 22."""


def missed(moved: Any, l2: Any, fits: Any, xp: Any) -> Any:
    """Return the share of bytes that come from memory.

    Args:
        moved: bytes of all tensors.
        l2: bytes of the cache.
        fits: see `FITS`.
        xp: array module.
    """
    return 0.5 * (1 + xp.tanh(0.5 * SHARPNESS * (xp.log(moved / l2) - fits)))


def cache_bandwidth(multiprocessors: Any, clock: Any) -> Any:
    """Return bytes per second that the cache gives all multiprocessors."""
    return BYTES_PER_CLOCK * multiprocessors * clock
