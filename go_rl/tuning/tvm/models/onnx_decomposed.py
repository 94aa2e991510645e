"""Operators of ONNX that TVM lacks and ONNX does not define by others, written in others."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import onnx
from onnx import TensorProto, helper

from go_rl.graphs.readers.onnx.structure import DEFAULT_DOMAINS

Parts = list[onnx.NodeProto]
BROADCASTING = 7
"""Opset from which ``Add`` broadcasts without attributes."""
REWRITTEN_OPSET = 13
"""Opset that operators are rewritten in, at least."""


def rewritten(
    model: onnx.ModelProto, opset: int, rule: Callable[[onnx.NodeProto, int], Parts | None]
) -> onnx.ModelProto:
    """Return a model whose nodes are what a rule makes of them, but for nodes within others.

    Args:
        model: it is changed; of this opset or later, else it stays as it is.
        opset: that the rule writes.
        rule: of a node and its number; None: the node stays.
    """
    known = [each.version for each in model.opset_import if each.domain in DEFAULT_DOMAINS]
    if max(known, default=1) < opset:
        return model
    nodes: Parts = []
    for number, node in enumerate(model.graph.node):
        made = rule(node, number)
        nodes += [node] if made is None else made
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def decomposed(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model, which is changed, without the operators of the table `RULES`."""

    def parts(node: onnx.NodeProto, number: int) -> Parts | None:
        rule = RULES.get(node.op_type)
        return None if rule is None else rule(node, f"{node.op_type}.{number}")

    return rewritten(model, REWRITTEN_OPSET, parts)


def with_additions(model: onnx.ModelProto) -> onnx.ModelProto:
    """Return a model, which is changed, whose sums of several tensors are additions of two, which
    TVM fuses with what is before them; its own translation stacks the tensors."""

    def additions(node: onnx.NodeProto, number: int) -> Parts | None:
        if node.op_type != "Sum" or len(node.input) < 2:
            return None
        nodes, total, last = Parts(), node.input[0], len(node.input) - 1
        for place, each in enumerate(node.input[1:], 1):
            made = node.output[0] if place == last else f"Sum.{number}/{place}"
            nodes.append(helper.make_node("Add", [total, each], [made], node.name))
            total = made
        return nodes

    return rewritten(model, BROADCASTING, additions)


def _normalization(node: onnx.NodeProto, name: str) -> Parts:
    """LpNormalization: over the norm along an axis; 0 where that is 0."""
    given = {each.name: each.i for each in node.attribute}
    norm = "ReduceL1" if given.get("p", 2) == 1 else "ReduceL2"
    axis = helper.make_tensor("axis", TensorProto.INT64, [1], [given.get("axis", -1)])
    zero = helper.make_tensor("zero", TensorProto.FLOAT, [], [0.0])
    (x,), (y,) = node.input, node.output
    # axes became an operand in opset 18, so the norm is written out.
    squares = (
        helper.make_node("Abs", [x], [f"{name}/size"])
        if norm == "ReduceL1"
        else helper.make_node("Mul", [x, x], [f"{name}/size"])
    )
    nodes = [
        helper.make_node("Constant", [], [f"{name}/axis"], value=axis),
        helper.make_node("Constant", [], [f"{name}/zero"], value=zero),
        squares,
        helper.make_node("ReduceSum", [f"{name}/size", f"{name}/axis"], [f"{name}/sum"]),
    ]
    if norm == "ReduceL2":
        nodes.append(helper.make_node("Sqrt", [f"{name}/sum"], [f"{name}/norm"]))
    length = nodes[-1].output[0]
    return [
        *nodes,
        helper.make_node("Equal", [length, f"{name}/zero"], [f"{name}/empty"]),
        helper.make_node("Div", [x, length], [f"{name}/unit"]),
        helper.make_node("Where", [f"{name}/empty", f"{name}/zero", f"{name}/unit"], [y]),
    ]


def _quantised(node: onnx.NodeProto, name: str) -> Parts:
    """QLinearConv and QLinearMatMul: in float32 between a step out of whole numbers and one back;
    sums are rounded to 24 bits."""
    x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero = node.input[:8]
    inside, operands, nodes = {"QLinearConv": "Conv", "QLinearMatMul": "MatMul"}, [], []
    kernel: dict[str, Any] = {"axis": 0} if node.op_type == "QLinearConv" else {}
    for place, (given, more) in enumerate((((x, x_scale, x_zero), {}),
                                           ((w, w_scale, w_zero), kernel))):  # fmt: skip
        operands.append(f"{name}/{place}")
        nodes.append(helper.make_node("DequantizeLinear", given, [operands[-1]], **more))
    if len(node.input) > 8 and node.input[8]:
        scale = f"{name}/bias_scale"
        nodes += [
            helper.make_node("Mul", [x_scale, w_scale], [scale]),
            helper.make_node("Cast", [node.input[8]], [f"{name}/bias"], to=TensorProto.FLOAT),
            helper.make_node("Mul", [f"{name}/bias", scale], [f"{name}/2"]),
        ]
        operands.append(f"{name}/2")
    made = helper.make_node(inside[node.op_type], operands, [f"{name}/made"])
    made.attribute.extend(node.attribute)
    back = helper.make_node("QuantizeLinear", [made.output[0], y_scale, y_zero], node.output)
    return [*nodes, made, back]


def _whole_convolution(node: onnx.NodeProto, name: str) -> Parts:
    """ConvInteger: exact in float32 while sums stay below 2^24."""
    nodes: Parts = []
    for place in range(2):
        operand = f"{name}/{place}"
        nodes.append(helper.make_node("Cast", [node.input[place]], [operand],
                                      to=TensorProto.FLOAT))  # fmt: skip
        if len(node.input) > place + 2 and node.input[place + 2]:
            zero = f"{operand}/zero"
            nodes += [
                helper.make_node("Cast", [node.input[place + 2]], [zero], to=TensorProto.FLOAT),
                helper.make_node("Sub", [operand, zero], [f"{operand}/shifted"]),
            ]
    ends = [next(n.output[0] for n in reversed(nodes) if n.output[0].startswith(f"{name}/{i}"))
            for i in range(2)]  # fmt: skip
    made = helper.make_node("Conv", ends, [f"{name}/made"])
    made.attribute.extend(node.attribute)
    return [*nodes, made, helper.make_node("Cast", [made.output[0]], node.output,
                                           to=TensorProto.INT32)]  # fmt: skip


RULES: Mapping[str, Callable[[onnx.NodeProto, str], Parts]] = MappingProxyType({
    "ConvInteger": _whole_convolution, "LpNormalization": _normalization,
    "QLinearConv": _quantised, "QLinearMatMul": _quantised,
})  # fmt: skip
"""Rules by operator."""
