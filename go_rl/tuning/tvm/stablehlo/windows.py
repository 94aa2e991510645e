"""`Windows`: parts of an array that begin where other arrays say."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial, reduce
from math import prod
from typing import Any

import numpy as np

from go_rl.tuning.tvm.stablehlo.elementwise import applied, converted, operator_of
from go_rl.tuning.tvm.stablehlo.shapes import sliced
from go_rl.tuning.tvm.stablehlo.values import Emitter, HloValue, Shape

INDEX = "int64"
"""Type of places."""


class Windows:
    """Windows of one size within an array.

    The dimensions along which windows move, or are shorter than the array, become one, that of the
    rows; a window is some rows, each whole along the other dimensions.
    """

    def __init__(
        self, value: HloValue, starts: Mapping[int, HloValue], sizes: Shape, emitter: Emitter
    ) -> None:
        """Describe windows.

        Args:
            value: the array.
            starts: first places of the windows, in `INDEX`, by dimension; 0 along the others. All
                of one shape, that of the windows.
            sizes: of a window, by dimension of the array.
            emitter: of the function.
        """
        self._value, self._starts, self._sizes, self._emitter = value, starts, sizes, emitter
        self._moved = [i for i, n in enumerate(value.shape) if i in starts or sizes[i] != n]
        others = [i for i in range(len(value.shape)) if i not in self._moved]
        self.order: Shape = (*self._moved, *others)
        """Dimensions of the array: those of the rows, then the others."""
        self.batch: Shape = next((each.shape for each in starts.values()), ())
        """Shape of the windows."""
        self.count = prod(value.shape[i] for i in self._moved)
        """Rows of the array."""
        self.shape: Shape = (*self.batch, *(sizes[i] for i in self._moved))
        """Shape of the rows of all windows."""
        self.row: Shape = tuple(value.shape[i] for i in others)
        """Shape of a row."""

    @property
    def table(self) -> Any:
        """The array as rows: [count, *row]."""
        whole = self._emitter.permuted(self._emitter.whole(self._value), self.order)
        return self._emitter.reshaped(whole, (self.count, *self.row))

    def back(self, table: Any) -> HloValue:
        """Return rows as an array of the dimensions that they come from."""
        shape = self._value.shape
        made = self._emitter.reshaped(table, tuple(shape[i] for i in self.order))
        whole = self._emitter.permuted(made, tuple(int(i) for i in np.argsort(self.order)))
        return HloValue(whole, shape, self._value.dtype)

    def moved_within(self) -> Windows:
        """Return the same windows, moved to lie within the array, as those that are read are."""
        starts = {
            axis: self._applied(
                "minimum",
                self._applied("maximum", start, place(0, start.shape)),
                place(self._value.shape[axis] - self._sizes[axis], start.shape),
            )
            for axis, start in self._starts.items()
        }
        return Windows(self._value, starts, self._sizes, self._emitter)

    def rows(self) -> HloValue:
        """Return which row each row of the windows is."""
        steps, parts = np.zeros((1,) * len(self.shape), INDEX), list[HloValue]()
        for k, (axis, stride) in enumerate(zip(self._moved, self._strides(), strict=True)):
            along = [1] * len(self.shape)
            along[len(self.batch) + k] = self._sizes[axis]
            steps = steps + (np.arange(self._sizes[axis]) * stride).reshape(along)
            if axis in self._starts:
                start, factor = self._start(axis), place(stride, self.shape)
                parts.append(start if stride == 1 else self._applied("multiply", start, factor))
        if steps.any() or not parts:
            parts.append(HloValue(steps, self.shape, INDEX))
        return reduce(partial(self._applied, "add"), parts)

    def fits(self) -> HloValue:
        """Return whether the window of each row lies wholly within the array."""
        fits = HloValue(np.ones((1,) * len(self.shape), bool), self.shape, "bool")
        for axis in self._starts:
            last = self._value.shape[axis] - self._sizes[axis]
            for name, bound in (("GE", 0), ("LE", last)):
                holds = self._applied(
                    name, self._start(axis), place(bound, self.shape), dtype="bool"
                )
                fits = self._applied("and", fits, holds, dtype="bool")
        return fits

    def _strides(self) -> list[int]:
        sizes = [self._value.shape[i] for i in self._moved]
        return [prod(sizes[k + 1 :]) for k in range(len(sizes))]

    def _start(self, axis: int) -> HloValue:
        """Starts of windows for each of their rows."""
        start, ones = self._starts[axis], (1,) * len(self._moved)
        shape = (*start.made_shape, *ones)
        known, made = start.known, start.made
        spread = made.reshape(shape) if known else self._emitter.reshaped(made, shape)
        return HloValue(spread, self.shape, INDEX)

    def _applied(self, name: str, *operands: HloValue, dtype: str = INDEX) -> HloValue:
        return applied(self._emitter, operator_of(name), *operands, dtype=dtype)


def place(number: int, shape: Shape) -> HloValue:
    """Return an array of one place everywhere."""
    return HloValue(np.full((1,) * len(shape), number, INDEX), shape, INDEX)


def as_index(value: HloValue, shape: Shape, emitter: Emitter) -> HloValue:
    """Return whole numbers as places, in another shape of as many elements."""
    whole = value.array() if value.known else emitter.whole(value)
    made = whole.reshape(shape) if value.known else emitter.reshaped(whole, shape)
    return converted(HloValue(made, shape, value.dtype), INDEX, emitter)


def starts_of(
    indices: HloValue,
    vector: int,
    mapped: Shape,
    batched: tuple[Shape, Shape],
    emitter: Emitter,
) -> dict[int, HloValue]:
    """Return where windows start, by dimension of the array.

    Args:
        indices: vectors of places.
        vector: dimension of ``indices`` that is that of the vectors; the number of its dimensions:
            the vectors are single numbers.
        mapped: dimensions of the array that the elements of a vector are for.
        batched: dimensions of the array along which a window's place is that along dimensions of
            ``indices``, and these.
        emitter: of the function.
    """
    shape = indices.shape
    batch = tuple(n for i, n in enumerate(shape) if i != vector)
    starts: dict[int, HloValue] = {}
    for k, axis in enumerate(mapped):
        part = indices
        if vector < len(shape):
            first = [k if i == vector else 0 for i in range(len(shape))]
            last = [k + 1 if i == vector else n for i, n in enumerate(shape)]
            part = sliced(indices, first, last, [1] * len(shape), emitter)
        starts[axis] = as_index(part, batch, emitter)
    for axis, along in zip(*batched, strict=True):
        own = along - (along > vector)
        sizes = tuple(n if i == own else 1 for i, n in enumerate(batch))
        starts[axis] = HloValue(np.arange(batch[own]).reshape(sizes), batch, INDEX)
    return starts
