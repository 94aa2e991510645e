"""Observation of a ring problem: the solver's blocks, which are the units of `RingUnits`.

Dimension letters as in `policy_graph`.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.core import OpKind
from go_rl.objectives.common.units import tensor_seconds
from go_rl.objectives.ring.orders import positions
from go_rl.objectives.ring.reference_orders import REFERENCE_ORDERS, reference_orders
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.policy.observations.policy_graph import (
    Columns,
    PolicyGraph,
    log_degrees,
    log_ratio,
    longest_reach,
    policy_graph,
)

RING_HARDWARE = ("log_chips", "triangle", "memory", "largest_unit", "traffic", "weights")
"""Hardware features: log2 chips / 6; rules; largest unit, whole traffic and whole weights against
one chip's share, as log2(1 + x) / 6."""

SCALARS = ("log_seconds", "load_share", "log_weight_bytes", "weight_share", "log_tensor_seconds",
           "in_degree", "out_degree", "span_level", "span_barycentric")  # fmt: skip
"""Seconds and bytes as logarithms; shares of the mean chip; the longest outgoing edge, as a
difference of places."""


RING_COLUMNS = Columns(
    SCALARS, REFERENCE_ORDERS, RING_HARDWARE,
    from_edges=("in_degree", "out_degree", "span_level", "span_barycentric"),
    from_orders=("span_level", "span_barycentric"),
)  # fmt: skip


def observe_ring(workspace: RingWorkspace) -> PolicyGraph:
    """Return what the policy sees of the workspace's problem."""
    units = workspace.units
    places = np.stack([positions(order) for order in reference_orders(units)], axis=1)
    features = np.concatenate([_scalars(workspace, places), _kinds(workspace)], axis=1)
    return policy_graph(units, features, places, _hardware_of(workspace), workspace.chips)


def _scalars(workspace: RingWorkspace, places: np.ndarray) -> Float64[np.ndarray, "U S"]:
    units = workspace.units
    memory = min(chip.memory_bytes for chip in workspace.problem.hardware.devices)
    mean = max(units.work.sum() / workspace.chips, 1e-30)
    columns = [
        log_ratio(units.work, mean),
        np.minimum(units.work / mean, 4.0) / 4.0,
        np.log10(1.0 + units.weight) / 10.0,
        np.minimum(units.weight / max(memory, 1), 4.0) / 4.0,
        log_ratio(tensor_seconds(units), mean),
        *log_degrees(units),
        longest_reach(units, places[:, REFERENCE_ORDERS.index("level")]),
        longest_reach(units, places[:, REFERENCE_ORDERS.index("barycentric of levels")]),
    ]
    return np.stack(columns, axis=1)


def _kinds(workspace: RingWorkspace) -> Float64[np.ndarray, "U K"]:
    """One-hot kind of each unit's costliest node."""
    problem, unit = workspace.problem, workspace.unit_of_node
    kinds = np.zeros((workspace.units.num_units, len(OpKind)))
    by_work = np.argsort(problem.work, kind="stable")
    costliest = np.zeros(workspace.units.num_units, np.int64)
    inside = by_work[unit[by_work] >= 0]
    costliest[unit[inside]] = inside
    kinds[np.arange(len(kinds)), problem.graph.kind[costliest]] = 1.0
    return kinds


def _hardware_of(workspace: RingWorkspace) -> Float32[np.ndarray, "P"]:
    units, problem, chips = workspace.units, workspace.problem, workspace.chips
    mean = max(units.work.sum() / chips, 1e-30)
    memory = max(min(chip.memory_bytes for chip in problem.hardware.devices), 1)
    ratios = np.array(
        [
            units.work.max(initial=0.0) / mean,
            units.tensor_seconds.sum() / mean,
            units.weight.sum() / (memory * chips),
        ]
    )
    flags = [np.log2(chips) / 6.0, float(problem.rules.triangle), float(problem.memory)]
    return np.concatenate([flags, np.log2(1.0 + ratios) / 6.0]).astype(np.float32)
