"""Checks of shapes that a file states: ONNX's inference does not see them, or takes them over."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import onnx

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.onnx.structure import DEFAULT_DOMAINS, describe
from go_rl.graphs.tables import by_name

Shape = tuple[int, ...]
_Rule = Callable[[onnx.NodeProto, list[Shape], Shape], str | None]


def check_stated(node: onnx.NodeProto, operands: list[Shape | None], result: Shape | None) -> None:
    """Raise a `ReadError` where the operands of a node do not fit one another or its result.

    Args:
        node: of any operator; most have no rule and pass.
        operands: their shapes, None where one is left out or not known.
        result: shape of the first result.
    """
    rule = _RULES.get(node.op_type) if node.domain in DEFAULT_DOMAINS else None
    known = [shape for shape in operands if shape is not None]
    if rule is None or result is None or len(known) < len(operands):
        return
    if wrong := rule(node, known, result):
        raise ReadError(f"{describe(node)}: {wrong}")


def _reshaped(node: onnx.NodeProto, operands: list[Shape], result: Shape) -> str | None:
    before, after = prod(operands[0]), prod(result)
    if before == after:
        return None
    return f"the {before:,} elements of {list(operands[0])} do not fit {list(result)}"


def _broadcast(node: onnx.NodeProto, operands: list[Shape], result: Shape) -> str | None:
    if any(a.name in ("axis", "broadcast") for a in node.attribute):  # before opset 7
        return None
    made = _joint(operands)
    if made == result:
        return None
    shapes = " and ".join(str(list(shape)) for shape in operands)
    told = "do not fit one another" if made is None else f"make {list(made)}"
    return f"its operands {shapes} {told}; the file states {list(result)} as its result"


def _joint(shapes: list[Shape]) -> Shape | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def _product(node: onnx.NodeProto, operands: list[Shape], result: Shape) -> str | None:
    left, right = (list(shape) for shape in operands[:2])
    set_up = {a.name: a.i for a in node.attribute}
    if not left or not right:
        return "an operand has no dimensions"
    of_left = left[-2] if set_up.get("transA") and len(left) > 1 else left[-1]
    of_right = right[-1] if set_up.get("transB") or len(right) == 1 else right[-2]
    if of_left == of_right:
        return None
    return f"its operands {left} and {right} are summed over {of_left} and {of_right}"


_RULES: dict[str, _Rule] = by_name(
    {
        "Reshape": _reshaped,
        "Add And Div Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mul Or Pow Sub Sum Where"
        " Xor": _broadcast,
        "Gemm MatMul MatMulInteger": _product,
    }
)
