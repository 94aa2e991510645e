"""Operators of LiteRT: their names by number, and the FLOP of each.

Counts are those of the other readers: a multiply-add is 2 FLOP, exp, tanh and the like none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from go_rl.core.errors import ReadError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.arithmetic.closed_forms import valid_pairs
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.tables import by_name

_NUMBERED = """
ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE
EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D
LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1
RELU6 RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM
CALL CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND
SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE
BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM
CAST PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE
SIN TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW
ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK
REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR
LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS
WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE
NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM
BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG
REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL
CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL
BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1
"""
BUILTIN = tuple(_NUMBERED.split())
"""Names by number of `BuiltinOperator`."""
_SAME = 0
"""Padding that keeps the size, of `Padding`."""
Operands = Sequence[Tensor | None]
Formula = Callable[[Operands, Tensor, Any], float]
"""FLOP by operands (None: left out), result and options."""


def _given(operands: Operands, position: int) -> Tensor:
    found = operands[position] if position < len(operands) else None
    if found is None:
        raise ReadError(f"operand {position} is missing")
    return found


def _axis_pairs(image: int, taps: int, result: int, stride: int, dilation: int, mode: int) -> int:
    """Pairs of output and tap along an axis that meet the image."""
    reach = (result - 1) * stride + (taps - 1) * dilation + 1
    pad = max(0, reach - image) // 2 if mode == _SAME else 0
    return valid_pairs(result, taps, image, stride, dilation, pad)


def _window(
    image: Tensor, taps: Sequence[int], result: Tensor, options: Any, dilations: int | None = None
) -> int:
    """Pairs of output and tap over both axes; ``dilations`` is the field of the first of two."""
    strides, spread = (options.number(2, 1), options.number(1, 1)), (1, 1)
    if dilations is not None:
        spread = options.number(dilations + 1, 1), options.number(dilations, 1)
    sizes = zip(image.shape[1:3], taps, result.shape[1:3], strides, spread, strict=True)
    high, wide = (_axis_pairs(*each, options.byte(0)) for each in sizes)
    return high * wide


def _activated(options: Any, field: int, result: Tensor, operands: Operands, bias: int) -> float:
    """FLOP of the bias and of the fused activation; tanh has none."""
    has_bias = bias < len(operands) and operands[bias] is not None
    clamps = options.byte(field) in (1, 2, 3)
    return float(result.size * (has_bias + clamps))


def _convolution(operands: Operands, result: Tensor, options: Any) -> float:
    image, weight = _given(operands, 0), _given(operands, 1)
    outputs, *taps, inputs = weight.shape
    pairs = _window(image, taps, result, options, 4)
    products = 2.0 * result.shape[0] * pairs * inputs * outputs
    return products + _activated(options, 3, result, operands, 2)


def _depthwise(operands: Operands, result: Tensor, options: Any) -> float:
    image, weight = _given(operands, 0), _given(operands, 1)
    pairs = _window(image, weight.shape[1:3], result, options, 5)
    products = 2.0 * result.shape[0] * pairs * weight.shape[3]
    return products + _activated(options, 4, result, operands, 2)


def _transposed(operands: Operands, result: Tensor, options: Any) -> float:
    """The roles of image and result of a convolution change places."""
    weight, image = _given(operands, 1), _given(operands, 2)
    outputs, *taps, inputs = weight.shape
    pairs = _window(result, taps, image, options)
    products = 2.0 * result.shape[0] * pairs * inputs * outputs
    return products + _activated(options, 3, result, operands, 3)


def _fully_connected(operands: Operands, result: Tensor, options: Any) -> float:
    depth = _given(operands, 1).shape[-1]
    return 2.0 * result.size * depth + _activated(options, 0, result, operands, 2)


def _batch_matmul(operands: Operands, result: Tensor, options: Any) -> float:
    left = _given(operands, 0)
    return 2.0 * result.size * left.shape[-2 if options.byte(0) else -1]


def _pool(operands: Operands, result: Tensor, options: Any) -> float:
    image, taps = _given(operands, 0), (options.number(4, 1), options.number(3, 1))
    pairs = _window(image, taps, result, options)
    return float(result.shape[0] * pairs * result.shape[3])


def _resize(operands: Operands, result: Tensor, options: Any) -> float:
    return 6.0 * result.size  # 3 an axis


def _each(count: int, fused: int | None = None) -> Formula:
    """``count`` FLOP a result element, and 1 more for a fused activation, of that field."""

    def flops(operands: Operands, result: Tensor, options: Any) -> float:
        extra = 0.0 if fused is None else _activated(options, fused, result, (), 0)
        return float(count * result.size + extra)

    return flops


def _reduction(extra: int = 0) -> Formula:
    return lambda operands, result, options: float(_given(operands, 0).size + extra * result.size)


_TABLE: dict[OpKind, dict[str, Formula]] = {
    OpKind.CONVOLUTION: {
        "CONV_2D": _convolution,
        "DEPTHWISE_CONV_2D": _depthwise,
        "TRANSPOSE_CONV": _transposed,
    },
    OpKind.MATMUL: {"FULLY_CONNECTED": _fully_connected, "BATCH_MATMUL": _batch_matmul},
    OpKind.ELEMENTWISE: {
        "EXP LOG TANH SIN COS SQRT RSQRT POW": _each(0),
        "ADD SUB MUL DIV": _each(1, 0),
        "ABS CEIL FLOOR ROUND NEG SQUARE RELU RELU6 RELU_N1_TO_1 RELU_0_TO_1 MAXIMUM MINIMUM CAST":
            _each(1),
        "EQUAL NOT_EQUAL LESS LESS_EQUAL GREATER GREATER_EQUAL LOGICAL_AND LOGICAL_OR LOGICAL_NOT":
            _each(1),
        "SELECT SELECT_V2 FLOOR_DIV": _each(1),
        "SQUARED_DIFFERENCE": _each(2),
        "LEAKY_RELU PRELU LOGISTIC DEQUANTIZE": _each(3),
        "ELU GELU": _each(4),
        "HARD_SWISH QUANTIZE FAKE_QUANT": _each(5),
        "FLOOR_MOD": _each(8),
        "RESIZE_BILINEAR": _resize,
    },
    OpKind.REDUCTION: {
        "AVERAGE_POOL_2D MAX_POOL_2D": _pool,
        "SUM REDUCE_MAX REDUCE_MIN REDUCE_PROD REDUCE_ANY REDUCE_ALL": _reduction(),
        "ARG_MAX ARG_MIN": _reduction(),
        "MEAN": _reduction(1),
        "SOFTMAX LOG_SOFTMAX": _each(4),
        "L2_NORMALIZATION": _each(3),
        "CUMSUM": _each(1),
    },
    OpKind.MOVEMENT: dict.fromkeys(
        (
            "RESHAPE SQUEEZE EXPAND_DIMS TRANSPOSE PAD PADV2 MIRROR_PAD CONCATENATION PACK UNPACK"
            " SPLIT SPLIT_V SLICE STRIDED_SLICE TILE BROADCAST_TO DEPTH_TO_SPACE SPACE_TO_DEPTH"
            " BATCH_TO_SPACE_ND SPACE_TO_BATCH_ND RESIZE_NEAREST_NEIGHBOR REVERSE_V2 FILL SHAPE"
            " RANK RANGE ZEROS_LIKE DENSIFY READ_VARIABLE ASSIGN_VARIABLE VAR_HANDLE"
            " DYNAMIC_UPDATE_SLICE",
        ),
        _each(0),
    ),
    OpKind.GATHER: {"GATHER GATHER_ND EMBEDDING_LOOKUP ONE_HOT": _each(0)},
}  # fmt: skip
RULES: dict[str, tuple[OpKind, Formula]] = {
    name: (kind, formula)
    for kind, rows in _TABLE.items()
    for name, formula in by_name(rows).items()
}
"""Kind and FLOP of every operator that is counted."""
