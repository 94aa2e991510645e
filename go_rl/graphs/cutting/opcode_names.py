"""Names of operators: those of JAX, and what other formats call the same."""

from __future__ import annotations

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
}  # fmt: skip
"""Names of other formats; where one name stands for several of ours, the commonest."""


def opcode(op_type: str) -> str:
    """Return JAX's name of an operator, or its own where JAX has none."""
    return SAME.get(op_type, op_type)
