"""Result types of operators that ONNX infers none for: the ones ONNX Runtime's optimiser makes.

Source: the operator documentation of ONNX Runtime (``docs/ContribOperators.md``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import onnx

from go_rl.graphs.readers.onnx.shapes.attention import ATTENTION_SHAPES
from go_rl.graphs.readers.onnx.shapes.contrib import CONTRIB_SHAPES
from go_rl.graphs.readers.onnx.shapes.rule import types_by
from go_rl.graphs.readers.onnx.values import element_type, static_shape, tensor_type
from go_rl.graphs.tables import names

NCHWC = "com.microsoft.nchwc"
OPSET = 19


@dataclass(frozen=True)
class StandIn:
    """The standard operator whose shapes an operator has."""

    op_type: str
    operands: tuple[int, ...] = (0,)
    """Operands of the operator that are those of the standard one; the others play no role."""
    channels_last: bool | None = False
    """None: given by the attribute ``channels_last``."""
    opset: int = OPSET


_CONV = (0, 1, 2)
STAND_INS: dict[str, StandIn] = {
    f"{NCHWC}.AveragePool": StandIn("AveragePool"),
    f"{NCHWC}.Conv": StandIn("Conv", _CONV),
    f"{NCHWC}.GlobalAveragePool": StandIn("GlobalAveragePool"),
    f"{NCHWC}.GlobalMaxPool": StandIn("GlobalMaxPool"),
    f"{NCHWC}.MaxPool": StandIn("MaxPool"),
    "com.microsoft.DynamicQuantizeLSTM": StandIn("LSTM", (0, 1, 2)),
    "com.microsoft.FusedConv": StandIn("Conv", _CONV),
    "com.microsoft.GatherND": StandIn("GatherND", (0, 1)),
    "com.microsoft.GridSample": StandIn("GridSample", (0, 1)),
    "com.microsoft.MaxpoolWithMask": StandIn("MaxPool"),
    "com.microsoft.NhwcConv": StandIn("Conv", _CONV, channels_last=True),
    "com.microsoft.NhwcFusedConv": StandIn("Conv", _CONV, channels_last=True),
    "com.microsoft.NhwcMaxPool": StandIn("MaxPool", channels_last=True),
    "com.microsoft.QLinearAveragePool": StandIn("AveragePool", channels_last=None),
    "com.microsoft.QLinearConv": StandIn("Conv", (0, 3), channels_last=None),
    "com.microsoft.ReduceSumInteger": StandIn("ReduceSum", opset=11),
    "com.microsoft.QLinearReduceMean": StandIn("ReduceMean", opset=13),
}
"""Stand-ins by operator type with its domain."""


def infer_as_stand_in(
    node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]
) -> dict[str, onnx.TypeProto]:
    """Return result types by ONNX's own inference for the stand-in; empty where there is none."""
    found = STAND_INS.get(f"{node.domain}.{node.op_type}")
    if found is None:
        return {}
    last = found.channels_last
    if last is None:
        last = any(a.name == "channels_last" and a.i for a in node.attribute)
    schema = onnx.defs.get_schema(found.op_type, found.opset, "")
    inputs = {
        node.input[i]: _channels_first(types[node.input[i]]) if last and i == 0
        else _as_float(types[node.input[i]])
        for i in found.operands if i < len(node.input) and node.input[i]
    }  # fmt: skip
    standard = onnx.helper.make_node(found.op_type, list(inputs), list(node.output))
    standard.attribute.extend(a for a in node.attribute if a.name in schema.attributes)
    opsets = [onnx.helper.make_opsetid("", found.opset)]
    try:
        inferred = onnx.shape_inference.infer_node_outputs(
            schema, standard, inputs, {}, opset_imports=opsets
        )
    except Exception:  # onnx raises InferenceError, ValueError and RuntimeError here
        return {}
    return {name: _result(node, types, kind, last) for name, kind in inferred.items()}


def _result(
    node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto], kind: onnx.TypeProto, last: bool
) -> onnx.TypeProto:
    """The inferred shape in the node's layout and, sums of integers aside, its number format."""
    shape = static_shape(kind)
    if shape is None:
        return kind
    if last and len(shape) > 2:
        shape = (shape[0], *shape[2:], shape[1])
    element = element_type(types[node.input[0]])
    if node.op_type == "ReduceSumInteger":
        unsigned = element in (onnx.TensorProto.UINT8, onnx.TensorProto.UINT32)
        element = onnx.TensorProto.UINT32 if unsigned else onnx.TensorProto.INT32
    return tensor_type(element, shape)


def _as_float(kind: onnx.TypeProto) -> onnx.TypeProto:
    """Standard operators do not take every number format; shapes do not depend on it."""
    shape = static_shape(kind)
    if shape is None or element_type(kind) in (onnx.TensorProto.INT64, onnx.TensorProto.INT32):
        return kind
    return tensor_type(onnx.TensorProto.FLOAT, shape)


def _channels_first(kind: onnx.TypeProto) -> onnx.TypeProto:
    shape = static_shape(kind)
    if shape is None or len(shape) < 3:
        return _as_float(kind)
    return tensor_type(onnx.TensorProto.FLOAT, (shape[0], shape[-1], *shape[1:-1]))


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
