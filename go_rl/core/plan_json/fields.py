"""Allowed values of the fields of a plan document."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from typing import Any, TypeGuard

import numpy as np

from go_rl.core.errors import PlanError, nearest
from go_rl.core.files.strict_json import shown
from go_rl.core.hardware.hardware import MAX_DEVICES

LARGEST = np.iinfo(np.int64)
"""Whole numbers that a priority may be."""
LARGEST_SEED = 2**64 - 1
MOST_DEVICES = int(np.iinfo(np.int16).max)
"""Largest index of a device that a plan can hold."""


MOST_ENTRIES = MAX_DEVICES**2
"""Most numbers of a list of which only those that are not 0 are written."""


def full_list(value: Any, where: str) -> Any:
    """Return the list that an object with ``entries`` and ``nonzero`` stands for; anything else as
    it is."""
    if not isinstance(value, dict):
        return value
    check_known(value, ("entries", "nonzero"), where)
    check_there(value, ("entries", "nonzero"), where)
    count, pairs = value["entries"], value["nonzero"]
    if type(count) is not int or not 0 <= count <= MOST_ENTRIES:
        raise PlanError(f"{where}: entries must be 0 to {MOST_ENTRIES}, not {shown(count)}")
    found = [0.0] * count
    for pair in pairs if isinstance(pairs, list) else [pairs]:
        right = isinstance(pair, list) and len(pair) == 2 and type(pair[0]) is int
        if not right or not 0 <= pair[0] < count:
            raise PlanError(
                f"{where}: nonzero must list pairs of a place below {count} and a number, not "
                f"{shown(pair)}"
            )
        found[pair[0]] = pair[1]
    return found


def check_there(document: Mapping[str, Any], names: Collection[str], where: str) -> None:
    for name in names:
        if name not in document:
            raise PlanError(f"{where}: field {name!r} is missing")


def check_known(document: Mapping[str, Any], known: Collection[str], where: str) -> None:
    """A misspelt field would otherwise be ignored."""
    for name in document:
        if name not in known:
            raise PlanError(f"{where}: unknown field {shown(name)}{nearest(name, known)}")


def is_size(value: object) -> bool:
    return type(value) is int and 0 <= value <= LARGEST.max


def is_text(value: object) -> bool:
    return isinstance(value, str)


def is_number(value: object) -> TypeGuard[int | float]:
    """Whether it fits in 64 bits: neither NaN nor infinite, nor a larger integer."""
    return type(value) in (int, float) and abs(value) <= sys.float_info.max  # pyright: ignore[reportArgumentType]


def number_or_null(value: object, name: str, where: str) -> float | None:
    if value is None:
        return None
    if not is_number(value):
        raise PlanError(
            f"{where}: {name} must be a finite number, or null for infinity, not {shown(value)}"
        )
    return float(value)


def is_device(value: object) -> bool:
    return type(value) is int and 0 <= value <= MOST_DEVICES
