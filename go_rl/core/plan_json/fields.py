"""Allowed values of the fields of a plan document."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any, TypeGuard

import numpy as np

from go_rl.core.errors import PlanError
from go_rl.core.files.strict_json import shown
from go_rl.core.files.typed_json import from_json
from go_rl.core.hardware.hardware import MAX_DEVICES

LARGEST = np.iinfo(np.int64)
"""Whole numbers that a priority may be."""
MOST_DEVICES = int(np.iinfo(np.int16).max)
"""Largest index of a device that a plan can hold."""


MOST_ENTRIES = MAX_DEVICES**2
"""Most numbers of a list of which only those that are not 0 are written."""


@dataclass(frozen=True)
class SparseNumbers:
    """A long list as an object."""

    entries: int
    """Numbers of the list."""
    nonzero: tuple[tuple[int, float | None], ...]
    """Place and number of each that is not 0."""


def full_list(value: Any, where: str) -> Any:
    """Return the list that an object (`SparseNumbers`) stands for; anything else as it is."""
    if not isinstance(value, dict):
        return value
    found = from_json(SparseNumbers, value, where, PlanError)
    check_limits(found.entries, 0, MOST_ENTRIES, f"{where}: entries")
    numbers: list[float | None] = [0.0] * found.entries
    for i, (place, number) in enumerate(found.nonzero):
        check_limits(place, 0, found.entries - 1, f"{where}: nonzero[{i}][0]")
        numbers[place] = number
    return numbers


def check_limits(value: int | float, least: int | float, most: int | float, where: str) -> None:
    """Raise a `PlanError` unless a number lies in ``least..most``; infinite limits are none."""
    if not least <= value <= most:
        limits = f"at least {least}" if math.isinf(most) else f"{least} to {most}"
        raise PlanError(f"{where} must be {limits}, not {shown(value)}")


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it fits in 64 bits: neither NaN nor infinite, nor a larger integer."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max  # pyright: ignore[reportArgumentType]


def is_device(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST_DEVICES
