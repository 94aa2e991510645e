"""Names of operators: those of JAX, and what other formats call the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int32

from go_rl.graphs.tables import by_name, names

_ALIKE = names(
    "abs add argmax argmin ceil clamp copy cos cumsum div eq erf exp expm1 floor gather ge gt le"
    " log log1p lt max min mul ne neg pad pow reshape round rsqrt scatter sign sin slice sort split"
    " sqrt square sub tanh transpose"
)
"""Operators of PyTorch that JAX calls the same."""
_TORCH = {name: name for name in _ALIKE} | by_name(
    {
        "_native_batch_norm_legit_no_training batch_norm": "BatchNormalization",
        "_softmax softmax": "Softmax",
        "_log_softmax log_softmax": "LogSoftmax",
        "_to_copy to": "convert_element_type",
        "addmm baddbmm bmm einsum linear matmul mm mv": "dot_general",
        "amax": "reduce_max",
        "amin": "reduce_min",
        "avg_pool2d": "reduce_window_sum",
        "bitwise_and logical_and": "and",
        "bitwise_not logical_not": "not",
        "bitwise_or logical_or": "or",
        "cat stack": "concatenate",
        "constant_pad_nd": "pad",
        "conv1d conv2d conv3d conv_transpose2d convolution convolution_backward":
            "conv_general_dilated",
        "embedding index index_select": "gather",
        "flip": "rev",
        "gelu": "Gelu",
        "group_norm": "GroupNormalization",
        "layer_norm native_layer_norm": "LayerNormalization",
        "masked_fill where": "select_n",
        "max_pool2d max_pool2d_with_indices": "reduce_window_max",
        "maximum relu": "max",
        "mean sum": "reduce_sum",
        "minimum": "min",
        "prod": "reduce_prod",
        "remainder": "rem",
        "scatter_add": "scatter-add",
        "select": "slice",
        "sigmoid": "logistic",
        "topk": "top_k",
        "unbind": "split",
    }
)  # fmt: skip
"""Names of PyTorch's operators (ATen), and of its normalisations those of ONNX."""
SAME: dict[str, str] = {
    # ONNX
    "Abs": "abs", "Add": "add", "And": "and", "ArgMax": "argmax", "ArgMin": "argmin",
    "AveragePool": "reduce_window_sum", "Cast": "convert_element_type", "Ceil": "ceil",
    "Clip": "clamp", "Concat": "concatenate", "Conv": "conv_general_dilated",
    "ConvTranspose": "conv_general_dilated", "Cos": "cos", "CumSum": "cumsum", "Div": "div",
    "Equal": "eq", "Erf": "erf", "Exp": "exp", "Expand": "broadcast_in_dim", "Flatten": "reshape",
    "Floor": "floor", "Gather": "gather", "Gemm": "dot_general",
    "GlobalAveragePool": "reduce_sum", "Greater": "gt", "GreaterOrEqual": "ge", "Less": "lt",
    "LessOrEqual": "le", "Log": "log", "MatMul": "dot_general", "Max": "max",
    "MaxPool": "reduce_window_max", "Min": "min", "Mod": "rem", "Mul": "mul", "Neg": "neg",
    "Not": "not", "Or": "or", "Pad": "pad", "Pow": "pow", "ReduceMax": "reduce_max",
    "ReduceMean": "reduce_sum", "ReduceMin": "reduce_min", "ReduceProd": "reduce_prod",
    "ReduceSum": "reduce_sum", "Relu": "max", "Reshape": "reshape", "Round": "round",
    "ScatterND": "scatter", "Sigmoid": "logistic", "Sign": "sign", "Sin": "sin", "Slice": "slice",
    "Split": "split", "Sqrt": "sqrt", "Squeeze": "squeeze", "Sub": "sub", "Tanh": "tanh",
    "TopK": "top_k", "Transpose": "transpose", "Unsqueeze": "expand_dims", "Where": "select_n",
    # HLO and StableHLO
    "broadcast": "broadcast_in_dim", "compare": "eq", "convert": "convert_element_type",
    "convolution": "conv_general_dilated", "cosine": "cos", "divide": "div", "dot": "dot_general",
    "dynamic-slice": "dynamic_slice", "dynamic-update-slice": "dynamic_update_slice",
    "exponential": "exp", "exponential-minus-one": "expm1", "log-plus-one": "log1p",
    "maximum": "max", "minimum": "min", "multiply": "mul", "negate": "neg", "power": "pow",
    "reduce": "reduce_sum", "reduce-window": "reduce_window_sum", "remainder": "rem",
    "reverse": "rev", "select": "select_n", "select-and-scatter": "select_and_scatter_add",
    "sine": "sin", "subtract": "sub",
    **{f"aten.{name}": same for name, same in _TORCH.items()},
}  # fmt: skip
"""Names of other formats; where one name stands for several of ours, the commonest."""


def opcode(op_type: str) -> str:
    """Return JAX's name of an operator, or its own where JAX has none."""
    return SAME.get(op_type, op_type)


UNKNOWN = 0
"""Number of every opcode that a vocabulary lacks."""


def opcode_numbers(op_types: Sequence[str], vocabulary: Sequence[str]) -> Int32[np.ndarray, "n"]:
    """Return [n] places in the vocabulary, counted from 1; `UNKNOWN` for what it lacks."""
    number = {name: i + 1 for i, name in enumerate(vocabulary)}
    known = {op_type: number.get(opcode(op_type), UNKNOWN) for op_type in set(op_types)}
    return np.array([known[op_type] for op_type in op_types], np.int32)


def vocabulary_of(op_types: Sequence[str]) -> tuple[str, ...]:
    """Return the distinct opcodes, sorted."""
    return tuple(sorted({opcode(op_type) for op_type in op_types}))
