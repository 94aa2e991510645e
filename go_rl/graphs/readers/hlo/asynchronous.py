"""Asynchronous HLO as what it waits for: ``X-start`` is X, ``X-update`` and ``X-done`` rename it.

XLA prints ``async-start(%x), calls=%wrapped`` or, where the wrapped computation is one instruction,
that instruction's opcode with ``-start`` behind it. A start yields its operands, its result and
counters; only the result is of use to a graph, and it is there when the operation is.
"""

from __future__ import annotations

from collections.abc import Mapping

from go_rl.core import ReadError
from go_rl.graphs.readers.hlo.shape import Shape
from go_rl.graphs.tables import names

DONE = "async-done"
_NOT_ASYNCHRONOUS = names("send-done recv-done")
"""Ends of ``send`` and ``recv``, which are instructions of their own."""
_RESULT = {"copy": 0}
"""Place of the result in what a start yields; 1 for the others, after the operands."""


def synchronous(
    opcode: str, shape: Shape, attributes: dict[str, str]
) -> tuple[str, Shape, dict[str, str]]:
    """Return opcode, shape and attributes of an instruction without its being asynchronous."""
    name, _, end = opcode.rpartition("-")
    if not name or opcode in _NOT_ASYNCHRONOUS or end not in ("start", "update", "done"):
        return opcode, shape, attributes
    if end != "start":
        return DONE, shape, _without_calls(attributes)
    # An all-reduce-start yields its result alone, of whatever shape.
    result = shape if name == "all-reduce" else _result(opcode, shape, _RESULT.get(name, 1))
    if name == "async":
        return "call", result, {**attributes, "to_apply": attributes.get("calls", "")}
    return name, result, attributes


def _result(opcode: str, shape: Shape, place: int) -> Shape:
    if not shape.is_tuple or len(shape.parts) <= place:
        raise ReadError(f"a {opcode} yields a tuple of its operands, its result and counters")
    return shape.parts[place]


def _without_calls(attributes: Mapping[str, str]) -> dict[str, str]:
    return {key: text for key, text in attributes.items() if key not in ("calls", "to_apply")}
