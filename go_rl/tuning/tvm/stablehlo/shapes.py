"""Operators of StableHLO that move elements, and arrays that are written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from go_rl.tuning.tvm.stablehlo.values import Emitter, HloCall, HloValue, Shape, Translate


def _constant(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    given = call.attributes["value"]
    if "Resource" in type(given).__name__:
        raise call.refuse("its numbers are kept outside of the program")
    array = np.asarray(given).astype(call.dtype)
    if given.is_splat:
        array = array.ravel()[:1].reshape((1,) * len(call.shape))
    return (HloValue(array, call.shape, call.dtype),)


def _iota(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    along = call.whole_number("iota_dimension")
    shape = tuple(size if i == along else 1 for i, size in enumerate(call.shape))
    made = np.arange(call.shape[along]).astype(call.dtype).reshape(shape)
    return (HloValue(made, call.shape, call.dtype),)


def _broadcast(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    (value,) = call.operands
    places = call.numbers("broadcast_dimensions")
    order = tuple(int(i) for i in np.argsort(places))
    if order != tuple(range(len(order))):
        value = transposed(value, order, emitter)
        places = tuple(sorted(places))
    sizes = value.made_shape
    shape = [1] * len(call.shape)
    for place, size in zip(places, sizes, strict=True):
        shape[place] = size
    return (HloValue(_reshaped(value, tuple(shape), emitter), call.shape, call.dtype),)


def _reshape(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    (value,) = call.operands
    if value.number is not None:
        made: Any = value.made.reshape((1,) * len(call.shape))
    elif value.known:
        made = value.array().reshape(call.shape)
    else:
        made = emitter.reshaped(emitter.whole(value), call.shape)
    return (HloValue(made, call.shape, call.dtype),)


def _reshaped(value: HloValue, shape: Shape, emitter: Emitter) -> Any:
    """``made`` of a value in another shape of as many elements."""
    return value.made.reshape(shape) if value.known else emitter.reshaped(value.made, shape)


def transposed(value: HloValue, axes: tuple[int, ...], emitter: Emitter) -> HloValue:
    """Return an array whose dimension i is dimension ``axes[i]`` of the given one."""
    shape = tuple(value.shape[axis] for axis in axes)
    if value.known:
        return HloValue(np.transpose(value.made, axes), shape, value.dtype)
    return HloValue(emitter.permuted(value.made, axes), shape, value.dtype)


def _transpose(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    return (transposed(call.operands[0], call.numbers("permutation"), emitter),)


def _slice(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    starts, ends = call.numbers("start_indices"), call.numbers("limit_indices")
    return (sliced(call.operands[0], starts, ends, call.numbers("strides"), emitter),)


def sliced(
    value: HloValue,
    starts: Sequence[int],
    ends: Sequence[int],
    strides: Sequence[int],
    emitter: Emitter,
) -> HloValue:
    """Return each ``strides``-th element from ``starts`` to before ``ends``, by dimension."""
    each = tuple(map(slice, starts, ends, strides))
    shape = tuple(
        len(range(*one.indices(size))) for one, size in zip(each, value.shape, strict=True)
    )
    if shape == value.shape:
        return value
    made = value.made_shape
    axes = [i for i, size in enumerate(made) if size == value.shape[i] and size != shape[i]]
    if value.known:
        taken = tuple(one if i in axes else slice(None) for i, one in enumerate(each))
        return HloValue(value.made[taken], shape, value.dtype)
    if not axes:
        return HloValue(value.made, shape, value.dtype)
    chosen = ([numbers[i] for i in axes] for numbers in (starts, ends, strides))
    return HloValue(
        emitter.bind(emitter.op.strided_slice(value.made, axes, *chosen)), shape, value.dtype
    )


def _concatenate(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    along = call.whole_number("dimension")
    if all(value.known for value in call.operands):
        made = np.concatenate([value.array() for value in call.operands], along)
        return (HloValue(made, call.shape, call.dtype),)
    if len(call.operands) == 1:
        return call.operands
    parts = [emitter.whole(value) for value in call.operands]
    return (emitter.result(emitter.op.concat(parts, along), call.dtype),)


def _pad(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    value, filling = call.operands
    number = filling.number
    if number is None:
        raise call.refuse("what it pads with is computed")
    low, high = call.numbers("edge_padding_low"), call.numbers("edge_padding_high")
    inner = tuple(1 + each for each in call.numbers("interior_padding"))
    if any(each > 1 for each in inner) and float(number) != 0.0:
        raise call.refuse("it puts other numbers than zero between elements")
    value = dilated(value, inner, emitter)
    starts = [max(-each, 0) for each in low]
    ends = [size - max(-each, 0) for size, each in zip(value.shape, high, strict=True)]
    value = sliced(value, starts, ends, [1] * len(starts), emitter)
    return (padded(value, low, high, float(number), emitter),)


def padded(
    value: HloValue, low: Sequence[int], high: Sequence[int], number: float, emitter: Emitter
) -> HloValue:
    """Return an array within a frame of a number; negative widths are none."""
    widths = [(max(a, 0), max(b, 0)) for a, b in zip(low, high, strict=True)]
    if not any(map(any, widths)):
        return value
    if value.known:
        made = np.pad(value.array(), widths, constant_values=number)
        return HloValue(made, made.shape, value.dtype)
    flat = [each for pair in widths for each in pair]
    return emitter.result(
        emitter.op.nn.pad(emitter.whole(value), flat, pad_value=number), value.dtype
    )


def dilated(value: HloValue, factors: Sequence[int], emitter: Emitter) -> HloValue:
    """Return an array with ``factors[i] - 1`` zeros between elements along dimension i."""
    for axis, factor in enumerate(factors):
        if factor > 1:
            value = _dilated(value, axis, factor, emitter)
    return value


def _dilated(value: HloValue, axis: int, factor: int, emitter: Emitter) -> HloValue:
    """Each element becomes a row of its own, which zeros fill; the last row's are cut off."""
    shape, size = value.shape, value.shape[axis]
    whole = value.array() if value.known else emitter.whole(value)
    apart = HloValue(whole, shape, value.dtype)
    split = (*shape[: axis + 1], 1, *shape[axis + 1 :])
    rows = HloValue(_reshaped(apart, split, emitter), split, value.dtype)
    after = [0] * len(split)
    after[axis + 1] = factor - 1
    rows = padded(rows, [0] * len(split), after, 0.0, emitter)
    joined = (*shape[:axis], size * factor, *shape[axis + 1 :])
    made = HloValue(_reshaped(rows, joined, emitter), joined, value.dtype)
    ends = [(size - 1) * factor + 1 if i == axis else n for i, n in enumerate(joined)]
    return sliced(made, [0] * len(ends), ends, [1] * len(ends), emitter)


def _reverse(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    (value,) = call.operands
    axes = tuple(i for i in call.numbers("dimensions") if value.made_shape[i] > 1)
    if value.known:
        return (HloValue(np.flip(value.made, axes), call.shape, call.dtype),)
    made = value.made
    for axis in axes:
        made = emitter.bind(emitter.op.flip(made, axis))
    return (HloValue(made, call.shape, call.dtype),)


def _same(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    return call.operands


RULES: Mapping[str, Translate] = MappingProxyType({
    "stablehlo.constant": _constant, "stablehlo.iota": _iota,
    "stablehlo.broadcast_in_dim": _broadcast, "stablehlo.reshape": _reshape,
    "stablehlo.transpose": _transpose, "stablehlo.slice": _slice,
    "stablehlo.concatenate": _concatenate, "stablehlo.pad": _pad,
    "stablehlo.reverse": _reverse, "stablehlo.optimization_barrier": _same,
})  # fmt: skip
"""Translations by name."""
