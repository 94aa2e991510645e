"""`Geometry` of HLO instructions, from their attributes and the shapes of their operands."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence

from go_rl.core.graph.geometry import Geometry
from go_rl.graphs.readers.hlo.shape import Shape
from go_rl.graphs.readers.hlo.text import Instruction
from go_rl.graphs.readers.hlo.window import windows
from go_rl.graphs.tables import by_name

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
    return Geometry(
        window=float(math.prod(w.size for w in sizes)),
        stride=float(math.prod(w.stride for w in sizes)),
        padding=_padding(instruction),
        window_dilation=float(math.prod(w.window_dilation for w in sizes)),
        input_dilation=float(math.prod(w.base_dilation for w in sizes)),
        groups=_groups(instruction) if convolution else 1.0,
        minor=_features_minor(instruction, operands) if convolution else float(inside),
    )


def _padding(instruction: Instruction) -> float:
    """Written ``pad=low_highxlow_high``."""
    found = re.search(r"\bpad=([\w\-]+)", instruction.attributes.get("window", ""))
    numbers = re.findall(r"-?\d+", found[1]) if found else []
    return float(sum(max(int(n), 0) for n in numbers))


def _groups(instruction: Instruction) -> float:
    feature = instruction.numbers("feature_group_count") or (1,)
    batch = instruction.numbers("batch_group_count") or (1,)
    return float(feature[0] * batch[0])


def _features_minor(instruction: Instruction, operands: Sequence[Shape]) -> float:
    """``dim_labels=b01f_01io->b01f``: whether f is the fastest of the left operand."""
    left = instruction.attributes.get("dim_labels", "").partition("_")[0]
    return float("f" in left and left.index("f") == _minor(operands[0]))


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
