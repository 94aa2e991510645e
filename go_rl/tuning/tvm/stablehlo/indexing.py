"""Operators of StableHLO that read and write where other arrays say."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from go_rl.tuning.tvm.stablehlo.elementwise import applied, direction_of
from go_rl.tuning.tvm.stablehlo.reductions import combination
from go_rl.tuning.tvm.stablehlo.shapes import sliced, transposed
from go_rl.tuning.tvm.stablehlo.values import Emitter, HloCall, HloValue, Translate
from go_rl.tuning.tvm.stablehlo.windows import INDEX, Windows, as_index, place, starts_of

_WRITES: Mapping[str, str] = MappingProxyType({
    "update": "update", "add": "add", "multiply": "mul", "maximum": "max", "minimum": "min",
})  # fmt: skip
"""How Relax combines what is there with what is written."""


def _gather(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    from jaxlib.mlir.dialects.stablehlo import GatherDimensionNumbers

    numbers = GatherDimensionNumbers(call.attributes["dimension_numbers"])
    value, indices = call.operands
    batched = tuple(numbers.operand_batching_dims)
    along = (batched, tuple(numbers.start_indices_batching_dims))
    vector, mapped = int(numbers.index_vector_dim), tuple(numbers.start_index_map)
    starts = starts_of(indices, vector, mapped, along, emitter)
    sizes = call.numbers("slice_sizes")
    windows = Windows(value, starts, sizes, emitter).moved_within()
    rows = emitter.reshaped(emitter.whole(windows.rows()), (prod(windows.shape),))
    made = emitter.bind(emitter.op.take(windows.table, rows, axis=0, mode="clip"))
    absent = (*batched, *numbers.collapsed_slice_dims)
    kept = [i for i in windows.order if i not in absent]
    made = emitter.reshaped(made, (*windows.batch, *(sizes[i] for i in kept)))
    offsets = tuple(numbers.offset_dims)
    batch = [i for i in range(len(call.shape)) if i not in offsets]
    places = [offsets[sorted(kept).index(i)] for i in kept]
    back = tuple(int(i) for i in np.argsort((*batch, *places)))
    return (HloValue(emitter.permuted(made, back), call.shape, call.dtype),)


def _scatter(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    from jaxlib.mlir.dialects.stablehlo import ScatterDimensionNumbers

    if len(call.operands) != 3:
        raise call.refuse("it writes into several arrays at once")
    value, indices, updates = call.operands
    numbers = ScatterDimensionNumbers(call.attributes["scatter_dimension_numbers"])
    batched, offsets = tuple(numbers.input_batching_dims), tuple(numbers.update_window_dims)
    along = (batched, tuple(numbers.scatter_indices_batching_dims))
    vector, mapped = int(numbers.index_vector_dim), tuple(numbers.scattered_dims_to_operand_dims)
    absent = (*batched, *numbers.inserted_window_dims)
    kept = [i for i in range(len(value.shape)) if i not in absent]
    sizes = [1] * len(value.shape)
    for axis, offset in zip(kept, offsets, strict=True):
        sizes[axis] = updates.shape[offset]
    starts = starts_of(indices, vector, mapped, along, emitter)
    batch = tuple(i for i in range(len(updates.shape)) if i not in offsets)
    windows = Windows(value, starts, tuple(sizes), emitter)
    inner = tuple(offsets[kept.index(i)] for i in windows.order if i in kept)
    given = transposed(updates, (*batch, *inner), emitter)
    return (_written(windows, given, _mode(call), emitter),)


def _mode(call: HloCall) -> str:
    """How Relax combines what is there with what is written."""
    block = call.regions[0].blocks[0]
    (first, *more) = [each.operation for each in block.operations]
    if more:
        how = combination(call)
    else:
        how = "update" if first.operands[0] == block.arguments[1] else "what is there"
    if how not in _WRITES:
        raise call.refuse(f"it combines by {how}")
    return _WRITES[how]


def _written(windows: Windows, given: HloValue, mode: str, emitter: Emitter) -> HloValue:
    """The array of windows with what is written: ``given``, its rows in the order of the windows'.

    A window that does not lie wholly within the array is not written; its rows go to one more row
    of the array, which is cut off.
    """
    op, rows, fits, table = emitter.op, windows.rows(), windows.fits(), windows.table
    dropped = not (fits.known and bool(fits.made.all()))
    if dropped:
        spare = place(windows.count, windows.shape)
        rows = applied(emitter, ("where", np.where), fits, rows, spare, dtype=INDEX)
        more = emitter.relax.const(np.zeros((1, *windows.row), given.dtype), given.dtype)
        table = emitter.bind(op.concat([table, more], 0))
    flat = emitter.reshaped(emitter.whole(rows), (prod(windows.shape), 1))
    content = emitter.reshaped(emitter.whole(given), (prod(windows.shape), *windows.row))
    made = emitter.bind(op.scatter_nd(table, flat, content, mode))
    if dropped:
        made = emitter.bind(op.strided_slice(made, [0], [0], [windows.count], [1]))
    return windows.back(made)


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
        made = _taken(made, axis, (start, size), emitter)
    return (made,)


def _taken(value: HloValue, axis: int, part: tuple[HloValue, int], emitter: Emitter) -> HloValue:
    """A part that begins where a computed number says."""
    start, size = part
    sizes = tuple(size if i == axis else n for i, n in enumerate(value.shape))
    windows = Windows(value, {axis: as_index(start, (), emitter)}, sizes, emitter).moved_within()
    rows = emitter.whole(windows.rows())
    return emitter.result(
        emitter.op.take(emitter.whole(value), rows, axis=axis, mode="clip"), value.dtype
    )


def _dynamic_update_slice(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    value, updates, *given = call.operands
    sizes = zip(value.shape, updates.shape, strict=True)
    moved = [i for i, (whole, part) in enumerate(sizes) if whole != part]
    if not moved:
        return (updates,)
    starts = {i: as_index(given[i], (), emitter) for i in moved}
    windows = Windows(value, starts, updates.shape, emitter).moved_within()
    return (_written(windows, transposed(updates, windows.order, emitter), "update", emitter),)


def _sort(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    """Arrays in the order of one of them."""
    key, descending = _order(call)
    axis = call.whole_number("dimension")
    given = [emitter.whole(each) for each in call.operands]
    order = emitter.op.argsort(given[key], axis=axis, descending=descending, dtype=INDEX)
    places = emitter.bind(order)
    return tuple(
        emitter.result(emitter.op.gather_elements(each, places, axis=axis), dtype)
        for each, (_, dtype) in zip(given, call.results, strict=True)
    )


def _order(call: HloCall) -> tuple[int, bool]:
    """Which operand decides on the order, and whether its greatest element comes first."""
    block = call.regions[0].blocks[0]
    last = next(iter([*block.operations][-1].operation.operands)).owner
    if last.name != "stablehlo.compare":
        raise call.refuse("it sorts by several arrays")
    direction = direction_of(last.attributes)
    places = [_argument(each) for each in last.operands]
    if direction not in ("LT", "GT") or places[0] % 2 or places[1] != places[0] + 1:
        raise call.refuse("it sorts by a rule of its own")
    return places[0] // 2, direction == "GT"


def _argument(value: Any) -> int:
    """Number of the argument that a compared value is; JAX replaces -0 and NaN by others of
    equal rank before."""
    while not hasattr(value, "arg_number"):
        value = value.owner.operands[-1]
    return int(value.arg_number)


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
    "stablehlo.gather": _gather, "stablehlo.scatter": _scatter,
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice, "stablehlo.sort": _sort,
    "chlo.top_k": _top_k,
})  # fmt: skip
"""Translations by name."""
