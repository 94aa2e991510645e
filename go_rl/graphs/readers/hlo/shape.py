"""HLO shapes: ``f32[8,16]{1,0}`` and tuples of them."""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from functools import cached_property

from go_rl.core import ElementType, ReadError
from go_rl.core.graph.element_type import element_type

TUPLE = "tuple"
_BITS = {"pred": 8, "token": 0, "opaque": 0, "bf16": 16, "c64": 64, "c128": 128}
_MAX_NESTING = 64
MOST_DIMENSIONS, MOST_ELEMENTS = 64, 1 << 62
"""Bytes of the largest array that is accepted."""
_ARRAY = re.compile(r"([a-z]\w*)\[([^\]]*)\](?:\{([^}]*)\})?")


@dataclass(frozen=True)
class Shape:
    """An array (``dtype`` and ``dims``) or, with ``dtype`` `TUPLE`, the ``parts`` of a tuple."""

    dtype: str
    dims: tuple[int, ...] = ()
    parts: tuple[Shape, ...] = ()
    layout: tuple[int, ...] = ()
    """Dimensions from the fastest varying to the slowest (``minor_to_major``)."""

    @property
    def is_tuple(self) -> bool:
        return self.dtype == TUPLE

    @cached_property
    def elements(self) -> int:
        """Elements of an array; of a tuple those of its first part."""
        if self.is_tuple:
            return self.parts[0].elements if self.parts else 0
        return math.prod(self.dims)

    @property
    def itemsize(self) -> float:
        """Bytes of one element (0 for a tuple)."""
        return 0.0 if self.is_tuple else _bits(self.dtype) / 8

    @property
    def type(self) -> ElementType:
        """Type of its elements; unknown of a tuple."""
        return element_type(self.dtype)

    @cached_property
    def num_bytes(self) -> float:
        """Bytes of all arrays inside."""
        return float(sum(math.ceil(leaf.elements * leaf.itemsize) for leaf in self.leaves()))

    def leaves(self) -> list[Shape]:
        """The arrays inside, depth first."""
        found: list[Shape] = []
        stack: list[Shape] = [self]
        while stack:
            shape = stack.pop()
            if shape.is_tuple:
                stack.extend(reversed(shape.parts))
            else:
                found.append(shape)
        return found


def _bits(dtype: str) -> int:
    if dtype in _BITS:
        return _BITS[dtype]
    match = re.fullmatch(r"[suf](\d+)(e\d+m\d+\w*)?", dtype)
    if match is None:
        raise ReadError(f"unknown HLO element type {dtype!r}")
    if len(match[1]) > 4:
        raise ReadError(f"unknown HLO element type {dtype[:60]!r}")
    return int(match[1])


def parse_shape(text: str, start: int = 0) -> tuple[Shape, int]:
    """Parse the shape at ``text[start:]``; return it and the place after it.

    Raises:
        ReadError: the text is no shape.
    """
    open_tuples: list[list[Shape]] = []
    place = start
    while True:
        while place < len(text) and text[place] in " ,":
            place += 1
        if text.startswith("(", place):
            open_tuples.append([])
            place += 1
            if len(open_tuples) > _MAX_NESTING:
                raise ReadError(f"an HLO tuple is nested deeper than {_MAX_NESTING}")
            continue
        if text.startswith(")", place) and open_tuples:
            shape = Shape(TUPLE, parts=tuple(open_tuples.pop()))
            place += 1
        else:
            match = _ARRAY.match(text, place)
            if match is None:
                raise ReadError(f"expected an HLO shape at {text[place : place + 40]!r}")
            shape = _array(match[1], match[2], match[3] or "")
            place = match.end()
        if not open_tuples:
            return shape, place
        open_tuples[-1].append(shape)


@functools.lru_cache(maxsize=4096)
def _array(dtype: str, dimensions: str, layout: str) -> Shape:
    _bits(dtype)
    dims = _dims(dimensions)
    if len(dims) > MOST_DIMENSIONS or math.prod(dims) > MOST_ELEMENTS:
        raise ReadError(f"HLO shape {dtype}[{dimensions[:60]}] is larger than any array can be")
    return Shape(dtype, dims, layout=_layout(layout.split(":")[0], len(dims)))


def _dims(text: str) -> tuple[int, ...]:
    try:
        dims = tuple(int(d.strip().removeprefix("<=")) for d in text.split(",") if d.strip())
    except ValueError as error:
        raise ReadError(f"HLO dimensions [{text[:60]}] are not numbers") from error
    if any(extent < 0 for extent in dims):
        raise ReadError(f"HLO dimensions [{text[:60]}] must be 0 or more")
    return dims


def _layout(text: str, rank: int) -> tuple[int, ...]:
    order = tuple(int(d) for d in text.split(",") if d.strip().isdigit())
    return order if len(order) == rank else tuple(reversed(range(rank)))
