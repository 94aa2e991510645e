"""`check_ranges`: the numbers of a configuration, each within the range that its field allows."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from sys import float_info

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
