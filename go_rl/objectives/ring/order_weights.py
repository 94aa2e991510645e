"""Orders of a ring's units from few weights: each weight counts one reference order, or one
property of a unit; the units are list-scheduled by the weighted sum.

`W` weights. Weights found on one graph mean the same on another.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Float64, Int32

from go_rl.objectives.common.units import RingUnits, tensor_seconds
from go_rl.objectives.ring.orders import list_order, positions
from go_rl.objectives.ring.reference_orders import REFERENCE_ORDERS, reference_orders

PROPERTIES = ("seconds", "weights", "tensor seconds", "producers", "consumers")
"""Properties of a unit alone, as logarithms that are brought to one spread."""
WIDTH = len(REFERENCE_ORDERS) + len(PROPERTIES)
"""Number of weights, `W`."""
PLAIN = 3.0
"""Weight of the one order that a plain reference order counts; a drawn weight has deviation 1."""
SPREAD = 0.02
"""Standard deviation of a property, in places of an order, which go from 0 to 1."""


def first_weights(count: int, seed: int) -> Float32[np.ndarray, "B W"]:
    """Return [count, W] weights to begin with: each reference order alone, then random mixtures."""
    drawn = np.random.default_rng(seed).standard_normal((count, WIDTH)).astype(np.float32)
    plain = min(count, len(REFERENCE_ORDERS))
    drawn[:plain] = PLAIN * np.eye(plain, WIDTH, dtype=np.float32)
    return drawn


def order_columns(units: RingUnits) -> Float64[np.ndarray, "U W"]:
    """Return [U, W] places in the reference orders, and properties of each unit."""
    mean = units.serial_seconds / max(units.num_units, 1)
    properties = np.log1p(
        np.stack(
            [units.work / mean, units.weight, tensor_seconds(units) / mean,
             np.diff(units.pred_ptr), np.diff(units.succ_ptr)], axis=1,
        )
    )  # fmt: skip
    spread = properties.std(axis=0)
    properties = SPREAD * (properties - properties.mean(axis=0)) / np.where(spread > 0, spread, 1)
    places = [positions(order) for order in reference_orders(units)]
    return np.concatenate([np.stack(places, axis=1), properties], axis=1)


def weighted_order(
    units: RingUnits, columns: Float64[np.ndarray, "U W"], weights: Float32[np.ndarray, "W"]
) -> Int32[np.ndarray, "U"]:
    """Return the topological order of [W] weights."""
    return list_order(units, columns @ weights.astype(np.float64))
