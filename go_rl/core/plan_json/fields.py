"""Allowed values of the fields of a plan document."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from typing import Any, TypeGuard

import numpy as np

from go_rl.core.errors import PlanError, nearest
from go_rl.core.files.strict_json import shown

LARGEST = np.iinfo(np.int64)
"""Whole numbers that a priority may be."""
LARGEST_SEED = 2**64 - 1
MOST_DEVICES = int(np.iinfo(np.int16).max)
"""Largest index of a device that a plan can hold."""


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
