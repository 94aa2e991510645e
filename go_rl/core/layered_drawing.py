"""`arrange`: boxes of different sizes in layers, as a drawing of one directed graph.

Layers by the longest path and crossings by barycentres as in Sugiyama, Tagawa and Toda, "Methods
for visual understanding of hierarchical system structures" (IEEE SMC 1981); a long stack of layers
is then folded into columns, read like those of a newspaper.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from statistics import fmean

SWEEPS = 2
"""Passes down and up that order the boxes of each layer."""
GAP = (14.0, 20.0)
"""Least free space beside and below a box."""
GAP_SHARE = 0.12
"""Free space as a share of the mean width and height of the boxes, so that lines between large
boxes can be seen from afar."""
COLUMN_GAPS = 2.0
"""Free space between two columns, in gaps."""
SIDE_BY_SIDE = 3
"""Boxes that a row may always hold."""
SHAPE = 1.7
"""Wanted ratio of width to height."""

Size = tuple[float, float]
"""Width and height."""
Edges = Sequence[tuple[int, int]]
"""Pairs of boxes."""


@dataclass(frozen=True)
class Arrangement:
    """Places of the boxes of one drawing."""

    corner: tuple[Size, ...]
    """Left and upper edge of each box."""
    size: Size
    """Width and height of the drawing."""


@dataclass(frozen=True)
class _Boxes:
    """Boxes to be placed."""

    sizes: Sequence[Size]
    gap: Size
    """Free space beside and below a box."""

    def width(self, row: Sequence[int]) -> float:
        """Return the width of boxes side by side."""
        return sum(self.sizes[box][0] for box in row) + self.gap[0] * (len(row) - 1)

    def height(self, row: Sequence[int]) -> float:
        """Return the height of the highest of them."""
        return max(self.sizes[box][1] for box in row)


def arrange(sizes: Sequence[Size], edges: Edges) -> Arrangement:
    """Return where each box goes.

    Args:
        sizes: of the boxes, at least one, in the order in which they run.
        edges: pairs of boxes; those against that order are left out of account.
    """
    wide, high = (fmean(side) for side in zip(*sizes, strict=True))
    boxes = _Boxes(sizes, (max(GAP[0], GAP_SHARE * wide), max(GAP[1], GAP_SHARE * high)))
    forward = [(u, v) for u, v in edges if u < v]
    rows = _ordered(_layers(len(sizes), forward), forward)
    gap = boxes.gap
    by_area = sqrt(SHAPE * sum((w + gap[0]) * (h + gap[1]) for w, h in sizes))
    width = max(by_area, SIDE_BY_SIDE * max(w + gap[0] for w, _ in sizes))
    rows = [part for row in rows for part in _narrow(row, boxes, width)]
    return _placed(_columns(rows, boxes), boxes)


def _layers(count: int, forward: Edges) -> list[list[int]]:
    """Boxes by their longest path; those that nothing feeds just above their first reader."""
    layer = [0] * count
    for u, v in sorted(forward):
        layer[v] = max(layer[v], layer[u] + 1)
    first = dict.fromkeys(range(count), count)
    for u, v in forward:
        first[u] = min(first[u], layer[v])
    fed = {v for _, v in forward}
    rows: dict[int, list[int]] = defaultdict(list)
    for box in range(count):
        is_free = box not in fed and first[box] < count
        rows[first[box] - 1 if is_free else layer[box]].append(box)
    return [rows[i] for i in sorted(rows)]


def _ordered(rows: list[list[int]], forward: Edges) -> list[list[int]]:
    """Order each row by the mean places of neighbours above, then below."""
    above, below = defaultdict(list), defaultdict(list)
    for u, v in forward:
        above[v].append(u)
        below[u].append(v)
    place = {box: i - len(row) / 2 for row in rows for i, box in enumerate(row)}
    for near in (above, below) * SWEEPS:
        for row in rows if near is above else reversed(rows):
            _sort(row, near, place)
    return rows


def _sort(row: list[int], near: Mapping[int, list[int]], place: dict[int, float]) -> None:
    wish = {box: fmean(place[n] for n in near[box]) if box in near else place[box] for box in row}
    row.sort(key=lambda box: wish[box])
    place.update({box: i - len(row) / 2 for i, box in enumerate(row)})


def _narrow(row: list[int], boxes: _Boxes, width: float) -> list[list[int]]:
    """Break a row that is wider than the drawing should be."""
    parts: list[list[int]] = [[]]
    for box in row:
        if parts[-1] and boxes.width([*parts[-1], box]) > width:
            parts.append([])
        parts[-1].append(box)
    return parts


def _columns(rows: list[list[int]], boxes: _Boxes) -> list[list[list[int]]]:
    """Fold the stack of rows so that the drawing gets the wanted shape."""
    high = [boxes.height(row) + boxes.gap[1] for row in rows]
    wide = max(boxes.width(row) for row in rows) + COLUMN_GAPS * boxes.gap[0]
    number = max(1, round(sqrt(SHAPE * sum(high) / wide)))
    limit = max(sum(high) / number, *high)
    columns, used = [[]], 0.0
    for row, height in zip(rows, high, strict=True):
        if columns[-1] and used + height / 2 > limit:
            columns.append([])
            used = 0.0
        columns[-1].append(row)
        used += height
    return columns


def _placed(columns: list[list[list[int]]], boxes: _Boxes) -> Arrangement:
    corner: list[Size] = [(0.0, 0.0)] * len(boxes.sizes)
    left, lowest = 0.0, 0.0
    for column in columns:
        wide, top = max(map(boxes.width, column)), 0.0
        for row in column:
            at = left + (wide - boxes.width(row)) / 2
            for box in row:
                corner[box] = (at, top)
                at += boxes.sizes[box][0] + boxes.gap[0]
            top += boxes.height(row) + boxes.gap[1]
        left += wide + COLUMN_GAPS * boxes.gap[0]
        lowest = max(lowest, top - boxes.gap[1])
    return Arrangement(tuple(corner), (left - COLUMN_GAPS * boxes.gap[0], lowest))
