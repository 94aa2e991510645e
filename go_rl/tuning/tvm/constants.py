"""Constant folding in Relax by NumPy.

TVM's own pass compiles each operator on constants for each shape: 45 s for a ResNet-50, whose
weights are transposed once and whose batch normalisations are folded into them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from go_rl.costs.programs.nests.tvm_arithmetic import CONSTANTS, kind_of
from go_rl.costs.timing.tvm_calls import import_tvm

CONSTANT = "GenericConst"
"""Name of TVM's type of arrays that are known."""
_BINARY: Mapping[str, Callable[..., Any]] = MappingProxyType({
    "add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.divide,
    "power": np.power, "maximum": np.maximum, "minimum": np.minimum,
})  # fmt: skip
_UNARY: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"sqrt": np.sqrt, "negative": np.negative, "abs": np.abs, "exp": np.exp}
)


def fold_constants(module: Any) -> Any:
    """Return a module of Relax whose function ``main`` computes nothing from constants alone that
    is in the table of this file."""
    from tvm.relax.expr_functor import PyExprMutator, mutator  # pyright: ignore[reportMissingImports]

    tvm = import_tvm()
    relax = tvm.relax

    @mutator
    class Folder(PyExprMutator):
        """Replaces calls whose operands are constants."""

        def visit_call_(self, call: Any) -> Any:
            call = self.visit_expr_post_order(call)
            name = getattr(call.op, "name", "")
            if not name.startswith("relax."):
                return call
            operands = [self._known(each) for each in call.args]
            folded = _folded(name.removeprefix("relax."), operands, call)
            return call if folded is None else relax.const(folded)

        def _known(self, expression: Any) -> Any:
            """The array that an operand is, or the operand itself where it is no array."""
            if isinstance(expression, relax.Var):
                bound = self.lookup_binding(expression)
                expression = expression if bound is None else bound
            if kind_of(expression) == CONSTANT:
                return expression.value.numpy()
            if kind_of(expression) in CONSTANTS:
                return np.asarray(expression.value)
            return expression

    folder = Folder(module)
    for variable, function in list(module.functions.items()):
        if isinstance(function, relax.Function):
            made: Any = folder.visit_expr(function)
            folder.builder_.update_func(variable, made)
    return folder.builder_.get()


def _folded(name: str, operands: list[Any], call: Any) -> np.ndarray | None:
    """The result of an operator; None: an operand is not constant, or it is not in the table."""
    if not operands or not isinstance(operands[0], np.ndarray):
        return None
    first, attributes = operands[0], call.attrs
    if name in _UNARY:
        return np.asarray(_UNARY[name](first), first.dtype)
    if name in _BINARY and isinstance(operands[1], np.ndarray):
        return np.asarray(_BINARY[name](first, operands[1]), first.dtype)
    if name == "permute_dims":
        axes = None if attributes.axes is None else tuple(int(axis) for axis in attributes.axes)
        return np.ascontiguousarray(np.transpose(first, axes))
    if name in ("reshape", "expand_dims", "squeeze"):
        shape = shape_of(call)
        return None if shape is None else first.reshape(shape)
    return None


def shape_of(expression: Any) -> tuple[int, ...] | None:
    """Return the shape of a tensor; None: it is not constant, or there is no tensor."""
    try:
        return tuple(int(size) for size in expression.ty.shape)
    except (AttributeError, TypeError, ValueError):
        return None
