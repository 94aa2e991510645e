"""HLO windows, and how many of their positions a convolution really multiplies."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from go_rl.core import ReadError
from go_rl.readers.hlo_shape import Shape
from go_rl.readers.hlo_text import Instruction


@dataclass(frozen=True)
class Window:
    """One spatial dimension of a window."""

    size: int
    stride: int = 1
    pad_low: int = 0
    base_dilation: int = 1
    window_dilation: int = 1

    def valid_positions(self, input_size: int, output_size: int) -> int:
        """Count the (output, kernel) pairs whose input lies inside and not in a dilation hole."""
        output = np.arange(output_size)[:, None] * self.stride - self.pad_low
        place = output + np.arange(self.size)[None, :] * self.window_dilation
        inside = (place >= 0) & (place < (input_size - 1) * self.base_dilation + 1)
        return int((inside & (place % self.base_dilation == 0)).sum())


def windows(instruction: Instruction) -> list[Window]:
    """Return the instruction's window, one entry a dimension."""
    text = instruction.attributes.get("window", "{}")
    fields = dict(re.findall(r"(\w+)=([\w\-]+)", text))
    sizes = [int(n) for n in fields.get("size", "").split("x") if n]

    def column(name: str, default: int) -> list[int]:
        if name not in fields:
            return [default] * len(sizes)
        # A pad is written low_high.
        return [int(part.split("_")[0]) for part in fields[name].split("x")]

    columns = zip(
        sizes,
        column("stride", 1),
        column("pad", 0),
        column("lhs_dilate", 1),
        column("rhs_dilate", 1),
        strict=True,
    )
    return [Window(*row) for row in columns]


def window_elements(instruction: Instruction) -> int:
    """Elements of one window position."""
    return math.prod(w.size for w in windows(instruction))


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
