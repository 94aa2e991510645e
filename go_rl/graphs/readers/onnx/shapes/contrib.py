"""Result types of ONNX Runtime's own operators, as far as its optimiser and quantiser write them.

Source: ``docs/ContribOperators.md`` of ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, prod

import numpy as np
from onnx import TensorProto

from go_rl.graphs.readers.onnx.shapes.rule import (
    Attributes,
    Inputs,
    Result,
    Rule,
    Shape,
    given,
    reshaped,
    retyped,
)
from go_rl.graphs.tables import by_name

FLOAT = TensorProto.FLOAT
NCHWC_BLOCK = 16
"""Channels of a block, as on processors with AVX-512; 8 on others. The file does not contain it."""


def like(*positions: int) -> Rule:
    """Results with the types of these operands."""
    return lambda attributes, inputs: [inputs[p] for p in positions]


def broadcast(*positions: int, element: int | None = None) -> Rule:
    """One result of the operands' common shape; ``element``: its type, else the last one's."""

    def rule(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
        shape = np.broadcast_shapes(*(inputs[p][1] for p in positions))
        return [(inputs[positions[-1]][0] if element is None else element, shape)]

    return rule


def product(left: int, right: int, element_of: int | None = None, element: int = 0) -> Rule:
    """A matrix product; its type is ``element``, or that of an operand (default: the left one)."""

    def rule(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
        a, b = list(inputs[left][1]), list(inputs[right][1])
        if attributes.get("transA"):
            a[-2:] = a[:-3:-1]
        if attributes.get("transB"):
            b[-2:] = b[:-3:-1]
        batch = np.broadcast_shapes(tuple(a[:-2]), tuple(b[:-2]))
        source = given(inputs, left if element_of is None else element_of)
        return [(element or (source[0] if source else FLOAT), (*batch, a[-2], b[-1]))]

    return rule


def _typed_by(shape_of: int, element_of: int, default: int) -> Rule:
    def rule(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
        source = given(inputs, element_of)
        return [(source[0] if source else default, inputs[shape_of][1])]

    return rule


def _dropout(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
    return [inputs[0], (TensorProto.BOOL, inputs[0][1])]


def _bitmask_dropout(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
    return [inputs[0], (TensorProto.UINT32, (ceil(prod(inputs[0][1]) / 32),))]


_HALVED = reshaped(lambda a, shape: (*shape[:-1], shape[-1] // 2))


def _swiglu(attributes: Attributes, inputs: Inputs) -> Sequence[Result | None]:
    return [inputs[0]] if given(inputs, 1) else _HALVED(attributes, inputs)


def _distances(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
    return [(inputs[0][0], (inputs[0][1][0], inputs[1][1][0]))]


def _qlinear_concat(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
    """Operands after scale and zero point of the result: a tensor, its scale, its zero point."""
    parts = [list(part[1]) for part in inputs[2::3]]
    axis = attributes["axis"]
    parts[0][axis] = sum(part[axis] for part in parts)
    return [(inputs[2][0], tuple(parts[0]))]


def _gather_block_quantized(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
    (element, data), (_, indices), (scale, _) = inputs[:3]
    sizes = list(data)
    if element == TensorProto.UINT8:  # packed along the last axis
        sizes[-1] *= 8 // attributes.get("bits", 4)
    axis = attributes.get("gather_axis", 0) % len(sizes)
    return [(scale, (*sizes[:axis], *indices, *sizes[axis + 1 :]))]


def _embedding(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
    return [(inputs[0][0], (*inputs[1][1], *inputs[0][1][1:]))]


def _embed_layer_norm(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
    """Results of `EmbedLayerNormalization` and `QEmbedLayerNormalization`: embedded tokens, mask
    index, sum of the embeddings."""
    batch, length = inputs[0][1]
    element = TensorProto.FLOAT if inputs[2][0] in (TensorProto.UINT8, 3) else inputs[2][0]
    embedded = (element, (batch, length, inputs[2][1][-1]))
    return [embedded, (TensorProto.INT32, (batch,)), embedded]


def _unfolded(attributes: Attributes, shape: Shape) -> Shape:
    dim, size = attributes.get("dim", -1) % len(shape), attributes["size"]
    windows = (shape[dim] - size) // attributes.get("step", 1) + 1
    return (*shape[:dim], windows, *shape[dim + 1 :], size)


def _gated_position_bias(attributes: Attributes, inputs: Inputs) -> Sequence[Result]:
    element, (batch, length, _) = inputs[0]
    return [(element, (batch, attributes["num_heads"], length, length))]


def _blocked(attributes: Attributes, shape: Shape) -> Shape:
    if attributes.get("channels_last"):
        shape = (shape[0], shape[-1], *shape[1:-1])
    blocks = -(-shape[1] // NCHWC_BLOCK)
    return (shape[0], blocks * NCHWC_BLOCK, *shape[2:])


def _unblocked(attributes: Attributes, shape: Shape) -> Shape:
    spatial, channels = shape[2:], attributes["channels"]
    last = attributes.get("channels_last")
    return (shape[0], *spatial, channels) if last else (shape[0], channels, *spatial)


def _upsampled(attributes: Attributes, shape: Shape) -> Shape:
    scales = attributes.get("scales") or [1] * len(shape)
    return tuple(n * int(s) for n, s in zip(shape, scales, strict=True))


def _pooled(attributes: Attributes, shape: Shape) -> Shape:
    ones = [1] * (len(shape) - 2)
    last = attributes.get("channels_last")
    return (shape[0], *ones, shape[-1]) if last else (*shape[:2], *ones)


CONTRIB_SHAPES: dict[str, Rule] = by_name(
    {
        "BiasDropout": _dropout,
        "BiasSplitGelu": _HALVED,
        "BitmaskBiasDropout BitmaskDropout": _bitmask_dropout,
        "CDist": _distances,
        "ComplexMul ComplexMulConj": broadcast(0, 1),
        "DequantizeLinear": _typed_by(0, 1, FLOAT),
        "DynamicQuantizeMatMul FusedGemm FusedMatMul FusedMatMulActivation": product(0, 1),
        "EmbedLayerNormalization QEmbedLayerNormalization": _embed_layer_norm,
        "GatedRelativePositionBias": _gated_position_bias,
        "GatherBlockQuantized": _gather_block_quantized,
        "GemmFastGelu SparseToDenseMatMul TransposeMatMul": product(0, 1),
        "GemmFloat8": product(0, 1, element=FLOAT),
        "GemmaRotaryEmbedding": like(1, 3),
        "Inverse LongformerAttention MoE QMoE Trilu": like(0),
        "Irfft": reshaped(lambda a, shape: (*shape[:-2], 2 * (shape[-2] - 1))),
        "IsAllFinite": lambda attributes, inputs: [(TensorProto.BOOL, ())],
        "MatMulBnb4 MatMulNBits": reshaped(lambda a, shape: (*shape[:-1], a["N"])),
        "MatMulInteger16": product(0, 1, element=TensorProto.INT32),
        "MatMulIntegerToFloat": product(0, 1, element_of=2),
        "MulInteger": broadcast(0, 2, element=TensorProto.INT32),
        "MurmurHash3": retyped(TensorProto.UINT32),
        "NGramRepeatBlock": like(1),
        "QGemm": product(0, 3, element_of=8),  # 8-bit when the result's zero point is given
        "QLinearAdd QLinearMul": broadcast(0, 3),
        "QLinearConcat": _qlinear_concat,
        "QLinearGlobalAveragePool": reshaped(_pooled),
        "QLinearMatMul": product(0, 3),
        "QLinearWhere": broadcast(0, 1, 4),
        "QuantizeLinear": _typed_by(0, 2, TensorProto.UINT8),
        "ReorderInput": reshaped(_blocked),
        "ReorderOutput": reshaped(_unblocked),
        "Rfft": reshaped(lambda a, shape: (*shape[:-1], shape[-1] // 2 + 1, 2)),
        "SkipGroupNorm": like(0, 0),
        "SwiGLU": _swiglu,
        "TorchEmbedding": _embedding,
        "UnfoldTensor": reshaped(_unfolded),
        "Upsample": reshaped(_upsampled),
    }
)
"""Result types by operator type, in the domains of ONNX Runtime."""
