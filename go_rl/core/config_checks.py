"""`check_ranges`, `check_tuples`: fields of a configuration, checked as it is made."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache
from math import inf
from sys import float_info
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from go_rl.core.errors import GoRLError


@dataclass(frozen=True)
class Range:
    """An interval of numbers."""

    least: int | float = -inf
    most: int | float = inf
    above: bool = False
    """Whether `least` itself is outside."""
    below: bool = False
    """Whether `most` itself is outside."""
    words: str = ""
    """The interval in words, where its numbers would be hard to read."""

    def holds(self, number: int | float) -> bool:
        """Return whether a number lies within; NaN never does."""
        return (number > self.least if self.above else number >= self.least) and (
            number < self.most if self.below else number <= self.most
        )

    def __str__(self) -> str:
        if self.words:
            return self.words
        if self.most < float_info.max:
            return f"in {'(['[not self.above]}{self.least:g}, {self.most:g}{')]'[not self.below]}"
        finite = "" if self.most == inf else "finite and "
        return f"{finite}{'>' if self.above else '>='} {self.least:g}"


COUNT = Range(1)
NOT_NEGATIVE = Range(0)
POSITIVE = Range(0, above=True)
FINITE = Range(0, float_info.max)
FINITE_POSITIVE = Range(0, float_info.max, above=True)
SHARE = Range(0, 1)
PART = Range(0, 1, above=True)
"""A share that is not nothing."""
LESS_THAN_ALL = Range(0, 1, below=True)
SEED = Range(0, 2**62, below=True, words=">= 0 and below 2^62")
"""Random seeds that NumPy, JAX and a database take, also those counted up from them."""


def check_ranges(
    configuration: object, where: str, error: type[GoRLError], /, **ranges: Range
) -> None:
    """Raise an error that names the first field whose number is out of range.

    Args:
        configuration: its fields hold numbers, tuples of numbers, or None, which is in any range.
        where: begins the message.
        error: raised.
        ranges: by field.
    """
    for name, allowed in ranges.items():
        value = getattr(configuration, name)
        for number in value if isinstance(value, tuple) else (value,):
            if number is not None and not allowed.holds(number):
                raise error(f"{where}: {name} must be {allowed}, not {number}")


def check_tuples(configuration: Any, where: str, error: type[GoRLError], /) -> None:
    """Raise an error that names the first field of a tuple that holds no tuple and no list.

    Args:
        configuration: a dataclass; its fields of tuples of tuples are looked into as well.
        where: begins the message.
        error: raised.
    """
    for name, nested in _tuple_fields(type(configuration)).items():
        value = getattr(configuration, name)
        if value is None:
            continue
        check_tuple(value, f"{where}: {name}", error)
        for i, inner in enumerate(value if nested else ()):
            check_tuple(inner, f"{where}: {name}[{i}]", error)


def check_tuple(value: object, what: str, error: type[GoRLError]) -> None:
    """Raise an error for a value that is no tuple and no list; ``what`` begins the message."""
    if not isinstance(value, tuple | list):
        such = f" such as ({value!r},)" if isinstance(value, str) else ""
        raise error(f"{what} must be a tuple{such}, not {value!r}")


@cache
def _tuple_fields(kind: type[Any]) -> dict[str, bool]:
    """Fields that take nothing but a tuple or None, and whether it is one of tuples."""
    hints = get_type_hints(kind)
    found: dict[str, bool] = {}
    for field in fields(kind):
        hint = hints[field.name]
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        own = [each for each in kinds if each is not type(None)]
        if all(get_origin(each) is tuple for each in own):
            found[field.name] = any(get_origin(get_args(each)[0]) is tuple for each in own)
    return found
