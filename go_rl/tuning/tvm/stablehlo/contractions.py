"""Products and convolutions of StableHLO."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from go_rl.tuning.tvm.stablehlo.shapes import dilated, transposed
from go_rl.tuning.tvm.stablehlo.values import Emitter, HloCall, HloValue, Shape, Translate

IMAGE, VOLUME = 2, 3
"""Dimensions of an image, and at most; sequences become images of one row."""


@dataclass(frozen=True)
class _Axes:
    """Dimensions of an operand of a product."""

    batch: tuple[int, ...]
    free: tuple[int, ...]
    summed: tuple[int, ...]


def _dot(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    """A product of two matrices or vectors."""
    left, right = (len(each.shape) for each in call.operands)
    axes = _Axes((), tuple(range(left - 1)), (left - 1,)), _Axes((), tuple(range(1, right)), (0,))
    return (_product(call, emitter, *axes),)


def _dot_general(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    from jaxlib.mlir.dialects.stablehlo import DotDimensionNumbers

    numbers = DotDimensionNumbers(call.attributes["dot_dimension_numbers"])
    given = (
        (numbers.lhs_batching_dimensions, numbers.lhs_contracting_dimensions),
        (numbers.rhs_batching_dimensions, numbers.rhs_contracting_dimensions),
    )
    axes = (
        _Axes(
            tuple(batch),
            tuple(i for i in range(len(value.shape)) if i not in (*batch, *summed)),
            tuple(summed),
        )
        for value, (batch, summed) in zip(call.operands, given, strict=True)
    )
    return (_product(call, emitter, *axes),)


def _product(call: HloCall, emitter: Emitter, left: _Axes, right: _Axes) -> HloValue:
    """Both operands as stacks of matrices, [batch] rows by sums and sums by columns. Without a
    batch the rows keep their dimensions: a reshape behind the product would keep a bias and an
    activation from joining it."""
    one, other = call.operands
    sums = prod(one.shape[i] for i in left.summed)
    free = tuple(one.shape[i] for i in left.free)
    columns = prod(other.shape[i] for i in right.free)
    stack = (prod(one.shape[i] for i in left.batch),) if left.batch else ()
    rows = (prod(free),) if stack else free or (1,)
    first = _matrix(one, (*left.batch, *left.free, *left.summed), (*stack, *rows, sums), emitter)
    second = _matrix(
        other, (*right.batch, *right.summed, *right.free), (*stack, sums, columns), emitter
    )
    made = emitter.bind(emitter.op.matmul(first, second))
    return HloValue(emitter.reshaped(made, call.shape), call.shape, call.dtype)


def _matrix(value: HloValue, axes: tuple[int, ...], shape: Shape, emitter: Emitter) -> Any:
    value = transposed(value, axes, emitter)
    if value.known:
        return emitter.relax.const(value.array().reshape(shape), value.dtype)
    return emitter.reshaped(emitter.whole(value), shape)


@dataclass(frozen=True)
class _Window:
    """Moves of a kernel over an image, by dimension of the image."""

    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    dilation: tuple[int, ...]


def _convolution(call: HloCall, emitter: Emitter) -> tuple[HloValue, ...]:
    from jaxlib.mlir.dialects.stablehlo import ConvDimensionNumbers

    numbers = ConvDimensionNumbers(call.attributes["dimension_numbers"])
    spatial = tuple(numbers.input_spatial_dimensions)
    if len(spatial) > VOLUME:
        raise call.refuse(f"images of {len(spatial)} dimensions")
    if call.whole_number("batch_group_count") != 1:
        raise call.refuse("it has groups of the batch")
    if np.asarray(call.attributes.get("window_reversal", [])).any():
        raise call.refuse("its kernel is reversed")
    image, kernel = call.operands
    ones = (1,) * len(spatial)
    image = transposed(
        image, (numbers.input_batch_dimension, *spatial, numbers.input_feature_dimension), emitter
    )
    image = dilated(image, (1, *call.numbers("lhs_dilation", ones), 1), emitter)
    kernel = transposed(
        kernel,
        (
            *numbers.kernel_spatial_dimensions, numbers.kernel_input_feature_dimension,
            numbers.kernel_output_feature_dimension,
        ),
        emitter,
    )  # fmt: skip
    edges = call.numbers("padding", (0, 0) * len(spatial))
    window = _Window(
        strides=call.numbers("window_strides", ones),
        padding=tuple(zip(edges[::2], edges[1::2], strict=True)),
        dilation=call.numbers("rhs_dilation", ones),
    )
    groups = call.whole_number("feature_group_count")
    made = _convolved(call, image, kernel, (window, groups), emitter)
    back = (numbers.output_batch_dimension, *numbers.output_spatial_dimensions,
            numbers.output_feature_dimension)  # fmt: skip
    return (transposed(made, tuple(int(i) for i in np.argsort(back)), emitter),)


def _convolved(
    call: HloCall, image: HloValue, kernel: HloValue, how: tuple[_Window, int], emitter: Emitter
) -> HloValue:
    """The convolution of [N, H, W, C] by [H, W, C / groups, C'], or of volumes [N, D, H, W, C]."""
    (window, groups), missing = how, max(IMAGE - len(how[0].strides), 0)
    image, kernel = _with_rows(image, 1, missing, emitter), _with_rows(kernel, 0, missing, emitter)
    padding = [(0, 0)] * missing + [*window.padding]
    if any(each < 0 for pair in padding for each in pair):
        raise call.refuse("its padding is negative")
    volume = len(padding) == VOLUME
    made = (emitter.op.nn.conv3d if volume else emitter.op.nn.conv2d)(
        emitter.whole(image), emitter.whole(kernel),
        strides=_of_image(window.strides, missing),
        padding=(*(before for before, _ in padding), *(after for _, after in padding)),
        dilation=_of_image(window.dilation, missing), groups=groups,
        data_layout="NDHWC" if volume else "NHWC", kernel_layout="DHWIO" if volume else "HWIO",
    )  # fmt: skip
    made = emitter.result(made, call.dtype)
    if not missing:
        return made
    shape = (made.shape[0], *made.shape[1 + missing :])
    return HloValue(emitter.reshaped(made.made, shape), shape, call.dtype)


def _of_image(numbers: Sequence[int], missing: int) -> tuple[int, ...]:
    return (1,) * missing + tuple(numbers)


def _with_rows(value: HloValue, place: int, count: int, emitter: Emitter) -> HloValue:
    """An array with further dimensions of size 1."""
    if not count:
        return value
    shape = (*value.shape[:place], *(1,) * count, *value.shape[place:])
    if value.known:
        return HloValue(value.array().reshape(shape), shape, value.dtype)
    return HloValue(emitter.reshaped(emitter.whole(value), shape), shape, value.dtype)


RULES: Mapping[str, Translate] = MappingProxyType({
    "stablehlo.dot": _dot, "stablehlo.dot_general": _dot_general,
    "stablehlo.convolution": _convolution,
})  # fmt: skip
"""Translations by name."""
