"""Operators of StableHLO that read where other arrays say."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from go_rl.tuning.tvm.stablehlo.shapes import sliced
from go_rl.tuning.tvm.stablehlo.values import Emitter, HloCall, HloValue, Shape, Translate


def _gather(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    """Whole slices along the dimensions that are not indexed."""
    from jaxlib.mlir.dialects.stablehlo import GatherDimensionNumbers

    numbers = GatherDimensionNumbers(call.attributes["dimension_numbers"])
    value, indices = call.operands
    batched = tuple(numbers.operand_batching_dims)
    mapped = tuple(numbers.start_index_map)
    sizes = call.numbers("slice_sizes")
    read = (*batched, *mapped)
    if any(size != (1 if i in read else value.shape[i]) for i, size in enumerate(sizes)):
        raise call.refuse("it reads parts of slices")
    if any(i not in (*batched, *numbers.collapsed_slice_dims) for i in read):
        raise call.refuse("it keeps an indexed dimension")
    vectors = _index_vectors(call, indices, int(numbers.index_vector_dim), emitter)
    places = _bounded(call, vectors, [value.shape[i] for i in mapped], emitter)
    if batched:
        along = tuple(numbers.start_indices_batching_dims)
        places = _with_batch(places, [_after_vector(i, call, numbers) for i in along], emitter)
    others = tuple(i for i in range(len(value.shape)) if i not in read)
    table = emitter.permuted(emitter.whole(value), (*read, *others))
    if len(read) == 1:
        flat = emitter.reshaped(emitter.whole(places), places.shape[:-1])
        made = emitter.bind(emitter.op.take(table, flat, axis=0, mode="clip"))
    else:
        wide = emitter.bind(emitter.op.astype(emitter.whole(places), "int64"))
        made = emitter.bind(emitter.op.gather_nd(table, wide))
    offsets = tuple(numbers.offset_dims)
    batch = [i for i in range(len(call.shape)) if i not in offsets]
    back = tuple(int(i) for i in np.argsort((*batch, *offsets)))
    return (HloValue(emitter.permuted(made, back), call.shape, call.dtype),)


def _after_vector(axis: int, call: HloCall, numbers: Any) -> int:
    """A dimension of the indices, when that of their vectors is the last."""
    return axis if axis < int(numbers.index_vector_dim) else axis - 1


def _index_vectors(call: HloCall, indices: HloValue, axis: int, emitter: Emitter) -> HloValue:
    """Indices whose last dimension is that of their vectors."""
    rank = len(indices.shape)
    if axis == rank:
        shape: Shape = (*indices.shape, 1)
        given = indices.array() if indices.known else emitter.whole(indices)
        made = given.reshape(shape) if indices.known else emitter.reshaped(given, shape)
        return HloValue(made, shape, indices.dtype)
    if axis != rank - 1:
        raise call.refuse("the vectors of its indices do not lie in the last dimension")
    return indices


def _bounded(call: HloCall, indices: HloValue, sizes: list[int], emitter: Emitter) -> HloValue:
    """Indices that are moved into their ranges, as StableHLO says."""
    last = np.array(sizes, indices.dtype) - 1
    last = last.reshape((1,) * (len(indices.shape) - 1) + (-1,))
    if indices.known:
        made = np.minimum(np.maximum(indices.array(), 0), last)
        return HloValue(made, indices.shape, indices.dtype)
    const, op = emitter.relax.const, emitter.op
    low = emitter.bind(op.maximum(emitter.whole(indices), const(0, indices.dtype)))
    return emitter.result(op.minimum(low, const(last, indices.dtype)), indices.dtype, indices.shape)


def _with_batch(indices: HloValue, axes: list[int], emitter: Emitter) -> HloValue:
    """Index vectors that begin with the places along some dimensions of their own."""
    parts = []
    for axis in axes:
        sizes = tuple(n if i == axis else 1 for i, n in enumerate(indices.shape))
        counted = np.arange(indices.shape[axis]).astype(indices.dtype).reshape(sizes)
        whole = np.broadcast_to(counted, (*indices.shape[:-1], 1))
        parts.append(emitter.relax.const(np.ascontiguousarray(whole), indices.dtype))
    made = emitter.op.concat([*parts, emitter.whole(indices)], len(indices.shape) - 1)
    return emitter.result(made, indices.dtype)


def _dynamic_slice(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    value, *starts = call.operands
    sizes = call.numbers("slice_sizes")
    made = value
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        most = value.shape[axis] - size
        if most == 0:
            continue
        number = start.number
        if number is not None:
            first = min(max(int(number), 0), most)
            begin, end = [0] * len(sizes), list(made.shape)
            begin[axis], end[axis] = first, first + size
            made = sliced(made, begin, end, [1] * len(sizes), emitter)
            continue
        made = _taken(made, axis, (start, size, most), emitter)
    return (made,)


def _taken(
    value: HloValue, axis: int, part: tuple[HloValue, int, int], emitter: Emitter
) -> HloValue:
    """A part that begins where a computed number says."""
    start, size, most = part
    const, op = emitter.relax.const, emitter.op
    first = emitter.bind(op.maximum(emitter.whole(start), const(0, start.dtype)))
    first = emitter.bind(op.minimum(first, const(most, start.dtype)))
    places = emitter.bind(op.add(first, const(np.arange(size).astype(start.dtype), start.dtype)))
    return emitter.result(
        op.take(emitter.whole(value), places, axis=axis, mode="clip"), value.dtype
    )


def _top_k(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    count = call.whole_number("k")
    pair = emitter.bind(
        emitter.op.topk(
            emitter.whole(call.operands[0]), k=count, axis=-1, ret_type="both", largest=True,
            dtype=call.results[1][1],
        )
    )  # fmt: skip
    return tuple(
        HloValue(emitter.bind(pair[i]), shape, dtype)
        for i, (shape, dtype) in enumerate(call.results)
    )


RULES: Mapping[str, Translate] = MappingProxyType({
    "stablehlo.gather": _gather, "stablehlo.dynamic_slice": _dynamic_slice,
    "chlo.top_k": _top_k,
})  # fmt: skip
"""Translations by name."""
