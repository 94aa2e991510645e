"""`Geometry`: how an operator accesses its operands, beyond their shapes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from math import prod
from operator import attrgetter


@dataclass(frozen=True)
class Geometry:
    """Static parameters of one operator; the defaults are those of an elementwise one."""

    window: float = 1.0
    """Elements of the window or kernel over the spatial dimensions."""
    stride: float = 1.0
    """Product of the window's strides. Attention: query heads that share one head of keys."""
    padding: float = 0.0
    """Sum of the padding before and after all spatial dimensions; cropping counts as 0."""
    window_dilation: float = 1.0
    """Product over the spatial dimensions."""
    input_dilation: float = 1.0
    """Product over the spatial dimensions; above 1 in transposed convolutions."""
    groups: float = 1.0
    """Feature groups times batch groups of a convolution. Attention: heads of queries."""
    minor: float = 0.0
    """Effect along the dimension that varies fastest in memory. Convolution: 1 if it holds
    the features. Matrix product: 1 if it is contracted in the left operand, plus 2 if in the right
    one. Attention: 1 if each query attends to earlier keys only. Others: 1 if it is reduced, moved,
    sliced, gathered from or added to."""


def window_geometry(
    taps: Iterable[int],
    strides: Iterable[int] = (),
    padding: float = 0.0,
    dilations: Iterable[int] = (),
    input_dilations: Iterable[int] = (),
    groups: int = 1,
    minor: bool = False,
) -> Geometry:
    """Return the geometry of a window, from its sizes, strides and dilations by dimension."""
    sizes = (float(prod(each)) for each in (taps, strides, dilations, input_dilations))
    window, stride, dilation, input_dilation = sizes
    return Geometry(
        window, stride, float(padding), dilation, input_dilation, float(groups), float(minor)
    )


GEOMETRY = tuple(field.name for field in fields(Geometry))
"""Columns of `go_rl.core.OpGraph.geometry`."""
UNKNOWN_GEOMETRY = (float("nan"),) * len(GEOMETRY)
"""Row of an operator whose reader gives no geometry."""
_ROW = attrgetter(*GEOMETRY)
"""`dataclasses.astuple`, which copies each number, takes a hundred times as long."""


def geometry_row(geometry: Geometry | None) -> tuple[float, ...]:
    """Return one row of `go_rl.core.OpGraph.geometry`."""
    return UNKNOWN_GEOMETRY if geometry is None else _ROW(geometry)
