"""HLO windows, and the number of their positions that a convolution really multiplies."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from go_rl.core import ReadError
from go_rl.graphs.readers.arithmetic.lattice_points import valid_pairs
from go_rl.graphs.readers.hlo.shape import Shape
from go_rl.graphs.readers.hlo.text import Instruction

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
