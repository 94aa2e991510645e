"""Symbolic sizes as PyTorch writes them (SymPy's ``srepr``), as plain expressions."""

from __future__ import annotations

import ast
import functools
from typing import Any

from go_rl.graphs.readers.arithmetic.size_expression import LONGEST_TEXT

Size = int | str
"""A size, or an expression of symbols such as ``2*s77 + 1``."""
_INFIX = {"Add": " + ", "Mul": "*", "Pow": "**", "PowByNatural": "**", "Rational": "/"}
_FUNCTIONS = {
    "CleanDiv": "FloorDiv",
    "FloatTrueDiv": "IntTrueDiv",
    "RoundToInt": "floor",
    "TruncToFloat": "TruncToInt",
}
"""Functions that are written by another name in `readers.arithmetic.size_expression`."""
_UNNAMED = ("Integer", "Float", "Identity")


def plain(text: str) -> Size:
    """Return an expression without SymPy's classes; a number where it is constant; text that is not
    understood stays as it is."""
    if len(text) > 8 * LONGEST_TEXT:
        return text
    return _plain(text)


@functools.lru_cache(4096)
def _plain(text: str) -> Size:
    try:
        written = _written(ast.parse(text.strip(), mode="eval").body)
        return int(written) if written.lstrip("-").isdecimal() else written
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return text


def _written(node: ast.expr) -> str:
    match node:
        case ast.Constant(str(name)) if name.isidentifier():
            return name
        case ast.Constant(int() | float() as number):
            return str(number)
        case ast.UnaryOp(ast.USub(), operand):
            return f"-{_written(operand)}"
        case ast.Call(function, arguments):
            return _call(_last_name(function), arguments)
    raise ValueError(f"{ast.dump(node)} is not understood")


def _call(name: str, arguments: list[ast.expr]) -> str:
    if name == "Symbol":  # assumptions such as positive=True follow
        return _written(arguments[0])
    written = [_written(each) for each in arguments]
    if name in _UNNAMED:
        return written[0]
    if name == "CeilDiv":
        return f"-FloorDiv(-({written[0]}), {written[1]})"
    if name == "ModularIndexing":
        return f"Mod(FloorDiv({written[0]}, {written[1]}), {written[2]})"
    if name in _INFIX:
        return f"({_INFIX[name].join(written)})"
    return f"{_FUNCTIONS.get(name, name)}({', '.join(written)})"


def _last_name(node: ast.expr) -> str:
    """Return ``FloorDiv`` of ``torch.utils._sympy.functions.FloorDiv``."""
    match node:
        case ast.Name(name) | ast.Attribute(attr=name):
            return name
    raise ValueError(f"{ast.dump(node)} is not understood")


def hinted_symbol(document: Any) -> tuple[str | None, int | None]:
    """Return the symbol that a size is, and its size in the example inputs; None: it is no symbol
    alone, or the example is not known."""
    expression = document.get("as_expr") if isinstance(document, dict) else None
    text = expression.get("expr_str") if isinstance(expression, dict) else None
    hint = expression.get("hint") if isinstance(expression, dict) else None
    name = plain(text) if isinstance(text, str) else None
    number = hint.get("as_int") if isinstance(hint, dict) else None
    symbol = name if isinstance(name, str) and name.isidentifier() else None
    return symbol, number if isinstance(number, int) else None
