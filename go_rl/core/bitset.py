"""Sets of chips as the bits of one signed 64-bit word, for compiled functions."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit

ONE = np.int64(1)
ALL = np.int64(-1)


@njit(cache=True, error_model="numpy", inline="always")
@no_type_check
def bit(c: int) -> int:
    """Return the set {c}."""
    return ONE << np.int64(c)


@njit(cache=True, error_model="numpy", inline="always")
@no_type_check
def up_to(c: int) -> int:
    """Return the set {0..c}."""
    return ALL if c >= 63 else (ONE << np.int64(c + 1)) - ONE


@njit(cache=True, error_model="numpy")
@no_type_check
def members(x: int) -> int:
    """Return how many members a set has."""
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((x * 0x0101010101010101) >> 56) & 0xFF


@njit(cache=True, error_model="numpy")
@no_type_check
def lowest(x: int) -> int:
    """Return the smallest member of a set that is not empty; one instruction where there is one."""
    return members((x & -x) - 1)


@njit(cache=True, error_model="numpy")
@no_type_check
def highest(x: int) -> int:
    """Return the largest member of a set that is not empty."""
    for width in (1, 2, 4, 8, 16, 32):
        x |= x >> width
    return members(x) - 1


def membership(words: np.ndarray, chips: int) -> np.ndarray:
    """Return boolean membership [..., chips] for words [...]."""
    return (words[..., None] >> np.arange(chips, dtype=np.int64)) & 1 == 1
