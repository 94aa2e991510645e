"""Sizes written as expressions of other sizes, such as ``s0 + 1`` or ``Max(1, 2*batch)``.

Exporters name a dimension so where its size follows from those of others.
"""

from __future__ import annotations

import ast
import functools
import math
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

LONGEST_TEXT = 1000
LARGEST_POWER = 16
_WRITTEN_OUT = re.compile(r"\s[-+/]\s|[*(]")
"""An operator as programs write it between sizes."""


def _power(base: Any, exponent: Any) -> Any:
    """A power that takes no time: sizes are squares and cubes."""
    if not 0 <= exponent <= LARGEST_POWER:
        raise ValueError(f"power {exponent} of a size")
    return base**exponent


_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "abs": abs,
    "ceil": math.ceil,
    "ceiling": math.ceil,
    "CeilToInt": math.ceil,
    "floor": math.floor,
    "FloorDiv": operator.floordiv,
    "floordiv": operator.floordiv,
    "FloorToInt": math.floor,
    "int": math.floor,
    "IntTrueDiv": operator.truediv,
    "max": max,
    "Max": max,
    "min": min,
    "mod": operator.mod,
    "Min": min,
    "Mod": operator.mod,
    "PythonMod": operator.mod,
    "ToFloat": float,
    "TruncToInt": math.trunc,
}
"""Functions that PyTorch, JAX and ONNX's own inference write."""


def names_of(text: str) -> frozenset[str]:
    """Return the names in an expression; empty where ``text`` is none that is understood."""
    tree = _parsed(text)
    if tree is None:
        return frozenset()
    found = (n.id for n in ast.walk(tree) if isinstance(n, ast.Name))
    return frozenset(found).difference(_FUNCTIONS)


def size_of(text: str, sizes: Mapping[str, int]) -> int | None:
    """Return the value of an expression; None: not understood, or not known as a whole number."""
    tree = _parsed(text)
    if tree is None:
        return None
    try:
        value = _value(tree, sizes)
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return None
    return int(value) if value == int(value) else None


def is_made_of_others(text: str) -> bool:
    """Return whether a size is surely an expression: ``s0 + 1``, and not a name as ``seq-len``."""
    return bool(names_of(text)) and _WRITTEN_OUT.search(text) is not None


def solved(text: str, size: int, sizes: Mapping[str, int]) -> tuple[str, int] | None:
    """Return the one unknown name in an expression and its value where the whole is ``size``; None:
    several are unknown, or no whole number gives it.

    An expression of the first degree is solved; ``n // 2`` is none.
    """
    unknown = [name for name in names_of(text) if name not in sizes]
    if len(unknown) != 1:
        return None
    (name,) = unknown
    at = [size_of(text, {**sizes, name: n}) for n in (1, 2)]
    if at[0] is None or at[1] is None or at[0] == at[1]:
        return None
    value, rest = divmod(size - at[0], at[1] - at[0])
    fits = not rest and size_of(text, {**sizes, name: value + 1}) == size
    return (name, value + 1) if fits else None


@functools.lru_cache(4096)
def _parsed(text: str) -> ast.expr | None:
    if len(text) > LONGEST_TEXT:
        return None
    try:
        tree = ast.parse(text.strip().replace("^", "**"), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    return tree if all(map(_understood, ast.walk(tree))) else None


def _understood(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value):
            return isinstance(value, int | float)
        case ast.Call(ast.Name(name), _, []):
            return name in _FUNCTIONS
        case ast.BinOp(op=op):
            return type(op) in _OPERATORS
        case ast.UnaryOp(op=op):
            return isinstance(op, ast.USub)
        case ast.Name() | ast.Load() | ast.operator() | ast.unaryop():
            return True
    return False


def _value(node: ast.expr, sizes: Mapping[str, int]) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.Name(name):
            return sizes[name]
        case ast.BinOp(left, op, right):
            return _OPERATORS[type(op)](_value(left, sizes), _value(right, sizes))
        case ast.UnaryOp(_, operand):
            return -_value(operand, sizes)
        case ast.Call(ast.Name(name), arguments):
            return _FUNCTIONS[name](*(_value(a, sizes) for a in arguments))
    raise ValueError(f"{ast.dump(node)} is not understood")
