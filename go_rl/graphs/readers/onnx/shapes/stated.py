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


def _same(node: onnx.NodeProto, operands: list[Shape], result: Shape) -> str | None:
    if operands[0] == result:
        return None
    return f"its operand is {list(operands[0])}; the file states {list(result)} as its result"


def _convolution(node: onnx.NodeProto, operands: list[Shape], result: Shape) -> str | None:
    data, weight = operands[:2]
    given = {a.name: a for a in node.attribute}
    groups = given["group"].i if "group" in given else 1
    if len(data) != len(weight) or len(data) < 3:
        return f"its data {list(data)} and weight {list(weight)} need as many dimensions, 3 or more"
    if data[1] != weight[1] * groups:
        groups_told = f" in {groups} groups" if groups != 1 else ""
        return (
            f"its data {list(data)} have {data[1]} channels, "
            f"its weight {list(weight)} reads {weight[1] * groups}{groups_told}"
        )
    if result[:2] != (data[0], weight[0]):
        made = [data[0], weight[0]]
        return f"its result begins with {made}; the file states {list(result)}"
    around = given["pads"].ints if "pads" in given else ()
    apart = given["dilations"].ints if "dilations" in given else (1 for _ in data[2:])
    free = "auto_pad" in given and given["auto_pad"].s.startswith(b"SAME")
    reach = tuple((k - 1) * d + 1 for k, d in zip(weight[2:], apart, strict=False))
    axes = len(reach)
    padded = tuple(n + sum(around[i::axes]) for i, n in enumerate(data[2:]))
    if free or all(k <= n for k, n in zip(reach, padded, strict=False)):
        return None
    return f"its window reaches {list(reach)} of {list(padded)} elements"


def _transposed(node: onnx.NodeProto, operands: list[Shape], result: Shape) -> str | None:
    (shape,) = operands
    order = next((list(a.ints) for a in node.attribute if a.name == "perm"), None)
    if order is None:
        order = list(range(len(shape)))[::-1]
    if sorted(order) != list(range(len(shape))):
        return f"perm {order} does not name each dimension of {list(shape)} once"
    made = tuple(shape[i] for i in order)
    return None if made == result else f"perm {order} makes {list(made)} of {list(shape)}"


def _joined(node: onnx.NodeProto, operands: list[Shape], result: Shape) -> str | None:
    rank = len(operands[0])
    axis = next((a.i for a in node.attribute if a.name == "axis"), 1)
    shapes = " and ".join(str(list(shape)) for shape in operands[:4])
    if not -rank <= axis < rank:
        return f"axis {axis} is none of its operands {shapes}"
    axis %= rank
    made = (*operands[0][:axis], sum(shape[axis] for shape in operands), *operands[0][axis + 1 :])
    if any(
        len(s) != rank or s[:axis] + s[axis + 1 :] != made[:axis] + made[axis + 1 :]
        for s in operands
    ):
        return f"its operands {shapes} differ along another axis than {axis}"
    return (
        None
        if made == result
        else f"its operands make {list(made)}; the file states {list(result)}"
    )


def _einsum(node: onnx.NodeProto, operands: list[Shape], result: Shape) -> str | None:
    text = next((a.s.decode(errors="replace") for a in node.attribute if a.name == "equation"), "")
    terms = text.replace(" ", "").partition("->")[0].split(",")
    if "." in text or len(terms) != len(operands):  # an ellipsis stands for any dimensions
        return None
    sizes: dict[str, int] = {}
    for term, shape in zip(terms, operands, strict=True):
        if len(term) != len(shape):
            return f"{term!r} of {text!r} does not name the dimensions of {list(shape)}"
        for letter, size in zip(term, shape, strict=True):
            if 1 not in (size, sizes.setdefault(letter, size)) and sizes[letter] != size:
                return f"{letter!r} of {text!r} is {sizes[letter]} and {size}"
    return None


_RULES: dict[str, _Rule] = by_name(
    {
        "Conv": _convolution,
        "Transpose": _transposed,
        "Concat": _joined,
        "Einsum": _einsum,
        "Abs Ceil Elu Erf Exp Floor Gelu HardSigmoid HardSwish LeakyRelu Log LogSoftmax Neg Not"
        " Reciprocal Relu Round Selu Sigmoid Sign Softmax Softplus Softsign Sqrt Tanh": _same,
        "Reshape": _reshaped,
        "Add And Div Equal Greater GreaterOrEqual Less LessOrEqual Max Min Mul Or Pow Sub Sum Where"
        " Xor": _broadcast,
        "Gemm MatMul MatMulInteger": _product,
    }
)
