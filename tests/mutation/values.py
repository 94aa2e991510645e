"""Numbers and words that break readers, and small random choices."""

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np

T = TypeVar("T")
Rng = np.random.Generator

INTEGERS = (
    -(2**63), -(2**31) - 1, -(2**31), -7, -2, -1, 0, 1, 2, 3, 7, 64, 255, 4096, 65_537, 2**20,
    2**30, 2**31 - 1, 2**31, 2**33, 2**40, 2**62, 2**63 - 1,
)  # fmt: skip
"""What a signed 64-bit field may hold."""
FLOATS = (0.0, -0.0, -1.0, 0.5, 1e-320, 1e38, 1e308, float("inf"), float("-inf"), float("nan"))
WORDS = ("", " ", "x", "\x00", "../../etc", "{}", "ä", "\U0001f600", "a" * 300, "1", "-1", "nan")
GARBAGE = (b"\xff", b"\xc3\x28", b"\x00", b"PK\x03\x04", b"\n", b"\\", b'"', b"9" * 5000)
"""Bytes to put somewhere; the first two are no UTF-8."""


def pick(rng: Rng, choices: Sequence[T]) -> T:
    """Return one of the choices."""
    return choices[int(rng.integers(len(choices)))]


def integer(rng: Rng, near: int = 0) -> int:
    """Return a number that is extreme, or near another one."""
    if rng.random() < 0.3:
        return max(-(2**63), min(2**63 - 1, near + int(rng.integers(-2, 3))))
    return pick(rng, INTEGERS)


def broken_bytes(data: bytes, rng: Rng) -> bytes:
    """Flip, cut, drop, repeat or insert bytes at a random place."""
    at, end = (int(rng.integers(len(data) + 1)) for _ in range(2))
    low, high = min(at, end), max(at, end)
    near = low + int(rng.integers(1, 40))
    match int(rng.integers(6)):
        case 0:
            flipped = bytes([data[low % len(data)] ^ (1 << int(rng.integers(8)))]) if data else b""
            return data[:low] + flipped + data[low + 1 :]
        case 1:
            return data[:low]
        case 2:
            return data[:low] + data[near:]
        case 3:
            return data[:near] + data[low:near] + data[near:]
        case 4:
            return data[:low] + pick(rng, GARBAGE) + data[low:]
        case _:
            return data[:low] + data[high : high + 40] + data[near:]


def extreme(rng: Rng) -> Any:
    """Return any value that JSON, or Python's idea of it, can hold."""
    choices: tuple[Any, ...] = (
        None, True, False, [], {}, [[]], {"": 0}, 10**400, -(10**400), 2**63, 2**64, 1 << 2000,
        *INTEGERS, *FLOATS, *WORDS,
    )  # fmt: skip
    return pick(rng, choices)
