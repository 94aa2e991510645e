"""Topological orders of units that searches and policies mix."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int32

from go_rl.core.graph.heads_tails import path_sums_after, path_sums_before
from go_rl.objectives.common.units import RingUnits
from go_rl.objectives.ring.orders import (
    barycentric,
    depth_first,
    list_order,
    positions,
    reverse_depth_first,
)

REFERENCE_ORDERS = (
    "given",
    "depth-first",
    "depth-first, longest tail first",
    "depth-first, shortest tail first",
    "level",
    "latest level",
    "depth-first, last first",
    "reverse depth-first",
    "reverse depth-first, first last",
    "reverse depth-first, longest head first",
    "barycentric of levels",
    "barycentric of reverse depth-first",
    "head seconds",
    "tail seconds",
)
"""Every convex combination of places in topological
orders is again consistent with the edges."""


def reference_orders(units: RingUnits) -> list[Int32[np.ndarray, "U"]]:
    """Return the `REFERENCE_ORDERS` of the units."""
    natural = np.arange(units.num_units, dtype=np.float64)
    ones = np.ones(units.num_units)
    tails = path_sums_after(units.succ_ptr, units.succ, units.work)
    heads = path_sums_before(units.pred_ptr, units.pred, units.work)
    level = list_order(units, path_sums_before(units.pred_ptr, units.pred, ones))
    latest = list_order(units, -path_sums_after(units.succ_ptr, units.succ, ones))
    late = reverse_depth_first(units, natural)
    middle = 0.5 * (positions(level) + positions(latest))
    return [
        natural.astype(np.int32),
        depth_first(units, natural),
        depth_first(units, -tails),
        depth_first(units, tails),
        level,
        latest,
        depth_first(units, -natural),
        late,
        reverse_depth_first(units, -natural),
        reverse_depth_first(units, heads),
        list_order(units, barycentric(units, middle)),
        list_order(units, barycentric(units, positions(late))),
        list_order(units, heads),
        list_order(units, -tails),
    ]
