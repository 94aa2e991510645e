"""Twin of the list scheduler: look through all units at every step."""

import numpy as np

from go_rl.objectives.common.units import RingUnits


def producers(units: RingUnits, v: int) -> set[int]:
    return set(units.pred[units.pred_ptr[v] : units.pred_ptr[v + 1]].tolist())


def list_order(units: RingUnits, score: np.ndarray) -> list[int]:
    """The ready unit of the lowest score, the earlier among equals."""
    order: list[int] = []
    while len(order) < units.num_units:
        left = [v for v in range(units.num_units) if v not in order]
        ready = [v for v in left if producers(units, v) <= set(order)]
        order.append(min(ready, key=lambda v: (score[v], v)))
    return order


def topological(units: RingUnits, order: list[int]) -> bool:
    """Every unit once, each after its producers."""
    complete = sorted(order) == list(range(units.num_units))
    return complete and all(producers(units, v) <= set(order[:i]) for i, v in enumerate(order))
