"""The loops of tiled programs' operators, and how each moves through their arrays.

Loop names: ``m n k`` of a matmul; ``n oh ow co kh kw ci`` of a convolution (NHWC); ``outer inner``
of a reduction. All arrays are row-major. Sizes have the letters of their loops, under which records
are hashed, and not the names of `go_rl.costs.operator_sizes`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from go_rl.core.errors import GoRLError
from go_rl.costs.operator_sizes import window_positions


class TileError(GoRLError):
    """A program or its tiles are malformed, or do not fit together."""


DIMENSIONS: Mapping[str, tuple[str, ...]] = {
    "matmul": ("m", "n", "k"),
    "conv2d": ("n", "h", "w", "ci", "kh", "kw", "co", "stride", "padding"),
    "reduce_sum": ("outer", "inner", "axis"),
    "reduce_max": ("outer", "inner", "axis"),
}
"""The sizes of each operator. ``axis`` 0 reduces ``outer``, the major dimension; 1 reduces
``inner``, the minor one. ``padding`` counts the zeros on each of the four sides."""


def json_object(what: str, text: str, fields: Sequence[str]) -> dict[str, Any]:
    """Return the JSON object of exactly these fields; a `TileError` begins with
    ``what``, such as ``tiles are``."""
    try:
        found: Any = json.loads(text)
    except json.JSONDecodeError as error:
        raise TileError(f"{what} not JSON: {error}") from error
    if not isinstance(found, dict) or sorted(found) != sorted(fields):
        raise TileError(f"{what} a JSON object of {', '.join(fields)}, not {text[:80]}")
    return found


def whole_number(what: str, size: object, least: int = 1) -> int:
    """Return ``size``, or raise a `TileError` that says what is no whole number >= ``least``."""
    if isinstance(size, bool) or not isinstance(size, int) or size < least:
        raise TileError(f"{what} must be a whole number >= {least}, not {size!r}")
    return size


@dataclass(frozen=True)
class Loop:
    """One loop of an operator."""

    name: str
    extent: int
    """Iterations of the loop."""
    reduces: bool = False
    """True when the loop's iterations add up to one element of the result."""


@dataclass(frozen=True)
class Operand:
    """An array that an operator touches in every iteration."""

    name: str
    index: tuple[tuple[tuple[str, int], ...], ...]
    """Index of each dimension: the loops that move in it, each with its step in elements."""
    is_result: bool = False
    """True for the array that is read and written: the sums."""


def loops_of(op: str, dims: Mapping[str, int]) -> tuple[Loop, ...]:
    """Return an operator's loops: those of the result in its order, then the reducing ones."""
    if op == "matmul":
        return Loop("m", dims["m"]), Loop("n", dims["n"]), Loop("k", dims["k"], True)
    if op == "conv2d":
        high, wide = (
            window_positions(dims[size], dims[f"k{size}"], dims["stride"], dims["padding"])
            for size in ("h", "w")
        )
        result = Loop("n", dims["n"]), Loop("oh", high), Loop("ow", wide), Loop("co", dims["co"])
        return result + tuple(Loop(name, dims[name], True) for name in ("kh", "kw", "ci"))
    kept, gone = ("outer", "inner") if dims["axis"] else ("inner", "outer")
    return Loop(kept, dims[kept]), Loop(gone, dims[gone], True)


def operands_of(op: str, dims: Mapping[str, int]) -> tuple[Operand, ...]:
    """Return the arrays that an operator reads, and last the result that it adds to."""
    if op == "matmul":
        return _plain("left", "m", "k"), _plain("right", "k", "n"), _result("m", "n")
    if op == "conv2d":
        step = dims["stride"]
        rows, columns = (("oh", step), ("kh", 1)), (("ow", step), ("kw", 1))
        image = Operand("left", ((("n", 1),), rows, columns, (("ci", 1),)))
        return image, _plain("right", "kh", "kw", "ci", "co"), _result("n", "oh", "ow", "co")
    return _plain("left", "outer", "inner"), _result("outer" if dims["axis"] else "inner")


def _plain(name: str, *loops: str) -> Operand:
    return Operand(name, tuple(((loop, 1),) for loop in loops))


def _result(*loops: str) -> Operand:
    return Operand("result", tuple(((loop, 1),) for loop in loops), True)


def input_shapes_of(op: str, dims: Mapping[str, int]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of an operator's arguments by name, in order."""
    if op == "matmul":
        return {"left": (dims["m"], dims["k"]), "right": (dims["k"], dims["n"])}
    if op == "conv2d":
        image = tuple(dims[name] for name in ("n", "h", "w", "ci"))
        return {"left": image, "right": tuple(dims[name] for name in ("kh", "kw", "ci", "co"))}
    return {"left": (dims["outer"], dims["inner"])}
