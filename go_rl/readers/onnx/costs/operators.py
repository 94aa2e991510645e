"""The table of ONNX operators: kind, FLOP and bytes of each.

Conventions are those of XLA's ``HloCostAnalysis`` on the unoptimised program: a multiply-add is 2
FLOP; arithmetic, comparison and conversion 1 FLOP a result element; exp, log, tanh, erf, sqrt,
power and the like are counted as transcendentals, not FLOP; an operator that XLA does not have
costs the FLOP of its decomposition.
"""

from __future__ import annotations

from collections.abc import Callable

from go_rl.core.op_kind import OpKind
from go_rl.readers.onnx.call import Call, CostRule, Formula, default_bytes, no_flops, per_element
from go_rl.readers.onnx.costs import dense, fused
from go_rl.readers.onnx.costs import reductions as red
from go_rl.readers.onnx.costs.contrib import CONTRIB_RULES
from go_rl.readers.onnx.costs.ml import ML_RULES


def per_extra_operand(call: Call) -> float:
    """`Max`, `Min`, `Sum`: one FLOP an element for each operand after the first."""
    return float(sum(t is not None for t in call.inputs) - 1) * call.result.size


def mean_of_operands(call: Call) -> float:
    """`Mean`: the sum of the operands and one division."""
    return per_extra_operand(call) + call.result.size


def modulo(call: Call) -> float:
    """XLA's remainder (1), and the sign repair of Python's rule (7 more) unless ``fmod``."""
    return (1.0 if call.get("fmod", 0) else 8.0) * call.result.size


def gelu(call: Call) -> float:
    """``x/2 (1 + erf(x / sqrt 2))``: 4; the tanh form: 8."""
    return (8.0 if call.get("approximate", "none") == "tanh" else 4.0) * call.result.size


def bias_gelu(call: Call) -> float:
    """`gelu` after adding a bias."""
    return 5.0 * call.result.size


def fast_gelu(call: Call) -> float:
    """The tanh form of GELU, after adding a bias if there is one."""
    return (8.0 + call.has(1)) * call.result.size


ELEMENTWISE_FLOPS: dict[int, str] = {
    0: "Cos Erf Exp Log Pow Sin Sqrt Tan Tanh Atan BitCast",
    1: "Abs Add And BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Div"
    " Equal Floor Greater GreaterOrEqual IsNaN Less LessOrEqual Mul Neg Not Or Reciprocal Relu"
    " RegexFullMatch Round Sign Sub Where Xor",
    2: "IsInf ThresholdedRelu Trilu",
    3: "LeakyRelu PRelu Sigmoid Softsign DequantizeLinear Acos Cosh",
    4: "Elu HardSigmoid Swish",
    5: "Asin HardSwish QuantizeLinear Celu com.microsoft.QuickGelu",
    6: "Atanh Selu Shrink Softplus SwiGLU",
    7: "Acosh Mish",
    8: "com.microsoft.QLinearLeakyRelu com.microsoft.QLinearSigmoid",
    10: "Sinh",
    11: "Asinh",
    12: "com.microsoft.QLinearAdd com.microsoft.QLinearMul",
}
"""Element-wise operators by FLOP a result element."""

MOVEMENT = (
    "CenterCropPad Compress Concat DepthToSpace Dropout Expand Flatten Identity Optional"
    " OptionalGetElement OptionalHasElement Pad Reshape ReverseSequence SequenceAt"
    " SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength"
    " ConcatFromSequence Shape Size Slice SpaceToDepth Split SplitToSequence Squeeze"
    " StringConcat StringNormalizer StringSplit TensorScatter Tile Transpose Unsqueeze"
    " com.microsoft.QLinearConcat com.microsoft.Tokenizer"
)
"""Operators that only move data."""

CONSTANTS = (
    "Constant ConstantOfShape EyeLike MelWeightMatrix Range BlackmanWindow HammingWindow HannWindow"
)
"""Operators whose results are known before the first step when their inputs are."""

SETTINGS: dict[str, tuple[int, ...]] = {
    "AffineGrid": (1,),
    "CenterCropPad": (1,),
    "Clip": (1, 2),
    "Col2Im": (1, 2),
    "ConstantOfShape": (0,),
    "CumProd": (1,),
    "CumSum": (1,),
    "DFT": (1, 2),
    "Dropout": (1, 2),
    "Expand": (1,),
    "Loop": (0, 1),
    "NonMaxSuppression": (2, 3, 4),
    "OneHot": (1,),
    "Pad": (1, 2, 3),
    "Range": (0, 1, 2),
    "Reshape": (1,),
    "Resize": (1, 2, 3),
    "STFT": (1, 3),
    "Slice": (1, 2, 3, 4),
    "Split": (1,),
    "SplitToSequence": (1,),
    "Squeeze": (1,),
    "Tile": (1,),
    "TopK": (1,),
    "Trilu": (1,),
    "Unsqueeze": (1,),
    "Upsample": (1,),
    **{f"Reduce{how}": (1,) for how in ("Max", "Mean", "Min", "Prod", "Sum", "L1", "L2")},
    **{f"ReduceLog{how}": (1,) for how in ("Sum", "SumExp")},
    "ReduceSumSquare": (1,),
}
"""Operands that set an operator up (shapes, axes, pads, limits) and are no data."""

_REDUCTIONS: dict[str, Formula] = {
    "ArgMax": red.arg_reduction,
    "ArgMin": red.arg_reduction,
    "AveragePool": red.average_pool,
    "BatchNormalization": red.batch_norm,
    "CumProd": red.cumulative,
    "CumSum": red.cumulative,
    "Det": fused.determinant,
    "DynamicQuantizeLinear": per_element(7),
    "GlobalAveragePool": red.global_average_pool,
    "GlobalLpPool": red.reduction(before=1),
    "GlobalMaxPool": red.reduction(),
    "GroupNormalization": red.group_norm,
    "Hardmax": red.hardmax,
    "InstanceNormalization": red.group_norm,
    "LRN": red.local_response_norm,
    "LayerNormalization": red.layer_norm,
    "LogSoftmax": red.softmax,
    "LpNormalization": red.lp_normalization,
    "LpPool": red.lp_pool,
    "MaxPool": red.max_pool,
    "MeanVarianceNormalization": red.mean_variance_norm,
    "NegativeLogLikelihoodLoss": red.negative_log_likelihood,
    "RMSNormalization": red.rms_norm,
    "ReduceL1": red.reduction(before=1),
    "ReduceL2": red.reduction(before=1),
    "ReduceLogSum": red.reduction(),
    "ReduceLogSumExp": red.reduction(before=2, after=3),
    "ReduceMax": red.reduction(),
    "ReduceMean": red.reduction(after=1),
    "ReduceMin": red.reduction(),
    "ReduceProd": red.reduction(),
    "ReduceSum": red.reduction(),
    "ReduceSumSquare": red.reduction(before=1),
    "Softmax": red.softmax,
    "SoftmaxCrossEntropyLoss": red.cross_entropy,
    "TopK": red.top_k,
    "Unique": red.sort,
    "com.microsoft.BiasSoftmax": lambda call: red.softmax(call) + call.result.size,
    "com.microsoft.EmbedLayerNormalization": red.embed_layer_norm,
    "com.microsoft.GroupNorm": red.group_norm,
    "com.microsoft.QLinearGlobalAveragePool": lambda c: 2.0 * c.operand(0).size,
    "com.microsoft.QLinearSoftmax": lambda call: 6.0 * call.operand(0).size,
    "com.microsoft.SkipLayerNormalization": red.skip_layer_norm,
    "com.microsoft.SkipSimplifiedLayerNormalization": red.skip_layer_norm,
    "com.microsoft.LayerNormalization": red.layer_norm,
    "com.microsoft.SimplifiedLayerNormalization": red.rms_norm,
    "SimplifiedLayerNormalization": red.rms_norm,
    "SkipLayerNormalization": red.skip_layer_norm,
}

_CONTRACTIONS: dict[str, Formula] = {
    "Attention": fused.attention,
    "Einsum": dense.einsum,
    "GRU": fused.recurrent(3, 17),
    "Gemm": dense.gemm,
    "LSTM": fused.recurrent(4, 17),
    "LinearAttention": fused.linear_attention,
    "MatMul": dense.matmul,
    "MatMulInteger": dense.matmul_integer,
    "QLinearMatMul": dense.qlinear_matmul,
    "RNN": fused.recurrent(1, 1),
    "com.microsoft.Attention": fused.packed_attention,
    "com.microsoft.FusedMatMul": dense.fused_matmul,
    "com.microsoft.GroupQueryAttention": fused.group_query_attention,
    "com.microsoft.MatMulNBits": dense.matmul_n_bits,
    "com.microsoft.MultiHeadAttention": fused.multi_head_attention,
    "com.microsoft.QAttention": fused.packed_attention,
    "com.microsoft.QLinearMatMul": dense.qlinear_matmul,
    "com.microsoft.TransposeMatMul": dense.fused_matmul,
}

_CONVOLUTIONS: dict[str, Formula] = {
    "CausalConvWithState": lambda c: 2.0 * c.result.size * c.operand(1).shape[-1],
    "Conv": dense.convolution,
    "ConvInteger": dense.conv_integer,
    "ConvTranspose": dense.convolution_transpose,
    "DeformConv": dense.deformable_convolution,
    "QLinearConv": dense.qlinear_conv,
}

_INDEXED: dict[str, tuple[Formula, Formula]] = {
    "Col2Im": (lambda c: float(c.operand(0).size), default_bytes),
    "Gather": (no_flops, fused.gather_bytes),
    "GatherElements": (no_flops, fused.gather_bytes),
    "GatherND": (no_flops, fused.gather_bytes),
    "GridSample": (fused.grid_sample, default_bytes),
    "MaxRoiPool": (lambda c: float(c.operand(0).size), default_bytes),
    "MaxUnpool": (no_flops, default_bytes),
    "NonMaxSuppression": (fused.non_max_suppression, default_bytes),
    "NonZero": (per_element(1), default_bytes),
    "OneHot": (per_element(2), default_bytes),
    "RoiAlign": (fused.roi_align, default_bytes),
    "Scatter": (fused.scatter, fused.scatter_bytes),
    "ScatterElements": (fused.scatter, fused.scatter_bytes),
    "ScatterND": (fused.scatter, fused.scatter_bytes),
    "TfIdfVectorizer": (per_element(1), default_bytes),
}

_ELEMENTWISE: dict[str, Formula] = {
    "AffineGrid": fused.affine_grid,
    "Clip": per_element(1),
    "DFT": fused.fourier,
    "Gelu": gelu,
    "Max": per_extra_operand,
    "Mean": mean_of_operands,
    "Min": per_extra_operand,
    "Mod": modulo,
    "Resize": fused.resize,
    "RotaryEmbedding": fused.rotary_embedding,
    "STFT": fused.short_time_fourier,
    "Sum": per_extra_operand,
    "Upsample": fused.resize,
    "com.microsoft.BiasAdd": per_element(2),
    "com.microsoft.BiasGelu": bias_gelu,
    "com.microsoft.FastGelu": fast_gelu,
    "com.microsoft.Gelu": gelu,
    "com.microsoft.RotaryEmbedding": fused.rotary_embedding,
    **{f"Random{how}": per_element(38) for how in ("Normal", "Uniform")},
    **{f"Random{how}Like": per_element(38) for how in ("Normal", "Uniform")},
    "Bernoulli": per_element(39),
    "Multinomial": per_element(40),
}


def _table() -> dict[str, CostRule]:
    rules: dict[str, tuple[OpKind, Formula, Formula]] = {}

    def enter(kind: OpKind, flops: dict[str, Formula]) -> None:
        rules.update({op: (kind, formula, default_bytes) for op, formula in flops.items()})

    for count, ops in ELEMENTWISE_FLOPS.items():
        enter(OpKind.ELEMENTWISE, dict.fromkeys(ops.split(), per_element(count)))
    enter(OpKind.ELEMENTWISE, _ELEMENTWISE)
    enter(OpKind.MOVEMENT, dict.fromkeys(MOVEMENT.split(), no_flops))
    enter(OpKind.MOVEMENT, dict.fromkeys(CONSTANTS.split(), no_flops))
    enter(OpKind.REDUCTION, _REDUCTIONS)
    enter(OpKind.MATMUL, _CONTRACTIONS)
    enter(OpKind.CONVOLUTION, _CONVOLUTIONS)
    # Operators that hold subgraphs: `onnx_graph` counts what is in them.
    enter(OpKind.CONTROL, dict.fromkeys(("If", "Loop", "Scan"), no_flops))
    rules.update({op: (OpKind.GATHER, f, b) for op, (f, b) in _INDEXED.items()})
    special: dict[str, Callable[[Call], float]] = {
        "Slice": fused.slice_bytes,
        "com.microsoft.EmbedLayerNormalization": fused.embed_bytes,
    }
    for op, num_bytes in special.items():
        rules[op] = (*rules[op][:2], num_bytes)
    own = {op: CostRule(*rule, frozenset(SETTINGS.get(op, ()))) for op, rule in rules.items()}
    return {**own, **CONTRIB_RULES, **ML_RULES}


RULES: dict[str, CostRule] = _table()
"""The rule of every operator that is counted, by operator type with its domain in front."""

BYTES_ONLY = CostRule(OpKind.OTHER, no_flops)
"""An unknown operator, counted by bytes at the user's request."""
