"""HLO windows, and the number of their positions that a convolution really multiplies."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from go_rl.core import ReadError
from go_rl.core.graph.geometry import Geometry, window_geometry
from go_rl.graphs.readers.arithmetic.closed_forms import valid_pairs
from go_rl.graphs.readers.hlo.shape import Shape
from go_rl.graphs.readers.hlo.text import Instruction
from go_rl.graphs.tables import by_name

MOST_POSITIONS = 1_000_000
"""Positions along the shorter axis of a window over a dilated input."""


@dataclass(frozen=True)
class Window:
    """One spatial dimension of a window."""

    size: int
    stride: int = 1
    pad_low: int = 0
    base_dilation: int = 1
    window_dilation: int = 1

    def valid_positions(self, input_size: int, output_size: int) -> int:
        """Count the (output, kernel) pairs whose input lies inside and not in a dilation hole.

        Raises:
            ReadError: a stride or dilation below 1, or too large a window over a dilated input.
        """
        if min(self.stride, self.window_dilation, self.base_dilation) < 1:
            raise ReadError(f"window {self}: strides and dilations must be 1 or more")
        reach = (input_size - 1) * self.base_dilation + 1
        steps = self.stride, self.window_dilation
        if self.base_dilation == 1:
            return valid_pairs(output_size, self.size, reach, *steps, self.pad_low)
        # Count along the shorter axis; outputs and kernel positions play the same part.
        (short, step), (long, other) = sorted(zip((output_size, self.size), steps, strict=True))
        if short > MOST_POSITIONS:
            raise ReadError(f"a window of {self.size} over {output_size} outputs is too large")
        first = np.arange(max(short, 0), dtype=np.int64) * step - self.pad_low
        return _in_progression(first, other, long, reach, self.base_dilation)


def _in_progression(first: np.ndarray, step: int, count: int, reach: int, modulus: int) -> int:
    """Count ``0 <= k < count`` with ``0 <= first + k * step < reach`` divisible by ``modulus``,
    summed over ``first``."""
    divisor = math.gcd(step, modulus)
    period = modulus // divisor
    first = first[first % divisor == 0]
    # k = residue (mod period) makes the place divisible; low <= k <= high keeps it inside.
    residue = (-first // divisor) * pow(step // divisor, -1, period) % period
    low = np.maximum(0, -(first // step))
    high = np.minimum(count - 1, (reach - 1 - first) // step)
    begin = low + (residue - low) % period
    return int(np.maximum(0, (high - begin) // period + 1)[high >= begin].sum())


def windows(instruction: Instruction) -> list[Window]:
    """Return the instruction's window, one entry a dimension."""
    text = instruction.attributes.get("window", "{}")
    fields = dict(re.findall(r"\b(\w+)=([\w\-]+)", text))
    sizes = [int(n) for n in fields.get("size", "").split("x") if n]

    def column(name: str, default: int) -> list[int]:
        if name not in fields:
            return [default] * len(sizes)
        # A pad is written low_high.
        return [int(part.split("_")[0]) for part in fields[name].split("x")]

    defaults = {"stride": 1, "pad": 0, "lhs_dilate": 1, "rhs_dilate": 1}
    columns = (column(name, default) for name, default in defaults.items())
    return [Window(*row) for row in zip(sizes, *columns, strict=True)]


def window_elements(instruction: Instruction) -> int:
    """Elements of one window position."""
    return math.prod(w.size for w in windows(instruction))


def is_cumulative(instruction: Instruction, operand: Shape, out: Shape) -> bool:
    """Whether a reduce-window is a cumulative sum or the like: as JAX writes it, one window as long
    as its axis that every result shares with the next but for one element."""
    sizes = windows(instruction)
    long = [d for d, window in enumerate(sizes) if window.size > 1]
    if len(long) != 1 or operand.dims != out.dims:
        return False
    (d,) = long
    plain = all(w.stride == w.base_dilation == w.window_dilation == 1 for w in sizes)
    ends = (0, operand.dims[d] - 1)
    return plain and sizes[d].size == operand.dims[d] and sizes[d].pad_low in ends


def convolution_flops(instruction: Instruction, lhs: Shape, rhs: Shape) -> float:
    """FLOP of a convolution: two for each product of valid positions (HloCostAnalysis)."""
    label = instruction.attributes.get("dim_labels", "")
    match = re.fullmatch(r"([\w?]+)_([\w?]+)->([\w?]+)", label)
    if match is None:
        raise ReadError(f"convolution {instruction.name!r} has dim_labels {label!r}")
    left, kernel, result = match.groups()
    spatial = [str(d) for d in range(len(left) - 2)]
    valid = 1
    # A convolution without spatial dimensions is printed without a window.
    for d, window in zip(spatial, windows(instruction), strict=bool(spatial)):
        sizes = lhs.dims[left.index(d)], instruction.shape.dims[result.index(d)]
        valid *= window.valid_positions(*sizes)
    groups = _count(instruction, "feature_group_count")
    batch_groups = _count(instruction, "batch_group_count")
    features = lhs.dims[left.index("f")] // groups * rhs.dims[kernel.index("o")]
    return 2.0 * features * (lhs.dims[left.index("b")] // batch_groups) * valid


def _count(instruction: Instruction, attribute: str) -> int:
    return int(instruction.attributes.get(attribute, "1"))


Rule = Callable[[Instruction, Sequence[Shape]], Geometry]


def hlo_geometry(instruction: Instruction, operands: Sequence[Shape]) -> Geometry:
    """Return the geometry of an instruction; what nothing is known of has the plain one."""
    rule = _RULES.get(instruction.opcode)
    return Geometry() if rule is None or not operands else rule(instruction, operands)


def _minor(shape: Shape) -> int:
    """The dimension that varies fastest: the layout's, or the last."""
    return shape.layout[0] if shape.layout else len(shape.dims) - 1


def _window(instruction: Instruction, operands: Sequence[Shape]) -> Geometry:
    sizes = windows(instruction)
    inside = 0 <= (place := _minor(operands[0])) < len(sizes) and sizes[place].size > 1
    convolution = instruction.opcode == "convolution"
    counts = ("feature_group_count", "batch_group_count") if convolution else ()
    return window_geometry(
        (w.size for w in sizes),
        (w.stride for w in sizes),
        _padding(instruction),
        (w.window_dilation for w in sizes),
        (w.base_dilation for w in sizes),
        groups=math.prod((instruction.numbers(name) or (1,))[0] for name in counts),
        minor=_features_minor(instruction, operands) if convolution else inside,
    )


def _padding(instruction: Instruction) -> float:
    """Written ``pad=low_highxlow_high``."""
    found = re.search(r"\bpad=([\w\-]+)", instruction.attributes.get("window", ""))
    numbers = re.findall(r"-?\d+", found[1]) if found else []
    return float(sum(max(int(n), 0) for n in numbers))


def _features_minor(instruction: Instruction, operands: Sequence[Shape]) -> bool:
    """``dim_labels=b01f_01io->b01f``: whether f is the fastest of the left operand."""
    left = instruction.attributes.get("dim_labels", "").partition("_")[0]
    return "f" in left and left.index("f") == _minor(operands[0])


def _dot(instruction: Instruction, operands: Sequence[Shape]) -> Geometry:
    left = _minor(operands[0]) in instruction.numbers("lhs_contracting_dims")
    right = len(operands) > 1 and _minor(operands[1]) in instruction.numbers("rhs_contracting_dims")
    return Geometry(minor=float(left) + 2.0 * right)


def _along(instruction: Instruction, operands: Sequence[Shape]) -> Geometry:
    return Geometry(minor=float(_minor(operands[0]) in instruction.numbers("dimensions")))


def _transpose(instruction: Instruction, operands: Sequence[Shape]) -> Geometry:
    order, place = instruction.numbers("dimensions"), _minor(instruction.shape)
    moved = 0 <= place < len(order) and order[place] != _minor(operands[0])
    return Geometry(minor=float(moved))


def _resized(instruction: Instruction, operands: Sequence[Shape]) -> Geometry:
    """Whether result and operand differ in the fastest dimension."""
    before, after = operands[0].dims[-1:], instruction.shape.dims[-1:]
    return Geometry(minor=float(before != after))


def _broadcast(instruction: Instruction, operands: Sequence[Shape]) -> Geometry:
    place = _minor(instruction.shape)
    return Geometry(minor=float(place >= 0 and place not in instruction.numbers("dimensions")))


_RULES: dict[str, Rule] = by_name(
    {
        "broadcast": _broadcast,
        "concatenate reduce reverse sort": _along,
        "convolution reduce-window select-and-scatter": _window,
        "dot ragged-dot": _dot,
        "dynamic-slice gather pad slice": _resized,
        "transpose": _transpose,
    }
)
