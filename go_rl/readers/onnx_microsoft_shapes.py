"""Result types of operators that ONNX has no schema for: the ones ONNX Runtime's optimiser makes.

Source: the operator documentation of ONNX Runtime (``docs/ContribOperators.md``).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx

_SAME_AS_FIRST = (
    "BiasAdd BiasGelu BiasSoftmax BiasSplitGelu FastGelu FusedMatMulActivation Gelu GroupNorm"
    " LayerNormalization QLinearAdd QLinearLeakyRelu QLinearMul QLinearSigmoid QLinearSoftmax"
    " QuickGelu RMSNormalization RotaryEmbedding SimplifiedLayerNormalization"
    " SkipLayerNormalization SkipSimplifiedLayerNormalization"
)
SAME_AS_FIRST = frozenset(_SAME_AS_FIRST.split())
"""Operators whose results all have the type of the first input."""


def infer_without_schema(
    node: onnx.NodeProto, types: Mapping[str, onnx.TypeProto]
) -> dict[str, onnx.TypeProto]:
    """Return the result types that follow from the input types; empty when not known."""
    inputs = [types[i] if i else None for i in node.input]
    first = inputs[0] if inputs else None
    if first is None:
        return {}
    if node.op_type in SAME_AS_FIRST:
        return {o: first for o in node.output if o}
    rule = _RULES.get(node.op_type)
    shapes = [_shape(t) if t is not None else None for t in inputs]
    if rule is None or shapes[0] is None:
        return {}
    shape = rule(_attributes(node), shapes)
    if shape is None:
        return {}
    element = first.tensor_type.elem_type
    if node.op_type == "EmbedLayerNormalization" and inputs[2] is not None:
        element = inputs[2].tensor_type.elem_type
    kind = onnx.helper.make_tensor_type_proto(element, shape)
    return {o: kind for o in node.output[:1] if o}


def _shape(kind: onnx.TypeProto) -> tuple[int, ...] | None:
    if not kind.tensor_type.HasField("shape"):
        return None
    return tuple(d.dim_value for d in kind.tensor_type.shape.dim)


def _attributes(node: onnx.NodeProto) -> dict:
    return {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}


def _matmul(attributes: dict, shapes: list) -> tuple[int, ...] | None:
    a, b = (list(shapes[0]), list(shapes[1]))
    if len(a) < 2 or len(b) < 2:
        return None
    if attributes.get("transA"):
        a[-2:] = a[:-3:-1]
    if attributes.get("transB"):
        b[-2:] = b[:-3:-1]
    batch = np.broadcast_shapes(tuple(a[:-2]), tuple(b[:-2]))
    return (*batch, a[-2], b[-1])


def _qlinear_matmul(attributes: dict, shapes: list) -> tuple[int, ...] | None:
    return _matmul(attributes, [shapes[0], shapes[3]])


def _matmul_n_bits(attributes: dict, shapes: list) -> tuple[int, ...] | None:
    return (*shapes[0][:-1], attributes["N"])


def _attention(attributes: dict, shapes: list) -> tuple[int, ...] | None:
    sizes = attributes.get("qkv_hidden_sizes")
    width = sizes[2] if sizes else shapes[1][-1] // 3
    return (*shapes[0][:2], width)


def _multi_head(attributes: dict, shapes: list) -> tuple[int, ...] | None:
    query, value = shapes[0], shapes[2] if len(shapes) > 2 else None
    if len(query) != 3:
        return None
    if value is not None and len(value) == 4:
        return (*query[:2], value[1] * value[3])
    return (*query[:2], value[2] if value is not None else query[2])


def _group_query(attributes: dict, shapes: list) -> tuple[int, ...] | None:
    query = shapes[0]
    if len(shapes) > 1 and shapes[1] is not None:
        return query
    heads, groups = attributes["num_heads"], attributes["kv_num_heads"]
    return (*query[:2], query[2] * heads // (heads + 2 * groups))


def _embed_layer_norm(attributes: dict, shapes: list) -> tuple[int, ...] | None:
    return (*shapes[0][:2], shapes[2][-1])


def _qlinear_global_pool(attributes: dict, shapes: list) -> tuple[int, ...] | None:
    if attributes.get("channels_last"):
        return (shapes[0][0], *[1] * (len(shapes[0]) - 2), shapes[0][-1])
    return (*shapes[0][:2], *[1] * (len(shapes[0]) - 2))


def _qlinear_concat(attributes: dict, shapes: list) -> tuple[int, ...] | None:
    parts = [list(s) for s in shapes[2::3]]
    axis = attributes["axis"]
    parts[0][axis] = sum(p[axis] for p in parts)
    return tuple(parts[0])


_RULES = {
    "Attention": _attention,
    "EmbedLayerNormalization": _embed_layer_norm,
    "FusedGemm": _matmul,
    "FusedMatMul": _matmul,
    "GroupQueryAttention": _group_query,
    "MatMulNBits": _matmul_n_bits,
    "MultiHeadAttention": _multi_head,
    "QAttention": _attention,
    "QLinearConcat": _qlinear_concat,
    "QLinearGlobalAveragePool": _qlinear_global_pool,
    "QLinearMatMul": _qlinear_matmul,
    "TransposeMatMul": _matmul,
}
