"""The curve of arithmetic intensity of a statement (group 3 of the leaf vector).

Intensity, FLOP for each byte touched, of the innermost loop alone, of the two innermost loops, and
so on; read at equal steps of FLOP (Williams et al., "Roofline", 2009).
"""

from __future__ import annotations

from collections.abc import Sequence

from go_rl.costs.programs.features.buffer_access import scaled
from go_rl.costs.programs.features.layout import CURVE_POINTS

TOLERANCE = 1e-4
"""FLOP by which a point may miss a step."""


def intensity_curve(flops: int, extents: Sequence[int], touched: Sequence[int]) -> list[float]:
    """Return the points of the curve.

    Args:
        flops: floating-point operations of one execution.
        extents: iterations of each loop around, the outermost first.
        touched: bytes touched while a loop runs, the outermost first.
    """
    if flops <= 0 or not extents:
        return [0.0] * CURVE_POINTS
    work: list[float] = []
    done = float(flops)
    for extent in reversed(extents):
        done *= extent
        work.append(done)
    intensity = [w / size for w, size in zip(work, reversed(touched), strict=True)]
    points: list[float] = []
    level = 0
    for i in range(CURVE_POINTS):
        asked = (i + 1) / CURVE_POINTS * done
        while work[level] < asked - TOLERANCE:
            level += 1
        points.append(scaled(_between(level, asked, work, intensity)))
    return points


def _between(level: int, asked: float, work: list[float], intensity: list[float]) -> float:
    if level == 0:
        return intensity[0]
    slope = (intensity[level] - intensity[level - 1]) / (work[level] - work[level - 1])
    return intensity[level - 1] + slope * (asked - work[level - 1])
