"""FLOP and bytes of every JAX primitive, as XLA counts them on the unoptimised program.

The common primitives are closed-form; the rest are priced by XLA itself, one primitive at a time
(`xla_cost`). Two of XLA's conventions are worth knowing: a transpose is a change of layout and
costs nothing, and a transcendental function (exp, tanh, rsqrt, erf, …) is no FLOP.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from go_rl.core.errors import UnknownOperatorError
from go_rl.graphs.readers.cost import Cost
from go_rl.graphs.readers.hlo.window import Window
from go_rl.graphs.readers.jax.library import LIBRARY
from go_rl.graphs.readers.jax.primitives import (
    ELEMENTWISE,
    ONE_FLOP,
    REDUCTIONS,
    REFUSED,
    TRANSCENDENTAL,
)
from go_rl.graphs.readers.jax.values import Params, Value
from go_rl.graphs.readers.jax.xla_cost import cost_key, xla_cost, xla_saving
from go_rl.graphs.tables import by_name

Rule = Callable[[Sequence[Value], Sequence[Value], Params], Cost | None]
"""Cost from operands, results and parameters; None: leave it to XLA."""


def cost_of(
    primitive: Any, inputs: Sequence[Value], outputs: Sequence[Value], params: Params, unknown: str
) -> Cost:
    """Return what one equation costs.

    Raises:
        UnknownOperatorError: neither go_rl nor XLA knows the primitive, and ``unknown`` is not
            ``bytes``.
    """
    name = primitive.name
    if name not in REFUSED:
        rule = _rule(name)
        cost = rule(inputs, outputs, params) if rule else None
        if cost is None:
            cost = xla_cost(primitive, inputs, params)
        if cost is not None:
            return cost
    if unknown == "bytes":
        return _plain(inputs, outputs)
    reason = REFUSED.get(name, "its cost is not known")
    raise UnknownOperatorError(
        f"primitive {name!r}: {reason}; pass unknown='bytes' (--unknown bytes) to count it by the "
        "bytes of its operands and results only"
    )


def shared_splats(
    primitive: Any,
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    params: Params,
    seen: set[Any],
) -> Cost:
    """Return what to take off because XLA keeps one copy of equal filled constants a function.

    ``x * 2.0`` first fills an array with 2.0; the second use of that array in the same function
    (``seen`` belongs to it) costs its reading only. So do the constants inside a composite
    lowering such as erfc's.
    """
    name = primitive.name
    if name not in ELEMENTWISE and name != "broadcast_in_dim":
        return Cost()
    if _rule(name) is None:
        key = cost_key(primitive, inputs, params)
        saving = xla_saving(primitive, inputs, params) if key in seen else Cost()
        seen.add(key)
        return saving
    out, spared = outputs[0], 0.0
    for value in inputs:
        if value.shape != () or out.shape == () or not value.is_literal:
            continue
        key = (repr(np.asarray(value.known).item()), str(value.dtype), out.shape)
        if key in seen:
            spared -= value.itemsize * (1 + out.size)
        seen.add(key)
    return Cost(0.0, spared)


def _rule(name: str) -> Rule | None:
    if name in ONE_FLOP:
        return _one_flop
    if name in TRANSCENDENTAL:
        return lambda i, o, p: Cost(0.0, _elementwise_bytes(i, o))
    if name in REDUCTIONS:
        return _reduce
    if name in LIBRARY:
        return lambda i, o, p: _plain(i, o, float(LIBRARY[name](i, o, p)))
    return _RULES.get(name)


def _plain(inputs: Sequence[Value], outputs: Sequence[Value], flops: float = 0.0) -> Cost:
    return Cost(flops, _total((*inputs, *outputs)))


def _total(values: Sequence[Value]) -> float:
    return float(sum(v.num_bytes for v in values))


def _elementwise_bytes(inputs: Sequence[Value], outputs: Sequence[Value]) -> float:
    """Operands of another size are first broadcast to the result's, as JAX lowers them."""
    out = outputs[0]
    total = out.num_bytes
    for value in inputs:
        total += out.size * value.itemsize
        if value.size != out.size:
            total += _broadcast_bytes(value, out.size)
    return total


def _broadcast_bytes(value: Value, size: int) -> float:
    """XLA drops dimensions of one by a copy and a reshape before it broadcasts."""
    dropped = 4 * value.num_bytes if 1 in value.shape else 0.0
    return dropped + value.num_bytes + size * value.itemsize


def _one_flop(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Cost | None:
    if len(inputs) > 3:  # a select between more than two cases is lowered to several
        return None
    return Cost(float(outputs[0].size), _elementwise_bytes(inputs, outputs))


def _reduce(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Cost:
    x, out = inputs[0], outputs[0]
    return Cost(float(max(x.size - out.size, 0)), x.num_bytes + out.num_bytes + x.itemsize)


def _dot_general(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Cost:
    (contracted, _), _ = params["dimension_numbers"]
    depth = prod(inputs[0].shape[d] for d in contracted)
    return _plain(inputs, outputs, 2.0 * outputs[0].size * depth)


def _ragged_dot(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Cost:
    """``2 M K N``: every token meets one group.

    Where the contracted dimension is ragged, the result has one product for each group.
    """
    numbers = params["ragged_dot_dimension_numbers"]
    (contracted, _), _ = numbers.dot_dimension_numbers
    depth = prod(inputs[0].shape[d] for d in contracted)
    per_group = set(contracted) & set(numbers.lhs_ragged_dimensions)
    groups = inputs[2].shape[-1] if per_group else 1
    return _plain(inputs, outputs, 2.0 * outputs[0].size * depth / groups)


def _scaled_matmul(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Cost:
    """The product of block-scaled ``[B, M, K]`` and ``[B, N, K]``, and one scaling of each."""
    lhs, rhs = inputs[0], inputs[1]
    return _plain(inputs, outputs, 2.0 * outputs[0].size * lhs.shape[-1] + lhs.size + rhs.size)


def _integer_pow(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Cost | None:
    exponent = int(params["y"])
    if exponent < 1:
        return None
    products = exponent.bit_length() + exponent.bit_count() - 2
    return Cost(float(products * outputs[0].size), 3.0 * products * outputs[0].num_bytes)


def _convert(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Cost | None:
    x, out = inputs[0], outputs[0]
    if x.dtype == out.dtype:
        return Cost()
    if out.dtype == np.bool_:
        return None
    return _plain(inputs, outputs, float(out.size))


def _broadcast_in_dim(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Cost:
    x, out = inputs[0], outputs[0]
    dims = params["broadcast_dimensions"]
    grown = [d for d, size in zip(dims, x.shape, strict=True) if size != out.shape[d]]
    between = out.size / prod(out.shape[d] for d in grown) if out.size else 0
    dropped = 4 * between * x.itemsize if grown else 0.0
    return Cost(0.0, x.num_bytes + dropped + out.num_bytes)


def _dynamic_slice(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Cost:
    """XLA counts one of the indices, for any number of them."""
    return Cost(0.0, 2 * outputs[0].num_bytes + inputs[1].num_bytes)


def _reduce_window(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Cost:
    x, out = inputs[0], outputs[0]
    window = prod(params["window_dimensions"])
    return _plain((x,), (out,), float(out.size * (window - 1))) + Cost(0.0, float(x.itemsize))


def _convolution(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Cost:
    """2 × batch × output features × input features a group × valid kernel positions.

    A kernel tap that falls on padding, or between the elements that the left-hand side's dilation
    has spread, multiplies nothing and is not counted.
    """
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    left, right, out = inputs[0].shape, inputs[1].shape, outputs[0].shape
    names = ("window_strides", "padding", "lhs_dilation", "rhs_dilation")
    positions, settings = 1, zip(*(params[name] for name in names), strict=True)
    for d, (stride, (low, _), spread, dilation) in enumerate(settings, start=2):
        window = Window(right[rhs_spec[d]], stride, low, spread, dilation)
        positions *= window.valid_positions(left[lhs_spec[d]], out[out_spec[d]])
    channels = left[lhs_spec[1]] // params["feature_group_count"]
    batch = left[lhs_spec[0]] // params["batch_group_count"]
    products = positions * channels * batch * out[out_spec[1]]
    return _plain(inputs, outputs, 2.0 * products)


def _cumulative(inputs: Sequence[Value], outputs: Sequence[Value], params: Params) -> Cost:
    """One FLOP an element; XLA's reduce-window, which it rewrites, would count the axis' length."""
    return _plain(inputs, outputs, float(outputs[0].size)) + Cost(0.0, float(inputs[0].itemsize))


_RULES: dict[str, Rule] = by_name(
    {
        "broadcast_in_dim": _broadcast_in_dim,
        "concatenate expand_dims pad reshape rev squeeze": lambda i, o, p: _plain(i, o),
        "conv_general_dilated": _convolution,
        "convert_element_type": _convert,
        "cummax cummin cumprod cumsum": _cumulative,
        "dot_general": _dot_general,
        "dynamic_slice": _dynamic_slice,
        "dynamic_update_slice": lambda i, o, p: Cost(0.0, 2 * i[1].num_bytes + i[2].num_bytes),
        "empty empty2": lambda i, o, p: Cost(),
        "integer_pow": _integer_pow,
        "iota": lambda i, o, p: _plain((), o),
        "ragged_dot_general": _ragged_dot,
        "reduce_window_max reduce_window_min reduce_window_sum": _reduce_window,
        "scaled_matmul_wrapper": _scaled_matmul,
        "slice split": lambda i, o, p: Cost(0.0, 2.0 * _total(o)),
        "square": lambda i, o, p: Cost(float(o[0].size), 3.0 * o[0].num_bytes),
        "transpose": lambda i, o, p: Cost(),
    }
)
