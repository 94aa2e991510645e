"""Whole numbers that do not depend on parameters: trip counts of HLO ``while`` loops, and counters
of unrolled ones, which say which part of a weight a dynamic slice takes."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from go_rl.core import ReadError
from go_rl.graphs.readers.arithmetic.closed_forms import MOST_TRIPS, Comparison, first_failure
from go_rl.graphs.readers.hlo.shape import Shape
from go_rl.graphs.readers.hlo.text import Computation, Instruction, Module

_ALIASES = frozenset(("copy", "bitcast", "convert", "reshape", "opt-barrier"))
_MIRRORED: dict[str, Comparison] = {
    "LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "NE": "NE", "EQ": "EQ",
}  # fmt: skip


def trip_count(module: Module, loop: Instruction, named: Mapping[str, Instruction]) -> int | None:
    """Trips of ``loop``, whose operands ``named`` holds, or None when it does not follow from the
    text.

    Taken from XLA's own ``known_trip_count``, else from the canonical pattern: the condition
    compares one element of the loop state with a constant (or with an element that the body passes
    on unchanged), the body adds a constant to it, and it starts at a constant.
    """
    known = re.search(
        r'known_trip_count\\?"\s*:\s*\{\s*\\?"n\\?"\s*:\s*\\?"?(\d+)',
        loop.attributes.get("backend_config", ""),
    )
    if known:
        return _bounded(int(known[1]), loop)
    (condition,), (body,) = loop.callees("condition"), loop.callees("body")
    test = _Scalars(module.computations[condition])
    step = _Scalars(module.computations[body])
    start = [named.get(o) for o in _initial(loop, named)]
    root = test.computation.root
    if root.opcode != "compare" or len(root.operands) != 2:
        return None
    mirrored = _MIRRORED.get(root.attributes.get("direction", ""))
    if mirrored is None:
        return None
    ways: tuple[tuple[tuple[str, ...], Comparison], ...] = (
        (root.operands, _MIRRORED[mirrored]),
        (root.operands[::-1], mirrored),
    )
    for operands, way in ways:
        element, limit = test.state_element(operands[0]), test.literal(operands[1])
        if limit is None:
            passed = test.state_element(operands[1])
            if passed is not None and step.element_unchanged(passed):
                limit = _start_of(start, passed, named)
        first = _start_of(start, element, named)
        change = step.increment(element)
        if first is not None and limit is not None and change:
            trips = first_failure(first, change, way, limit)
            return None if trips is None else _bounded(trips, loop)
    return None


def _bounded(trips: int, loop: Instruction) -> int:
    if trips > MOST_TRIPS:
        raise ReadError(f"loop {loop.name!r} has {str(trips)[:30]} trips; that many never end")
    return trips


def _initial(loop: Instruction, named: Mapping[str, Instruction]) -> tuple[str, ...]:
    state = named.get(loop.operands[0]) if loop.operands else None
    return state.operands if state is not None and state.opcode == "tuple" else ()


def _start_of(
    start: list[Instruction | None], element: int | None, named: Mapping[str, Instruction]
) -> int | None:
    if element is None or element >= len(start):
        return None
    return constant_integer(_resolved(start[element], named))


def _resolved(
    instruction: Instruction | None, named: Mapping[str, Instruction]
) -> Instruction | None:
    """Follow copies and renamings to what they are of."""
    while instruction is not None and instruction.opcode in _ALIASES:
        instruction = named.get(instruction.operands[0])
    return instruction


def constant_integer(instruction: Instruction | None) -> int | None:
    """Return the number of a constant that is one whole number, else None."""
    if instruction is None or instruction.opcode != "constant":
        return None
    if instruction.shape.dims or not instruction.operands:
        return None
    literal = instruction.operands[0]
    return int(literal) if re.fullmatch(r"-?\d+", literal) else None


class _Scalars:
    """Scalars of a loop's condition or body in terms of the loop state."""

    def __init__(self, computation: Computation) -> None:
        self.computation = computation
        self.named = computation.by_name

    def _resolve(self, name: str) -> Instruction | None:
        return _resolved(self.named.get(name), self.named)

    def literal(self, name: str) -> int | None:
        return constant_integer(self._resolve(name))

    def state_element(self, name: str) -> int | None:
        """Index of the state element called ``name``, or None."""
        instruction = self._resolve(name)
        if instruction is None or instruction.opcode != "get-tuple-element":
            return None
        tuple_ = self.named.get(instruction.operands[0])
        if tuple_ is None or tuple_.opcode != "parameter":
            return None
        return instruction.numbers("index")[0]

    def _next(self, element: int | None) -> str | None:
        root = self.computation.root
        if element is None or root.opcode != "tuple" or element >= len(root.operands):
            return None
        return root.operands[element]

    def element_unchanged(self, element: int) -> bool:
        name = self._next(element)
        return name is not None and self.state_element(name) == element

    def increment(self, element: int | None) -> int | None:
        """The constant that the body adds to state element ``element``, or None."""
        name = self._next(element)
        change = None if name is None else self._resolve(name)
        if change is None or change.opcode not in ("add", "subtract"):
            return None
        left, right = change.operands
        if self.state_element(left) == element:
            amount = self.literal(right)
            return -amount if amount is not None and change.opcode == "subtract" else amount
        if self.state_element(right) == element and change.opcode == "add":
            return self.literal(left)
        return None


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
LARGEST_NUMBER = 1 << 31
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
    return number if number is not None and abs(number) < LARGEST_NUMBER else None


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
