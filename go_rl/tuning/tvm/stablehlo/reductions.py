"""Reductions of StableHLO, over dimensions and over windows."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from go_rl.tuning.tvm.stablehlo.elementwise import direction_of
from go_rl.tuning.tvm.stablehlo.values import Emitter, HloCall, HloValue, Translate

_SUM, _MAX, _MIN, _PRODUCT, _AND, _OR = "add", "maximum", "minimum", "multiply", "and", "or"
_RELAX: Mapping[str, str] = MappingProxyType(
    {_SUM: "sum", _MAX: "max", _MIN: "min", _PRODUCT: "prod", _AND: "min", _OR: "max"}
)
_NUMPY: Mapping[str, Any] = MappingProxyType({
    _SUM: np.add, _MAX: np.maximum, _MIN: np.minimum, _PRODUCT: np.multiply,
    _AND: np.logical_and, _OR: np.logical_or,
})  # fmt: skip
_RUNNING: Mapping[str, str] = MappingProxyType({_SUM: "cumsum", _PRODUCT: "cumprod"})
POOLED = 3
"""Dimensions that a window covers, at most."""
IMAGE = 2
"""Dimensions of an image, at least."""


def _reduce(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    if len(call.results) == 2:
        return _arg_best(call, emitter)
    how = combination(call)
    value, initial = call.operands
    axes = list(call.numbers("dimensions"))
    if value.known:
        made = _NUMPY[how].reduce(value.array(), axis=tuple(axes), initial=initial.made.item())
        return (HloValue(np.asarray(made, call.dtype), call.shape, call.dtype),)
    _check_begin(call, how, initial)
    given = emitter.whole(value)
    if call.dtype == "bool":
        given = emitter.bind(emitter.op.astype(given, "int32"))
    made = emitter.bind(getattr(emitter.op, _RELAX[how])(given, axis=axes))
    if call.dtype == "bool":
        made = emitter.bind(emitter.op.astype(made, "bool"))
    return (HloValue(made, call.shape, call.dtype),)


def combination(call: HloCall) -> str:
    """Return the operator by which a reduction combines two elements, by its name."""
    block = call.regions[0].blocks[0]
    names = [operation.operation.name for operation in block.operations]
    how = names[0].partition(".")[2]
    if len(names) != 2 or how not in _RELAX:
        raise call.refuse(f"it combines by {', '.join(names[:-1])}")
    return how


def _check_begin(call: HloCall, how: str, initial: HloValue) -> None:
    """Refuse a reduction whose first number changes its result."""
    if not _is_neutral(how, initial):
        raise call.refuse("it begins with another number than that which changes nothing")


def _is_neutral(how: str, initial: HloValue) -> bool:
    number = initial.number
    if number is None:
        return False
    if how in (_MAX, _MIN) and np.issubdtype(number.dtype, np.floating):
        return float(number) == (-np.inf if how == _MAX else np.inf)
    if how in (_MAX, _MIN) and np.issubdtype(number.dtype, np.integer):
        limits = np.iinfo(number.dtype)
        return int(number) == (limits.min if how == _MAX else limits.max)
    return float(number) == {_SUM: 0, _PRODUCT: 1, _AND: 1, _OR: 0, _MAX: 0, _MIN: 1}[how]


def _arg_best(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    """The greatest or smallest elements and where they are: a reduction of elements and numbers."""
    value, numbers = call.operands[:2]
    axes = call.numbers("dimensions")
    counted = numbers.known and len(axes) == 1 and numbers.made.shape[axes[0]] == numbers.made.size
    counted = counted and (numbers.made.ravel() == np.arange(numbers.made.size)).all()
    first = next(iter(call.regions[0].blocks[0].operations)).operation
    if not counted or first.name != "stablehlo.compare":
        raise call.refuse("it reduces two arrays at once")
    direction = direction_of(first.attributes)
    if direction not in ("GT", "GE", "LT", "LE"):
        raise call.refuse("it reduces two arrays at once")
    greatest, given = direction.startswith("G"), emitter.whole(value)
    best = (emitter.op.max if greatest else emitter.op.min)(given, axis=list(axes))
    place = (emitter.op.argmax if greatest else emitter.op.argmin)(given, axis=axes[0])
    where = emitter.bind(emitter.op.astype(emitter.bind(place), call.results[1][1]))
    return (
        HloValue(emitter.bind(best), call.shape, call.dtype),
        HloValue(where, call.results[1][0], call.results[1][1]),
    )


def _reduce_window(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    how = combination(call)
    value, initial = call.operands
    rank = len(value.shape)
    ones, edges = (1,) * rank, call.numbers("padding", (0, 0) * rank)
    sizes = call.numbers("window_dimensions")
    strides = call.numbers("window_strides", ones)
    _check_begin(call, how, initial)
    if {*call.numbers("base_dilations", ones), *call.numbers("window_dilations", ones)} != {1}:
        raise call.refuse("its windows or elements are apart")
    axes = [i for i in range(rank)
            if (sizes[i], strides[i], edges[2 * i], edges[2 * i + 1]) != (1, 1, 0, 0)]  # fmt: skip
    if len(axes) == 1 and how in _RUNNING and _is_running(call, axes[0]):
        made = getattr(emitter.op, _RUNNING[how])(emitter.whole(value), axis=axes[0])
        return (emitter.result(made, call.dtype),)
    if how not in (_MAX, _MIN, _SUM):
        raise call.refuse(f"windows are combined by {how}")
    if len(axes) > POOLED:
        raise call.refuse(f"its windows have {len(axes)} dimensions")
    return (_pooled(call, how, axes, emitter),)


def _is_running(call: HloCall, axis: int) -> bool:
    """Whether windows end at each element and begin before the first: running sums."""
    size, edges = call.operands[0].shape[axis], call.numbers("padding")
    return (
        call.numbers("window_dimensions")[axis] == size
        and call.numbers("window_strides", (1,) * len(call.shape))[axis] == 1
        and edges[2 * axis : 2 * axis + 2] == (size - 1, 0)
    )


def _pooled(call: HloCall, how: str, axes: list[int], emitter: Emitter) -> HloValue:
    """Pooling of images, or of volumes: channels last, or the pooled dimensions moved to the
    end."""
    value, edges = call.operands[0], call.numbers("padding", (0, 0) * len(call.shape))
    rank = len(value.shape)
    axes = axes or [rank - 1]
    missing = max(IMAGE - len(axes), 0)
    strides, sizes = call.numbers("window_strides", (1,) * rank), call.numbers("window_dimensions")
    one, last = [1] * missing, axes == [*range(1, rank - 1)] and not missing
    options: dict[str, Any] = {
        "pool_size": (*one, *(sizes[i] for i in axes)),
        "strides": (*one, *(strides[i] for i in axes)),
        "padding": (*([0] * missing), *(edges[2 * i] for i in axes),
                    *([0] * missing), *(edges[2 * i + 1] for i in axes)),
        "layout": _layout(missing + len(axes), last),
    }  # fmt: skip
    given = emitter.whole(value)
    if last:
        return HloValue(_pool(how, given, options, emitter), call.shape, call.dtype)
    others = [i for i in range(rank) if i not in axes]
    order = (*others, *axes)
    image = [value.shape[i] for i in axes]
    given = emitter.permuted(given, order)
    given = emitter.reshaped(given, (prod(value.shape[i] for i in others), 1, *one, *image))
    made = _pool(how, given, options, emitter)
    made = emitter.reshaped(made, tuple(call.shape[i] for i in order))
    back = tuple(int(i) for i in np.argsort(order))
    return HloValue(emitter.permuted(made, back), call.shape, call.dtype)


def _layout(dimensions: int, last: bool) -> str:
    """TVM's name of the layout of a batch of images or volumes, channels last or second."""
    inner = "DHW"[-dimensions:]
    return f"N{inner}C" if last else f"NC{inner}"


def _pool(how: str, given: Any, options: dict[str, Any], emitter: Emitter) -> Any:
    nn, op, dimensions = emitter.op.nn, emitter.op, len(options["strides"])
    greatest, mean = (getattr(nn, f"{each}_pool{dimensions}d") for each in ("max", "avg"))
    if how == _MAX:
        return emitter.bind(greatest(given, **options))
    if how == _MIN:
        turned = emitter.bind(op.negative(given))
        return emitter.bind(op.negative(emitter.bind(greatest(turned, **options))))
    found = emitter.bind(mean(given, count_include_pad=True, **options))
    count = emitter.relax.const(np.float32(prod(options["pool_size"])), "float32")
    return emitter.bind(op.multiply(found, count))


RULES: Mapping[str, Translate] = MappingProxyType(
    {"stablehlo.reduce": _reduce, "stablehlo.reduce_window": _reduce_window}
)
"""Translations by name."""
