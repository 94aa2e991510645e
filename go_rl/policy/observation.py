"""`PolicyGraph`: what the policy sees of a ring problem.

Nodes are the solver's blocks, which are the units of work of `RingUnits`. Dimension letters: ``U``
units, ``E`` edges, ``F`` features, ``J`` reference orders, ``P`` hardware features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int32

from go_rl.core import OpKind
from go_rl.objectives.ring.orders import (
    barycentric,
    depth_first,
    list_order,
    positions,
    reverse_depth_first,
)
from go_rl.objectives.ring.units import RingUnits
from go_rl.objectives.ring.workspace import RingWorkspace
from go_rl.solvers.graphs.heads_tails import path_sums_after, path_sums_before

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
"""Topological orders that the policy mixes. Every convex combination of places in topological
orders is again consistent with the edges."""

HARDWARE_FEATURES = ("log_chips", "triangle", "memory", "largest_unit", "traffic", "weights")
"""log2 chips / 6; rules; largest unit, whole traffic and whole weights against one chip's share,
as log2(1 + x) / 6."""

SCALARS = ("log_seconds", "load_share", "log_weight_bytes", "weight_share", "log_tensor_seconds",
           "in_degree", "out_degree", "span_level", "span_barycentric")  # fmt: skip
"""Seconds and bytes as logarithms; shares of the mean chip; the longest outgoing edge, as a
difference of places."""


@dataclass(frozen=True, eq=False)
class PolicyGraph:
    """A problem as arrays for the network."""

    features: Float32[np.ndarray, "U F"]
    """[U, F] `SCALARS`, one-hot kind of the dearest node, the ``J`` places."""
    places: Float32[np.ndarray, "U J"]
    """[U, J] place of each unit in each of `REFERENCE_ORDERS`, in (0, 1)."""
    share: Float32[np.ndarray, "U"]
    """[U] share of the work."""
    senders: Int32[np.ndarray, "E"]
    receivers: Int32[np.ndarray, "E"]
    hardware: Float32[np.ndarray, "P"]
    """[P] `HARDWARE_FEATURES`."""
    chips: int

    @property
    def num_units(self) -> int:
        """U."""
        return len(self.share)


NUM_FEATURES = len(SCALARS) + len(OpKind) + len(REFERENCE_ORDERS)
"""F."""


def tiny_graph(features: int, orders: int, hardware: int) -> PolicyGraph:
    """Return two units and an edge: parameters follow from these numbers of columns alone."""
    return PolicyGraph(
        features=np.zeros((2, features), np.float32),
        places=np.full((2, orders), 0.5, np.float32),
        share=np.full(2, 0.5, np.float32),
        senders=np.zeros(1, np.int32),
        receivers=np.ones(1, np.int32),
        hardware=np.zeros(hardware, np.float32),
        chips=2,
    )


def observe(workspace: RingWorkspace) -> PolicyGraph:
    """Return what the policy sees of the workspace's problem."""
    units = workspace.units
    orders = reference_orders(units)
    places = np.stack([positions(order) for order in orders], axis=1)
    total = units.work.sum()
    share = units.work / total if total > 0 else np.full(units.num_units, 1.0 / units.num_units)
    senders = np.repeat(np.arange(units.num_units, dtype=np.int32), np.diff(units.succ_ptr))
    features = np.concatenate([_scalars(workspace, places), _kinds(workspace), places], axis=1)
    return PolicyGraph(
        features=features.astype(np.float32),
        places=places.astype(np.float32),
        share=share.astype(np.float32),
        senders=senders,
        receivers=units.succ,
        hardware=_hardware_of(workspace),
        chips=workspace.chips,
    )


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


def _scalars(workspace: RingWorkspace, places: np.ndarray) -> Float64[np.ndarray, "U S"]:
    units = workspace.units
    count, chips = units.num_units, workspace.chips
    tensor = np.zeros(count)
    np.add.at(tensor, units.tensor_source, units.tensor_seconds)
    memory = min(chip.memory_bytes for chip in workspace.problem.hardware.chips)
    mean = max(units.work.sum() / chips, 1e-30)
    columns = [
        log_ratio(units.work, mean),
        np.minimum(units.work / mean, 4.0) / 4.0,
        np.log10(1.0 + units.weight) / 10.0,
        np.minimum(units.weight / max(memory, 1), 4.0) / 4.0,
        log_ratio(tensor, mean),
        np.log2(1.0 + np.diff(units.pred_ptr)) / 8.0,
        np.log2(1.0 + np.diff(units.succ_ptr)) / 8.0,
        longest_reach(units, places[:, REFERENCE_ORDERS.index("level")]),
        longest_reach(units, places[:, REFERENCE_ORDERS.index("barycentric of levels")]),
    ]
    return np.stack(columns, axis=1)


def log_ratio(values: np.ndarray, unit: float) -> np.ndarray:
    """Logarithm of seconds against a chip's share: -1 for nothing, about 0 for a chip's share."""
    return np.maximum(np.log10(values / unit + 1e-6), -6.0) / 6.0


def longest_reach(units: RingUnits, place: np.ndarray) -> Float64[np.ndarray, "U"]:
    source = np.repeat(np.arange(units.num_units), np.diff(units.succ_ptr))
    span = np.zeros(units.num_units)
    np.maximum.at(span, source, place[units.succ] - place[source])
    return span


def _kinds(workspace: RingWorkspace) -> Float64[np.ndarray, "U K"]:
    """One-hot kind of each unit's dearest node."""
    problem, unit = workspace.problem, workspace.unit_of_node
    kinds = np.zeros((workspace.units.num_units, len(OpKind)))
    by_work = np.argsort(problem.work, kind="stable")
    dearest = np.zeros(workspace.units.num_units, np.int64)
    inside = by_work[unit[by_work] >= 0]
    dearest[unit[inside]] = inside
    kinds[np.arange(len(kinds)), problem.graph.kind[dearest]] = 1.0
    return kinds


def _hardware_of(workspace: RingWorkspace) -> Float32[np.ndarray, "P"]:
    units, problem, chips = workspace.units, workspace.problem, workspace.chips
    mean = max(units.work.sum() / chips, 1e-30)
    memory = max(min(chip.memory_bytes for chip in problem.hardware.chips), 1)
    ratios = np.array(
        [
            units.work.max(initial=0.0) / mean,
            units.tensor_seconds.sum() / mean,
            units.weight.sum() / (memory * chips),
        ]
    )
    flags = [np.log2(chips) / 6.0, float(problem.rules.triangle), float(problem.memory)]
    return np.concatenate([flags, np.log2(1.0 + ratios) / 6.0]).astype(np.float32)
