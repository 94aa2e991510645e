"""Result types of operators that ONNX infers none for: the ones ONNX Runtime's optimiser makes.

Source: the operator documentation of ONNX Runtime (``docs/ContribOperators.md``).
"""

from __future__ import annotations

from collections.abc import Mapping

import onnx

from go_rl.graphs.readers.onnx.shapes.attention import ATTENTION_SHAPES
from go_rl.graphs.readers.onnx.shapes.contrib import CONTRIB_SHAPES
from go_rl.graphs.readers.onnx.shapes.rule import types_by
from go_rl.graphs.readers.onnx.shapes.standins import NCHWC, infer_as_stand_in
from go_rl.graphs.readers.onnx.values.types import static_shape
from go_rl.graphs.tables import names

_RULES = CONTRIB_SHAPES | ATTENTION_SHAPES
DOMAINS = ("", "ai.onnx", "com.microsoft", NCHWC)
SAME_AS_FIRST = names(
    "BiasAdd BiasGelu BiasSoftmax FastGelu Gelu GroupNorm GroupNormalization LayerNormalization"
    " MeanVarianceNormalization QLinearLeakyRelu QLinearSigmoid QLinearSoftmax QuickGelu"
    " RMSNormalization RotaryEmbedding SimplifiedLayerNormalization SkipLayerNormalization"
    " SkipSimplifiedLayerNormalization"
)
"""Operators whose results all have the type of the first input."""


def infer_without_schema(
    node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]
) -> dict[str, onnx.TypeProto]:
    """Return the result types that follow from the input types; empty when not known."""
    first = types[node.input[0]] if node.input and node.input[0] else None
    if first is None or node.domain not in DOMAINS:
        return {}
    if found := as_first_operand(node, types):
        return found
    found = infer_as_stand_in(node, types)
    rule = _RULES.get(node.op_type)
    if found or rule is None or static_shape(first) is None:
        return found
    return types_by(rule, node, types)


def as_first_operand(
    node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]
) -> dict[str, onnx.TypeProto]:
    """Return the type of the first operand for every result, where the operator keeps it."""
    if node.op_type not in SAME_AS_FIRST or not node.input or not node.input[0]:
        return {}
    return {o: types[node.input[0]] for o in node.output if o}
