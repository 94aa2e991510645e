"""Data that an operator finds in the last cache of a GPU because the launch before it left it
there.

Operators are measured one launch after the other on the same tensors, and a network reads what it
has just written: while all that is read and written fits, nothing comes from memory. Of the GPUs
measured only the A100's cache is large enough to show it (32 MB in three tensors take the time of
the launch, 36 MB that of memory).
"""

from __future__ import annotations

from typing import Any

FITS = 0.8
"""Share of the cache at which half of the bytes come from memory. The A100 alone tells it: 0.8 to
0.9."""
SHARPNESS = 8.0
"""Sharpness of the step from cache to memory, in logarithms of bytes."""
BYTES_PER_CLOCK = 16.0
"""Bytes a clock that a cache gives each multiprocessor, reads and writes mixed: reads alone reach
about 20 on Volta and Turing (Jia and others, 2018 and 2019), fewer on Ada."""


def missed(moved: Any, l2: Any, xp: Any) -> Any:
    """Return the share of bytes that come from memory.

    Args:
        moved: bytes of all tensors.
        l2: bytes of the cache.
        xp: array module.
    """
    return 0.5 * (1 + xp.tanh(0.5 * SHARPNESS * xp.log(moved / (FITS * l2))))


def cache_bandwidth(multiprocessors: Any, clock: Any) -> Any:
    """Return bytes per second that the cache gives all multiprocessors."""
    return BYTES_PER_CLOCK * multiprocessors * clock
