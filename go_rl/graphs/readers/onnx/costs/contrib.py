"""Costs of ONNX Runtime's own operators, by their decomposition.

Quantised ones count 3 FLOP an element to dequantise and 5 to quantise, as `DequantizeLinear` and
`QuantizeLinear`; dynamically quantised operands 7, as `DynamicQuantizeLinear`. Blocked (NCHWC)
operators compute on padded channels, which is counted: it is done.

Source: ``docs/ContribOperators.md`` of ONNX Runtime.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers import decompositions
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.cost_rules import (
    Costs,
    Formula,
    cost_rules,
    distances,
    gelu,
    no_flops,
    per_element,
    per_input,
    reduction,
    sort,
)
from go_rl.graphs.readers.onnx.call import Call
from go_rl.graphs.readers.onnx.costs import dense, fused
from go_rl.graphs.readers.onnx.costs import reductions as red
from go_rl.graphs.readers.onnx.shapes.microsoft import NCHWC

ACTIVATION_FLOPS = {
    "Clip": 1,
    "Elu": 4,
    "Gelu": 4,
    "HardSigmoid": 4,
    "HardSwish": 5,
    "LeakyRelu": 3,
    "Relu": 1,
    "Sigmoid": 3,
    "Softplus": 6,
    "Tanh": 0,
}
"""FLOP a result element of the activation fused into an operator."""


def activated(flops: Formula, added: int | None = None) -> Formula:
    """``flops``, the sum with operand ``added`` where it is given, and the fused activation."""

    def total(call: Call) -> float:
        extra = ACTIVATION_FLOPS.get(call.get("activation", ""), 0)
        extra += added is not None and call.has(added)
        return flops(call) + float(extra * call.result.size)

    return total


def channels_first(flops: Formula, always: bool = True) -> Formula:
    """``flops`` of the operator with channels before the image (``channels_last`` or always)."""

    def moved(tensor: Tensor | None) -> Tensor | None:
        if tensor is None or len(tensor.shape) < 3:
            return tensor
        shape = tensor.shape
        return replace(tensor, shape=(shape[0], shape[-1], *shape[1:-1]))

    def total(call: Call) -> float:
        if not always and not call.get("channels_last", 0):
            return flops(call)
        image, *others = call.inputs
        results = tuple(moved(t) for t in call.outputs)
        return flops(replace(call, inputs=(moved(image), *others), outputs=results))

    return total


def dynamic_quantize_matmul(call: Call) -> float:
    """Quantise the left operand, multiply integers, scale (2), and the bias."""
    product = 2.0 * call.result.size * call.operand(0).shape[-1]
    zero_points = call.operand(1).size * call.has(3)
    return 7.0 * call.operand(0).size + product + zero_points + _scaled(call, bias=4)


def matmul_integer_to_float(call: Call) -> float:
    """Integer product, the zero points that are given, scale (2), and the bias."""
    product = 2.0 * call.result.size * call.operand(0).shape[-1]
    zero_points = call.operand(0).size * call.has(4) + call.operand(1).size * call.has(5)
    return product + zero_points + _scaled(call, bias=6)


def _scaled(call: Call, bias: int) -> float:
    return (2.0 + call.has(bias)) * call.result.size


def qgemm(call: Call) -> float:
    """``2MNK``, the bias, and 5 FLOP an element to requantise."""
    a, out = call.operand(0), call.result
    inner = a.shape[0] if call.get("transA", 0) else a.shape[1]
    return (2.0 * inner + 5.0 + call.has(6)) * out.size


def gemm_gelu(call: Call) -> float:
    """A product and the tanh form of GELU, with its bias."""
    return dense.matmul(call) + (8.0 + call.has(2)) * call.result.size


def dynamic_quantize_lstm(call: Call) -> float:
    """An LSTM whose inputs and states are quantised at every step; weights are transposed."""
    steps, batch, features = call.operand(0).shape
    directions, hidden, gates = call.operand(2).shape
    products = 2.0 * gates * (features + hidden) + 2 * gates * call.has(3)
    quantised = 7.0 * (features + hidden) + 2 * gates
    return steps * batch * directions * (products + quantised + 17 * hidden)


def experts(call: Call) -> float:
    """Every token passes through ``k`` of the experts: 2 FLOP a weight of theirs.

    Weights have the experts first. `MoE` has pairs of weights and bias, `QMoE` triples of packed
    weights, scales and bias.
    """
    tokens = call.operand(0).size // call.operand(0).shape[-1]
    quantised = call.op.endswith("QMoE")
    each, packing = (3, 8 // call.get("expert_weight_bits", 4)) if quantised else (2, 1)
    weights = [call.operand(p) for p in range(2, 2 + 3 * each, each) if call.has(p)]
    per_expert = sum(w.size / w.shape[0] for w in weights)
    return 2.0 * tokens * call.get("k", 1) * per_expert * packing


def packed_attention(call: Call) -> float:
    """Sequences without padding: at most every token of the (B, S) offsets attends to S others."""
    tokens, width = call.operand(0).shape
    batch, length = call.operand(3).shape
    total, depth_value = call.operand(1).shape[-1], call.result.shape[-1]
    padded = replace(
        call,
        inputs=(Tensor((batch, length, width), 4.0), *call.inputs[1:3]),
        outputs=(Tensor((batch, length, depth_value), 4.0),),
    )
    projection = 2.0 * (batch * length - tokens) * total * width
    return fused.packed_attention(padded) - projection


def longformer(call: Call) -> float:
    """Two sets of projections, and attention to ``window`` tokens on either side."""
    batch, length, width = call.operand(0).shape
    heads, window = call.get("num_heads", 1), call.get("window", length)
    projections = 2 * 2.0 * batch * length * width * call.operand(1).shape[-1]
    keys = min(length, 2 * window)
    scores = batch * heads * length * keys
    return projections + scores * (4.0 * width / heads + 5.0)


def gather_dequantized_bytes(call: Call) -> float:
    """The rows gathered in their stored format, the result, and the indices."""
    stored = call.operand(0)
    packing = call.result.shape[-1] / max(1, stored.shape[-1])
    rows = call.result.size / max(1.0, packing) * stored.itemsize
    return rows + call.result.nbytes + call.operand(1).nbytes


def inverse(call: Call) -> float:
    """LU decomposition of each matrix, and two substitutions for each column of the identity."""
    *batch, n, _ = call.operand(0).shape
    substitutions = 2.0 * decompositions.triangular_solve(n, n)
    return prod(batch) * (decompositions.lu(n, n) + substitutions)


def real_fourier(call: Call) -> float:
    """XLA's FFT count on the real side: ``8 n floor(log2 n)``."""
    real = call.result if call.op.endswith("Irfft") else call.operand(0)
    return 8.0 * real.size * max(1, real.shape[-1].bit_length() - 1)


def average_pool(call: Call) -> float:
    """Window sums and division, and quantisation of the result."""
    return red.average_pool(call) + 8.0 * call.result.size


def quantized_mean(call: Call) -> float:
    """Dequantise, sum, divide, quantise."""
    return 4.0 * call.operand(0).size + 5.0 * call.result.size


def skip_group_norm(call: Call) -> float:
    """Add the residual (and the bias), then group normalisation, then SiLU where asked for."""
    extra = 1 + call.has(4) + 4 * call.get("activation", 0)
    return red.group_norm(call) + float(extra * call.operand(0).size)


def fast_gelu(call: Call) -> float:
    """The tanh form of GELU, after adding a bias if there is one."""
    return (8.0 + call.has(1)) * call.result.size


def bias_dropout(call: Call) -> float:
    """Add the bias, and the residual if there is one."""
    return float((1 + call.has(2)) * call.result.size)


_MICROSOFT: dict[OpKind, dict[str, Costs]] = {
    OpKind.ELEMENTWISE: {
        "BiasAdd Trilu": per_element(2),
        "BiasDropout BitmaskBiasDropout": bias_dropout,
        "BiasGelu QuantizeLinear QuickGelu": per_element(5),
        "BiasSplitGelu": per_element(7),
        "BitmaskDropout": no_flops,
        "ComplexMul ComplexMulConj DequantizeLinear MulInteger": per_element(3),
        "FastGelu": fast_gelu,
        "Gelu": gelu,
        "GemmaRotaryEmbedding": lambda c: float(
            sum(3 * t.size for t in c.outputs if t is not None)
        ),
        "MurmurHash3 QLinearAdd QLinearMul": per_element(12),
        "QLinearLeakyRelu QLinearSigmoid": per_element(8),
        "QLinearWhere": per_element(9),
        "RotaryEmbedding": fused.rotary_embedding,
        "SwiGLU": per_element(6),
    },
    OpKind.REDUCTION: {
        "BiasSoftmax": lambda call: red.softmax(call) + call.result.size,
        "EmbedLayerNormalization": (red.embed_layer_norm, fused.embed_bytes),
        "GroupNorm": red.group_norm,
        "IsAllFinite QLinearGlobalAveragePool": per_input(2),
        "LayerNormalization": red.layer_norm,
        "MaxpoolWithMask NhwcMaxPool": red.max_pool,
        "QEmbedLayerNormalization": red.embed_layer_norm,
        "QLinearAveragePool": average_pool,
        "QLinearReduceMean": quantized_mean,
        "QLinearSoftmax": per_input(6),
        "RMSNormalization SimplifiedLayerNormalization": red.rms_norm,
        "ReduceSumInteger": reduction(),
        "SkipGroupNorm": skip_group_norm,
        "SkipLayerNormalization SkipSimplifiedLayerNormalization": red.skip_layer_norm,
        "Unique": sort,
    },
    OpKind.MATMUL: {
        "Attention QAttention": fused.packed_attention,
        "CDist": distances,
        "DecoderMaskedMultiHeadAttention MultiHeadAttention": fused.multi_head_attention,
        "DynamicQuantizeLSTM": dynamic_quantize_lstm,
        "DynamicQuantizeMatMul": dynamic_quantize_matmul,
        "FusedGemm GemmFloat8": activated(dense.gemm),
        "FusedMatMul TransposeMatMul": dense.fused_matmul,
        "FusedMatMulActivation": activated(dense.fused_matmul),
        "GemmFastGelu": gemm_gelu,
        "GroupQueryAttention SparseAttention": fused.group_query_attention,
        "Inverse": inverse,
        "Irfft Rfft": real_fourier,
        "LongformerAttention": longformer,
        "MatMulBnb4 MatMulNBits": dense.matmul_n_bits,
        "MatMulInteger16 SparseToDenseMatMul": dense.matmul,
        "MatMulIntegerToFloat": matmul_integer_to_float,
        "MoE QMoE": experts,
        "PackedAttention": packed_attention,
        "QGemm": qgemm,
        "QLinearMatMul": dense.qlinear_matmul,
    },
    OpKind.CONVOLUTION: {
        "FusedConv": activated(dense.convolution, added=3),
        "NhwcConv": channels_first(dense.convolution),
        "NhwcFusedConv": channels_first(activated(dense.convolution, added=3)),
        "QLinearConv": channels_first(dense.qlinear_conv, always=False),
    },
    OpKind.GATHER: {
        "GatherBlockQuantized": (per_element(3), gather_dequantized_bytes),  # dequantise
        "GatherND TorchEmbedding": (no_flops, fused.gather_bytes),
        "GridSample": fused.grid_sample,
        "NGramRepeatBlock": no_flops,
    },
    OpKind.MOVEMENT: {"QLinearConcat Range Tokenizer UnfoldTensor": no_flops},
}

_NCHWC: dict[OpKind, dict[str, Costs]] = {
    OpKind.CONVOLUTION: {"Conv": activated(dense.convolution, added=3)},
    OpKind.REDUCTION: {
        "AveragePool": red.average_pool,
        "GlobalAveragePool": red.global_average_pool,
        "GlobalMaxPool": reduction(),
        "MaxPool": red.max_pool,
    },
    OpKind.MOVEMENT: {"ReorderInput ReorderOutput": no_flops},
    OpKind.ELEMENTWISE: {"Upsample": fused.resize},
}

CONTRIB_RULES = cost_rules("com.microsoft.", _MICROSOFT) | cost_rules(f"{NCHWC}.", _NCHWC)
"""The rule of each operator, by operator type with its domain in front."""
