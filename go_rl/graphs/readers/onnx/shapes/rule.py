"""A rule that gives the result types of an operator, and its application to a node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import onnx

from go_rl.graphs.readers.onnx.values import element_type, static_shape, tensor_type

Shape = tuple[int, ...]
Result = tuple[int, Shape]
"""ONNX element type and shape."""
Attributes = Mapping[str, Any]
Inputs = Sequence[Any]
"""A `Result` by position; None where an operand is left out or of unknown shape."""
Rule = Callable[[Attributes, Inputs], Sequence[Result | None]]


def given(inputs: Inputs, position: int) -> Result | None:
    """Return operand ``position``; None when it is left out."""
    return inputs[position] if position < len(inputs) else None


def reshaped(shape_of: Callable[[Attributes, Shape], Shape]) -> Rule:
    """One result of the first operand's type; its shape follows from attributes and operand."""
    return lambda attributes, inputs: [(inputs[0][0], shape_of(attributes, inputs[0][1]))]


def retyped(element: int) -> Rule:
    """One result of the first operand's shape."""
    return lambda attributes, inputs: [(element, inputs[0][1])]


def types_by(
    rule: Rule, node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]
) -> dict[str, onnx.TypeProto]:
    """Return the result types of a node by a rule; empty if its operands do not fit the rule."""
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    try:
        results = rule(attributes, [_typed(types[i]) if i else None for i in node.input])
    except (ArithmeticError, KeyError, IndexError, TypeError, ValueError):
        return {}
    pairs = zip(node.output, results, strict=False)
    return {name: tensor_type(*result) for name, result in pairs if name and result}


def _typed(kind: onnx.TypeProto) -> Result | None:
    shape = static_shape(kind)
    return None if shape is None else (element_type(kind), shape)
