"""Whole numbers that do not depend on a module's parameters, such as the counter of a loop that is
unrolled: they say which part of a weight a dynamic slice takes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from go_rl.graphs.readers.hlo.shape import Shape
from go_rl.graphs.readers.hlo.text import Instruction

_ARITHMETIC: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "convert": int,
    "copy": int,
    "maximum": max,
    "minimum": min,
    "multiply": operator.mul,
    "negate": operator.neg,
    "select": lambda chosen, yes, no: yes if chosen else no,
    "subtract": operator.sub,
}
_COMPARISONS: dict[str, Callable[..., Any]] = {
    "EQ": operator.eq,
    "GE": operator.ge,
    "GT": operator.gt,
    "LE": operator.le,
    "LT": operator.lt,
    "NE": operator.ne,
}
LARGEST = 1 << 31
"""Numbers beyond may have wrapped around."""


def known_number(instruction: Instruction, operands: Sequence[int | None]) -> int | None:
    """Return the whole number that an instruction makes of known ones, or None."""
    shape, numbers = instruction.shape, [n for n in operands if n is not None]
    if shape.is_tuple or shape.dims or shape.dtype[0] not in "sup":
        return None
    if len(numbers) != len(operands):
        return None
    if instruction.opcode == "compare":
        rule = _COMPARISONS.get(instruction.attributes.get("direction", ""))
    else:
        rule = _ARITHMETIC.get(instruction.opcode)
    try:
        number = None if rule is None or not numbers else int(rule(*numbers))
    except TypeError:  # operands that the opcode does not take
        return None
    return number if number is not None and abs(number) < LARGEST else None


def part_taken(instruction: Instruction, whole: Shape, starts: Sequence[int | None]) -> str:
    """Return which part of an array a slice takes, as ``slice`` writes it; empty if not known."""
    if instruction.opcode == "slice":
        return instruction.attributes.get("slice", "").replace(" ", "")
    sizes, known = instruction.numbers("dynamic_slice_sizes"), [s for s in starts if s is not None]
    if not len(known) == len(sizes) == len(whole.dims):
        return ""
    rows = zip(known, sizes, whole.dims, strict=True)
    # A start beyond the array is moved back inside.
    inside = [(max(0, min(start, extent - size)), size) for start, size, extent in rows]
    return "{" + ",".join(f"[{start}:{start + size}]" for start, size in inside) + "}"
