"""The table of ONNX operators: kind, FLOP and bytes of each.

Conventions are those of XLA's ``HloCostAnalysis`` on the unoptimised program: a multiply-add is 2
FLOP; arithmetic, comparison and conversion 1 FLOP a result element; exp, log, tanh, erf, sqrt,
power and the like are counted as transcendentals, not FLOP; an operator that XLA does not have
costs the FLOP of its decomposition.
"""

from __future__ import annotations

from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.cost_rules import (
    CostRule,
    Costs,
    Formula,
    arg_reduction,
    cost_rules,
    gelu,
    no_flops,
    per_element,
    per_input,
    reduction,
    roi_align,
    sort,
)
from go_rl.graphs.readers.decompositions import GATES, attention
from go_rl.graphs.readers.onnx.call import Call, no_bytes
from go_rl.graphs.readers.onnx.costs import dense, fused
from go_rl.graphs.readers.onnx.costs import reductions as red
from go_rl.graphs.readers.onnx.costs.contrib import CONTRIB_RULES
from go_rl.graphs.readers.onnx.costs.ml import ML_RULES
from go_rl.graphs.tables import by_name, names

TRAINING_DOMAIN = "ai.onnx.preview.training"
_UPDATE_SETTINGS = 2
"""Operands before the parameters: rate and count."""


def update(count: int, lists: int) -> Formula:
    """FLOP of an update: ``count`` an element, 2 for a penalty on the parameter in the gradient,
    and 1 for one on the result.

    Args:
        count: of an element, without penalties.
        lists: parameters, gradients, and the states that the optimiser keeps.
    """

    def flops(call: Call) -> float:
        penalty = 2 * bool(call.get("norm_coefficient", 0.0))
        after = bool(call.get("norm_coefficient_post", 0.0))
        given = call.inputs[_UPDATE_SETTINGS:]
        parameters = given[: len(given) // lists]
        elements = sum(t.size for t in parameters if t is not None)
        return float((count + penalty + after) * elements)

    return flops


TRAINING_RULES = cost_rules(
    f"{TRAINING_DOMAIN}.",
    {
        OpKind.ELEMENTWISE: {
            "Adagrad": update(6, 3),  # square, sum; epsilon; rate, quotient, difference
            "Adam": update(11, 4),  # moments 3 + 4; epsilon; rate, quotient, difference
            # Velocity 3; of Nesterov's 2 more; rate, difference.
            "Momentum": lambda call: update(5 + 2 * (call.get("mode", "") == "nesterov"), 3)(call),
        }
    },
)
"""The rule of each update."""
REFUSED = {
    f"{TRAINING_DOMAIN}.Gradient": "Gradient stands for a backward pass, which the file does not "
    "hold: write the backward pass out when you export the model",
    f"{TRAINING_DOMAIN}.GraphCall": "GraphCall runs a graph that is no part of the model",
}
"""Operators that have no price, and why."""


def per_extra_operand(call: Call) -> float:
    """`Max`, `Min`, `Sum`: one FLOP an element for each operand after the first."""
    return float(sum(t is not None for t in call.inputs) - 1) * call.result.size


def modulo(call: Call) -> float:
    """XLA's remainder (1), and the sign repair of Python's rule (7 more) unless ``fmod``."""
    return (1.0 if call.get("fmod", 0) else 8.0) * call.result.size


ELEMENTWISE_FLOPS: dict[int, str] = {
    0: "Cos Erf Exp Log Pow Sin Sqrt Tan Tanh Atan BitCast",
    1: "Abs Add And BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Div"
    " Equal Floor Greater GreaterOrEqual IsNaN Less LessOrEqual Mul Neg Not Or Reciprocal Relu"
    " RegexFullMatch Round Sign Sub Where Xor",
    2: "IsInf ThresholdedRelu Trilu",
    3: "LeakyRelu PRelu Sigmoid Softsign DequantizeLinear Acos Cosh",
    4: "Elu HardSigmoid Swish",
    5: "Asin HardSwish QuantizeLinear Celu",
    6: "Atanh Selu Shrink Softplus SwiGLU",
    7: "Acosh Mish",
    10: "Sinh",
    11: "Asinh",
}
"""Element-wise operators by FLOP a result element."""

_FLOPS_BY_NAME = by_name({ops: count for count, ops in ELEMENTWISE_FLOPS.items()})
PREVIEW_DOMAIN = "ai.onnx.preview"


def flex_attention(call: Call) -> float:
    """`decompositions.attention`, and what the subgraphs for scores and probabilities do to each:
    their arithmetic on positions is counted as if it were on scores."""
    batch, heads, queries, depth = call.operand(0).shape
    keys, depth_value = call.operand(1).shape[2], call.operand(2).shape[3]
    changes = (call.get(name, None) for name in ("score_mod", "prob_mod"))
    nodes = [node for graph in changes if graph is not None for node in graph.node]
    each = sum(_FLOPS_BY_NAME.get(node.op_type, 0) for node in nodes)
    return attention(batch * heads, queries, keys, depth, depth_value, each)


MOVEMENT = (
    "CenterCropPad Compress Concat DepthToSpace Dropout Expand Flatten Optional"
    " OptionalGetElement OptionalHasElement Pad Reshape ReverseSequence SequenceAt"
    " SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength"
    " ConcatFromSequence Shape Size SpaceToDepth Split SplitToSequence Squeeze"
    " StringConcat StringNormalizer StringSplit TensorScatter Tile Transpose Unsqueeze"
)
"""Operators that only move data."""

CONSTANTS = names(
    "Constant ConstantOfShape EyeLike MelWeightMatrix Range BlackmanWindow HammingWindow HannWindow"
)
"""Operators whose results are known before the first step when their inputs are."""

SETTINGS = by_name(
    {
        "AffineGrid CenterCropPad CumProd CumSum Expand OneHot Reshape Split SplitToSequence": (1,),
        "Squeeze Tile TopK Trilu Unsqueeze Upsample": (1,),
        "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean": (1,),
        "ReduceMin ReduceProd ReduceSum ReduceSumSquare": (1,),
        "Clip Col2Im DFT Dropout": (1, 2),
        "BlackmanWindow ConstantOfShape HammingWindow HannWindow": (0,),
        "Loop": (0, 1),
        "MaxUnpool": (2,),
        "MelWeightMatrix": (0, 1, 2, 3, 4),
        "NonMaxSuppression": (2, 3, 4),
        "Pad Resize": (1, 2, 3),
        "Range": (0, 1, 2),
        "STFT": (1, 3),
        "SequenceAt SequenceErase": (1,),
        "SequenceInsert": (2,),
        "Slice": (1, 2, 3, 4),
    }
)
"""Operands that set an operator up (shapes, axes, pads, limits) and are no data."""

_TABLE: dict[OpKind, dict[str, Costs]] = {
    OpKind.ELEMENTWISE: {
        **{ops: per_element(count) for count, ops in ELEMENTWISE_FLOPS.items()},
        "AffineGrid": fused.affine_grid,
        "Bernoulli": per_element(39),
        "Clip": per_element(1),
        "DFT": fused.fourier,
        "Gelu": gelu,
        "Max Min Sum": per_extra_operand,
        "Mean": lambda call: per_extra_operand(call) + call.result.size,
        "Mod": modulo,
        "Multinomial": per_element(40),
        "RandomNormal RandomNormalLike RandomUniform RandomUniformLike": per_element(38),
        "Resize Upsample": fused.resize,
        "RotaryEmbedding": fused.rotary_embedding,
        "STFT": fused.short_time_fourier,
    },
    OpKind.MOVEMENT: {
        MOVEMENT: no_flops,
        "Identity": (no_flops, no_bytes),
        "Slice": (no_flops, fused.slice_bytes),
        **dict.fromkeys(CONSTANTS, no_flops),
    },
    OpKind.REDUCTION: {
        "ArgMax ArgMin": arg_reduction,
        "AveragePool": red.average_pool,
        "BatchNormalization": red.batch_norm,
        # XLA's naive lowering of these two to reduce-window would count n an element.
        "CumProd CumSum": per_element(1),
        "Det": fused.determinant,
        "DynamicQuantizeLinear": per_element(7),
        "GlobalAveragePool": red.global_average_pool,
        "GlobalLpPool ReduceL1 ReduceL2 ReduceSumSquare": reduction(before=1),
        "GlobalMaxPool ReduceLogSum ReduceMax ReduceMin ReduceProd ReduceSum": reduction(),
        "GroupNormalization InstanceNormalization": red.group_norm,
        "Hardmax": red.hardmax,
        "LRN": red.local_response_norm,
        "LayerNormalization": red.layer_norm,
        "LogSoftmax Softmax": red.softmax,
        "LpNormalization": per_input(3),  # power, sum, divide
        "LpPool": red.lp_pool,
        "MaxPool": red.max_pool,
        "MeanVarianceNormalization": per_input(5),  # mean, centre, square, mean, divide
        "NegativeLogLikelihoodLoss": per_input(3, 1),  # pick the target, negate, average
        "RMSNormalization SimplifiedLayerNormalization": red.rms_norm,
        "ReduceLogSumExp": reduction(before=2, after=3),
        "ReduceMean": reduction(after=1),
        "SkipLayerNormalization": red.skip_layer_norm,
        "SoftmaxCrossEntropyLoss": red.cross_entropy,
        "TopK": red.top_k,
        "Unique": sort,
    },
    OpKind.MATMUL: {
        "Attention": fused.attention,
        "Einsum": dense.einsum,
        "Gemm": dense.gemm,
        "LinearAttention": fused.linear_attention,
        "MatMul": dense.matmul,
        "MatMulInteger": dense.matmul_integer,
        "QLinearMatMul": dense.qlinear_matmul,
        **dict.fromkeys(GATES, fused.recurrent),
    },
    OpKind.CONVOLUTION: {
        "CausalConvWithState": lambda c: 2.0 * c.result.size * c.operand(1).shape[-1],
        "Conv": dense.convolution,
        "ConvInteger": dense.conv_integer,
        "ConvTranspose": dense.convolution_transpose,
        "DeformConv": dense.deformable_convolution,
        "QLinearConv": dense.qlinear_conv,
    },
    OpKind.GATHER: {
        "Col2Im MaxRoiPool": per_input(1),
        "Gather GatherElements GatherND": (no_flops, fused.gather_bytes),
        "GridSample": fused.grid_sample,
        "MaxUnpool": no_flops,
        "NonMaxSuppression": fused.non_max_suppression,
        "NonZero TfIdfVectorizer": per_element(1),
        "OneHot": per_element(2),
        "RoiAlign": roi_align,
        "Scatter ScatterElements ScatterND": (fused.scatter, fused.scatter_bytes),
    },
    # Operators that hold subgraphs: `readers.onnx.graph` counts what is in them.
    OpKind.CONTROL: {"If Loop Scan SequenceMap": no_flops},
}

_PREVIEW = cost_rules(f"{PREVIEW_DOMAIN}.", {OpKind.MATMUL: {"FlexAttention": flex_attention}})
RULES = cost_rules("", _TABLE, SETTINGS) | CONTRIB_RULES | ML_RULES | TRAINING_RULES | _PREVIEW
"""The rule of every operator that is counted, by operator type with its domain in front."""

BYTES_ONLY = CostRule(OpKind.OTHER, no_flops)
"""An unknown operator, counted by bytes at the user's request."""
