"""Sets of chips as the bits of one signed 64-bit word, for compiled kernels."""

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
def lowest(x: int) -> int:
    """Return the smallest member of a set that is not empty."""
    n = 0
    if x & 0xFFFFFFFF == 0:
        n += 32
        x >>= 32
    if x & 0xFFFF == 0:
        n += 16
        x >>= 16
    if x & 0xFF == 0:
        n += 8
        x >>= 8
    if x & 0xF == 0:
        n += 4
        x >>= 4
    if x & 0x3 == 0:
        n += 2
        x >>= 2
    if x & 0x1 == 0:
        n += 1
    return n


@njit(cache=True, error_model="numpy")
@no_type_check
def highest(x: int) -> int:
    """Return the largest member of a set that is not empty."""
    if x < 0:
        return 63
    n = 0
    if x >> 32:
        n += 32
        x >>= 32
    if x >> 16:
        n += 16
        x >>= 16
    if x >> 8:
        n += 8
        x >>= 8
    if x >> 4:
        n += 4
        x >>= 4
    if x >> 2:
        n += 2
        x >>= 2
    if x >> 1:
        n += 1
    return n


@njit(cache=True, error_model="numpy")
@no_type_check
def members(x: int) -> int:
    """Return how many members a set has."""
    x = x - ((x >> 1) & 0x5555555555555555)
    x = (x & 0x3333333333333333) + ((x >> 2) & 0x3333333333333333)
    x = (x + (x >> 4)) & 0x0F0F0F0F0F0F0F0F
    return ((x * 0x0101010101010101) >> 56) & 0xFF


def membership(words: np.ndarray, chips: int) -> np.ndarray:
    """Return boolean membership [..., chips] for words [...]."""
    return (words[..., None] >> np.arange(chips, dtype=np.int64)) & 1 == 1
