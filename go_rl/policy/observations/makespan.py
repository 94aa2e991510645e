"""Observation of a makespan problem: its units on fully connected devices.

A `PolicyGraph`, as for a ring, with other columns. Dimension letters as in `policy_graph`.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.core import OpKind
from go_rl.core.graph.heads_tails import path_sums_after
from go_rl.objectives.common.units import tensor_seconds
from go_rl.objectives.makespan.units import MakespanUnits
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.objectives.ring.orders import list_order, positions
from go_rl.objectives.ring.reference_orders import REFERENCE_ORDERS, reference_orders
from go_rl.policy.observations.policy_graph import (
    Columns,
    PolicyGraph,
    log_degrees,
    log_ratio,
    longest_reach,
    policy_graph,
)

MAKESPAN_ORDERS = (*REFERENCE_ORDERS, "layer", "upward rank")
"""Places of units; the layer of a backward unit is its forward layer, the upward rank that of HEFT
with every transfer paid for."""
MAKESPAN_SCALARS = ("log_seconds", "load_share", "log_weight_bytes", "log_tensor_seconds",
    "in_degree", "out_degree", "span_level", "backward", "layer", "tail")  # fmt: skip
MAKESPAN_HARDWARE = ("devices", "placement", "schedule", "fusion", "traffic", "largest", "longest",
                "crowding", "layers", "latency", "units")  # fmt: skip
"""The hardware and the whole graph. log2 devices / 6; the decisions asked; then logarithms to base
10 of the whole traffic, the largest unit and the longest path against the whole work; of the
longest path against an equal share of the work (crowding: above 0, the path is longer); of layers
against units; of a link's latency against the mean unit; and of the units / 4."""
MAKESPAN_COLUMNS = Columns(
    MAKESPAN_SCALARS, MAKESPAN_ORDERS, MAKESPAN_HARDWARE,
    from_edges=("in_degree", "out_degree", "span_level", "layer", "tail",
                "longest", "crowding", "layers"),
)  # fmt: skip


def observe_makespan(workspace: MakespanWorkspace, merged: MakespanUnits) -> PolicyGraph:
    """Return what the policy sees of a workspace's problem."""
    units = merged.units
    ranks = merged.upward_rank
    places = np.stack(
        [
            *(positions(order) for order in reference_orders(units)),
            np.clip(merged.layer, 0.0, 1.0),
            positions(list_order(units, -ranks)),
        ],
        axis=1,
    )
    features = np.concatenate([_scalars(merged, ranks), _kinds(workspace, merged)], axis=1)
    hardware = _hardware_of(workspace, merged)
    return policy_graph(units, features, places, hardware, workspace.num_devices)


def _scalars(merged: MakespanUnits, ranks: Float64[np.ndarray, "U"]) -> Float64[np.ndarray, "U S"]:
    units, count = merged.units, merged.num_units
    mean = max(units.work.sum() / max(count, 1), 1e-30)
    level = positions(
        list_order(units, -path_sums_after(units.succ_ptr, units.succ, np.ones(count)))
    )
    columns = [
        log_ratio(units.work, mean),
        np.minimum(units.work / mean, 16.0) / 16.0,
        np.log10(1.0 + merged.weight) / 10.0,
        log_ratio(tensor_seconds(units), mean),
        *log_degrees(units),
        longest_reach(units, level),
        merged.backward,
        merged.layer,
        ranks / max(ranks.max(initial=0.0), 1e-30),
    ]
    return np.stack(columns, axis=1)


def _kinds(workspace: MakespanWorkspace, merged: MakespanUnits) -> Float64[np.ndarray, "U K"]:
    """Share of each kind among a unit's nodes."""
    held = merged.unit_of >= 0
    kinds = np.zeros((merged.num_units, len(OpKind)))
    np.add.at(kinds, (merged.unit_of[held], workspace.problem.graph.kind[held]), 1.0)
    return kinds / np.maximum(kinds.sum(axis=1, keepdims=True), 1.0)


def _hardware_of(workspace: MakespanWorkspace, merged: MakespanUnits) -> Float32[np.ndarray, "P"]:
    decisions, units = workspace.problem.decisions, merged.units
    devices = workspace.num_devices
    total, count = max(units.work.sum(), 1e-30), max(merged.num_units, 1)
    longest = path_sums_after(units.succ_ptr, units.succ, units.work).max(initial=0.0)
    ratios = (
        units.tensor_seconds.sum() / total,
        units.work.max(initial=0.0) / total,
        longest / total,
        longest * devices / total,
        len(np.unique(merged.main_layer)) / count,
        units.latency * count / total,
    )
    asked = [float(name in decisions) for name in ("placement", "schedule", "fusion")]
    shown = np.clip(np.log10(np.maximum(ratios, 1e-6)), -4.0, 4.0)
    size = np.log10(count) / 4.0
    return np.array([np.log2(devices) / 6.0, *asked, *shown, size], np.float32)
