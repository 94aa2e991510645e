"""Views of ONNX: results that are their first operand by another shape or order of axes.

A runtime renames the operand of an `Identity`, a `Reshape` and the like. A transposition is a
change of layout, which costs nothing in XLA's count either; what must copy is a `Reshape` of a
tensor whose axes do not lie in memory in that order.
"""

from __future__ import annotations

from dataclasses import replace

from go_rl.graphs.readers.arithmetic.view_strides import Strides, row_strides, view_strides
from go_rl.graphs.readers.onnx.call import Call
from go_rl.graphs.readers.onnx.values.value import OnnxValue
from go_rl.graphs.tables import names

TRANSPOSITION = "Transpose"
"""View that stays a node: products of a runtime may need a copy of what it returns."""
_RESHAPES = names("Flatten Reshape Squeeze Unsqueeze")
_SAME = "Identity"
_DROPOUT = "Dropout"


def as_view(call: Call, base: OnnxValue | None) -> OnnxValue | None:
    """Return the result of an operator as its first operand; None: it computes or copies.

    Args:
        call: the operator.
        base: its first operand; None: it has none.
    """
    result = call.outputs[0] if call.outputs else None
    if base is None or result is None:
        return None
    viewed = replace(base, tensor=result, array=None)
    if call.op == _SAME or (call.op == _DROPOUT and _is_idle(call)):
        return viewed
    if call.op == TRANSPOSITION:
        strides = _transposed(call, base)
        return None if strides is None else replace(viewed, strides=strides)
    if call.op not in _RESHAPES:
        return None
    if base.strides is None:
        return viewed
    strides = view_strides(base.tensor.shape, base.strides, result.shape)
    return None if strides is None else replace(viewed, strides=strides)


def _transposed(call: Call, base: OnnxValue) -> Strides:
    rank = len(base.tensor.shape)
    order = call.get("perm", None) or range(rank - 1, -1, -1)
    if sorted(order) != list(range(rank)):  # of a guessed shape
        return None
    strides = base.strides or row_strides(base.tensor.shape)
    return tuple(strides[axis] for axis in order)


def _is_idle(call: Call) -> bool:
    """Whether a `Dropout` drops nothing, and no mask is asked for."""
    if any(call.outputs[1:]):
        return False
    if call.version < 7:
        return bool(call.get("is_test", 0))
    array = call.arrays[2] if call.has(2) and len(call.arrays) > 2 else None
    return not call.has(2) or (array is not None and not array.any())
