"""Expressions of TVM: the operations in them, the buffers that they read, and indices."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from go_rl.costs.programs.nests.index import Index, IndexOperation, LoopVariable, NestError
from go_rl.costs.programs.nests.nest import OPERATION_NAMES

LOAD, CALL, CAST, CONSTANTS = "TensorLoad", "Call", "Cast", ("IntImm", "FloatImm")
"""Names of TVM's types of nodes."""
BINARY: Mapping[str, str] = MappingProxyType({
    "Add": "add_sub", "Sub": "add_sub", "Mul": "mul", "Div": "div_mod", "Mod": "div_mod",
    "FloorDiv": "div_mod", "FloorMod": "div_mod", "Max": "compare", "Min": "compare",
    "EQ": "compare", "NE": "compare", "LT": "compare", "LE": "compare", "GT": "compare",
    "GE": "compare",
})  # fmt: skip
"""Operation class of each node of two operands, without its prefix ``float_`` or ``int_``."""
BITWISE = ("LShift", "RShift", "BitAnd", "BitOr", "BitXor")
"""Nodes of two operands that TVM's features do not count."""
LOGICAL: Mapping[str, str] = MappingProxyType(
    {"And": "bool", "Or": "bool", "Not": "bool", "Select": "select"}
)
INDEX_OPERATIONS: Mapping[str, str] = MappingProxyType({
    "Add": "+", "Sub": "-", "Mul": "*", "FloorDiv": "//", "FloorMod": "%", "Min": "min",
    "Max": "max",
})  # fmt: skip
PURE_CALLS = (0, 1)
"""TVM's effect kinds of functions that only compute: annotations and pure ones."""
CHILDREN: Mapping[str, tuple[str, ...]] = MappingProxyType({
    **dict.fromkeys((*BINARY, *BITWISE, "And", "Or"), ("a", "b")), "Not": ("a",),
    CAST: ("value",), "BitNot": ("a",),
    "Select": ("condition", "true_value", "false_value"), "Ramp": ("base", "stride"),
    "Broadcast": ("value",), "Var": (), **dict.fromkeys((*CONSTANTS, "StringImm"), ()),
})  # fmt: skip


def kind_of(node: Any) -> str:
    """Return the name of a node's type."""
    return type(node).__name__


def is_float(node: Any) -> bool:
    """Return whether an expression is of a floating-point type."""
    return "float" in str(node.ty)


def operations_of(value: Any) -> tuple[int, ...]:
    """Return how often each kind of operation occurs in an expression, those on the indices of
    the buffers that it reads included."""
    found: Counter[str] = Counter()
    for node in nodes_in(value):
        kind = kind_of(node)
        if kind in BINARY:
            found[f"{_number(node)}_{BINARY[kind]}"] += 1
        elif kind in LOGICAL:
            found[LOGICAL[kind]] += 1
        elif kind == CALL:
            pure = node.op.get_attr("TCallEffectKind") in PURE_CALLS
            found[f"{_number(node)}_{'math' if pure else 'other'}"] += 1
    return tuple(found[name] for name in OPERATION_NAMES)


def _number(node: Any) -> str:
    return "float" if is_float(node) else "int"


def nodes_in(value: Any) -> Iterator[Any]:
    """Yield the nodes of an expression, operands before what uses them.

    Raises:
        NestError: it holds a node of another kind.
    """
    kind = kind_of(value)
    if kind == LOAD:
        children = list(value.indices)
    elif kind == CALL:
        children = list(value.args)
    elif kind in CHILDREN:
        children = [getattr(value, name) for name in CHILDREN[kind]]
    else:
        raise NestError(f"an expression of TVM with a {kind}, which go_rl does not know: {value}")
    for child in children:
        yield from nodes_in(child)
    yield value


def index_of(expression: Any, loops: Mapping[int, int]) -> Index:
    """Return an index expression of TVM.

    Args:
        expression: whole numbers, variables of loops and operations on them.
        loops: number of each loop, by the hash of its variable.

    Raises:
        NestError: it holds anything else.
    """
    kind = kind_of(expression)
    if kind == "IntImm":
        return int(expression.value)
    if kind == CAST:
        return index_of(expression.value, loops)
    if kind == "Var" and hash(expression) in loops:
        return LoopVariable(loops[hash(expression)])
    if kind in INDEX_OPERATIONS:
        left, right = index_of(expression.a, loops), index_of(expression.b, loops)
        return IndexOperation(INDEX_OPERATIONS[kind], left, right)
    raise NestError(
        f"index {expression}: only loops, whole numbers and + - * // % min max are known"
    )
