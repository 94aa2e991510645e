"""`Geometry` of JAX primitives, from their operands, results and parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from go_rl.core.graph.geometry import Geometry, window_geometry
from go_rl.graphs.readers.jax.primitives import REDUCTIONS
from go_rl.graphs.readers.jax.values import Equation, LoopPart, Params, Value
from go_rl.graphs.tables import by_name

Rule = Callable[[Sequence[Value], Sequence[Value], Params], Geometry]


def jax_geometry(equation: Equation) -> Geometry:
    """Return the geometry of one equation; inputs and what nothing is known of have the plain
    one."""
    if equation.eqn is None or isinstance(equation.eqn, LoopPart):
        return Geometry()
    rule = _reduction if equation.op_type in REDUCTIONS else _RULES.get(equation.op_type)
    if rule is None:
        return Geometry()
    return rule(equation.inputs, equation.outputs, equation.eqn.params)


def _convolution(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Geometry:
    left, right, _ = params["dimension_numbers"]
    return window_geometry(
        (inputs[1].shape[d] for d in right[2:]),
        params["window_strides"],
        _padding(params["padding"]),
        params["rhs_dilation"],
        params["lhs_dilation"],
        groups=params["feature_group_count"] * params["batch_group_count"],
        minor=left[1] == len(inputs[0].shape) - 1,
    )


def _window(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Geometry:
    window, padding = params["window_dimensions"], _padding(params["padding"])
    dilations, spread = params.get("window_dilation") or (), params.get("base_dilation") or ()
    minor, strides = bool(window) and window[-1] > 1, params["window_strides"]
    return window_geometry(window, strides, padding, dilations, spread, minor=minor)


def _padding(padding: Any) -> float:
    return float(sum(max(low, 0) + max(high, 0) for low, high, *_ in padding))


def _dot_general(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Geometry:
    contracted, _ = params["dimension_numbers"]
    left, right = (
        len(value.shape) - 1 in dims for value, dims in zip(inputs, contracted, strict=True)
    )
    return Geometry(minor=float(left) + 2.0 * float(right))


def _reduction(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Geometry:
    return _along(inputs, params.get("axes", ()))


def _along(inputs: Sequence[Value], dims: Sequence[int]) -> Geometry:
    return Geometry(minor=float(len(inputs[0].shape) - 1 in dims))


def _transpose(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Geometry:
    order = params["permutation"]
    return Geometry(minor=float(bool(order) and order[-1] != len(order) - 1))


def _resized(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Geometry:
    """Slices, gathers and updates: whether the result differs in the last dimension."""
    before, after = inputs[0].shape[-1:], outputs[0].shape[-1:]
    return Geometry(minor=float(before != after))


def _updated(update: int) -> Rule:
    """Whether the update, an operand, differs from the result in the last dimension."""
    return lambda i, o, p: Geometry(minor=float(i[update].shape[-1:] != o[0].shape[-1:]))


def _pad(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Geometry:
    config = params["padding_config"]
    return Geometry(
        padding=_padding(config),
        input_dilation=float(prod(1 + inner for _, _, inner in config)),
        minor=float(bool(config) and tuple(config[-1]) != (0, 0, 0)),
    )


def _slice(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Geometry:
    strides = params.get("strides") or (1,)
    resized = _resized(inputs, outputs, params)
    return Geometry(stride=float(prod(strides)), minor=resized.minor)


def _broadcast(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Geometry:
    """1 where every element is repeated along the last dimension."""
    kept, shape = params["broadcast_dimensions"], outputs[0].shape
    last = len(shape) - 1
    same = last in kept and inputs[0].shape[kept.index(last)] == shape[last]
    return Geometry(minor=float(bool(shape) and not same))


def _axis(name: str) -> Rule:
    return lambda inputs, outputs, params: _along(inputs, (int(params[name]),))


_RULES: dict[str, Rule] = by_name(
    {
        "argmax argmin": _reduction,
        "broadcast_in_dim": _broadcast,
        "concatenate sort": _axis("dimension"),
        "conv_general_dilated": _convolution,
        "cumlogsumexp cummax cummin cumprod cumsum split": _axis("axis"),
        "dot_general": _dot_general,
        "dynamic_slice gather": _resized,
        "dynamic_update_slice": _updated(1),
        "pad": _pad,
        "reduce_window reduce_window_max reduce_window_min reduce_window_sum": _window,
        "rev": lambda i, o, p: _along(i, p["dimensions"]),
        "scatter scatter-add": _updated(2),
        "select_and_gather_add select_and_scatter_add": _window,
        "slice": _slice,
        "top_k": lambda i, o, p: Geometry(minor=1.0),
        "transpose": _transpose,
    }
)
