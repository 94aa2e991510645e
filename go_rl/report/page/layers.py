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
"""Free space beside and below a box."""
COLUMN_GAP = 40.0
"""Free space between two columns."""
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


def arrange(sizes: Sequence[Size], edges: Edges) -> Arrangement:
    """Return where each box goes.

    Args:
        sizes: of the boxes, in the order in which they run.
        edges: pairs of boxes; those against that order are left out of account.
    """
    forward = [(u, v) for u, v in edges if u < v]
    rows = _ordered(_layers(len(sizes), forward), forward)
    width = sqrt(SHAPE * sum((w + GAP[0]) * (h + GAP[1]) for w, h in sizes))
    rows = [part for row in rows for part in _narrow(row, sizes, max(width, 1.0))]
    return _placed(_columns(rows, sizes), sizes)


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


def _narrow(row: list[int], sizes: Sequence[Size], width: float) -> list[list[int]]:
    """Break a row that is wider than the drawing should be."""
    parts, used = [[]], 0.0
    for box in row:
        if parts[-1] and used + sizes[box][0] > width:
            parts.append([])
            used = 0.0
        parts[-1].append(box)
        used += sizes[box][0] + GAP[0]
    return parts


def _columns(rows: list[list[int]], sizes: Sequence[Size]) -> list[list[list[int]]]:
    """Fold the stack of rows so that the drawing gets the wanted shape."""
    high = [max(sizes[box][1] for box in row) + GAP[1] for row in rows]
    wide = max((_width(row, sizes) for row in rows), default=0.0) + COLUMN_GAP
    number = max(1, round(sqrt(SHAPE * sum(high) / wide)))
    limit = max(sum(high) / number, *high, 1.0)
    columns, used = [[]], 0.0
    for row, height in zip(rows, high, strict=True):
        if columns[-1] and used + height / 2 > limit:
            columns.append([])
            used = 0.0
        columns[-1].append(row)
        used += height
    return columns


def _width(row: Sequence[int], sizes: Sequence[Size]) -> float:
    return sum(sizes[box][0] for box in row) + GAP[0] * (len(row) - 1)


def _placed(columns: list[list[list[int]]], sizes: Sequence[Size]) -> Arrangement:
    corner: list[Size] = [(0.0, 0.0)] * len(sizes)
    left, lowest = 0.0, 0.0
    for column in columns:
        wide = max((_width(row, sizes) for row in column), default=0.0)
        top = 0.0
        for row in column:
            at = left + (wide - _width(row, sizes)) / 2
            for box in row:
                corner[box] = (at, top)
                at += sizes[box][0] + GAP[0]
            top += max(sizes[box][1] for box in row) + GAP[1]
        left += wide + COLUMN_GAP
        lowest = max(lowest, top - GAP[1])
    return Arrangement(tuple(corner), (left - COLUMN_GAP, lowest))
