"""Short facts about arrays: a hash where every bit counts, moments where rounding is allowed."""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

Fact = str | int | float | bool | list[float] | None
"""What is recorded of a result under one name."""
Facts = dict[str, Any]
"""Facts by name."""
DIGITS = 16
"""Hexadecimal digits of a hash that are kept."""
NOTHING = b"nothing"
"""Stands for an array that is not there."""


def digest(*arrays: Any) -> str:
    """Return a hash of whole numbers, truth values or texts in their order; None: not there.

    The width of an integer does not count, the shape of an array does.
    """
    found = hashlib.sha256()
    for each in arrays:
        found.update(b"|" + (NOTHING if each is None else _bytes(np.asarray(each))))
    return found.hexdigest()[:DIGITS]


def _bytes(array: np.ndarray) -> bytes:
    if array.dtype.kind in "fc" and array.size:
        raise TypeError(f"an array of {array.dtype} is not hashed: take its moments")
    if array.dtype.kind in "biufc":
        return str(array.shape).encode() + np.ascontiguousarray(array, np.int64).tobytes()
    return str(array.shape).encode() + "\0".join(str(x) for x in array.ravel()).encode()


def moments(arrays: Iterable[Any]) -> list[float]:
    """Return what changes when any number does: the sums of |x|, of x, and of x times a wave.

    Infinite numbers and NaN are counted apart, at the end. The order of the arrays does not count,
    so that parameters may be renamed; that of the numbers within an array does. `compare` takes
    differences relative to the largest entry, the first.
    """
    total, odd = np.zeros(3), 0
    for each in arrays:
        flat = np.asarray(each, np.float64).ravel()
        usable = np.isfinite(flat)
        odd += int((~usable).sum() + (np.arange(1, flat.size + 1)[~usable] % 97).sum())
        kept = np.where(usable, flat, 0.0)
        wave = np.cos(np.arange(1.0, flat.size + 1.0))
        total += [np.abs(kept).sum(), kept.sum(), (kept * wave).sum()]
    return [*(short(x) for x in total), float(odd)]


def short(value: float) -> float:
    """Return a number with twelve significant digits, which keeps the file small."""
    return float(f"{float(value):.12g}")
