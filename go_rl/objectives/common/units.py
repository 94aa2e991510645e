"""A ring problem as units of work and tensors between them, for methods that cut orders.

A unit is a block of the solver (or several, contracted); ``U`` units, ``X`` tensors. Copied nodes
are gone: they constrain nothing and cost at most a thousandth of the work.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int32, Int64
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from go_rl.core import Problem
from go_rl.core.compiled_struct import CompiledStruct
from go_rl.core.graph.condensation import sorted_rows, topological_numbers
from go_rl.solvers import RingInstance
from go_rl.solvers.stage_costs import other_copies, weights_of_homes

DROPPED = -1
"""`RingUnits.unit_of`: the block is no part of the units."""


@dataclass(frozen=True, eq=False)
class RingUnits(CompiledStruct):
    """Units in topological order."""

    work: Float64[np.ndarray, "U"]
    """[U] seconds on the slowest device kind that can run the unit; for bounds, on the fastest."""
    weight: Float64[np.ndarray, "U"]
    """[U] bytes of weights; a tied group counts at its first unit."""
    unit_of: Int32[np.ndarray, "M"]
    """[M] unit of each block, or `DROPPED`."""
    pred_ptr: Int64[np.ndarray, "P"]
    pred: Int32[np.ndarray, "Y"]
    succ_ptr: Int64[np.ndarray, "P"]
    succ: Int32[np.ndarray, "Y"]
    tensor_seconds: Float64[np.ndarray, "X"]
    """[X] seconds a tensor keeps a link busy, latency left out."""
    tensor_source: Int32[np.ndarray, "X"]
    """[X] unit that makes the tensor."""
    use_ptr: Int64[np.ndarray, "Q"]
    user: Int32[np.ndarray, "Z"]
    """[Z] consuming units of each tensor (not its source), ascending."""
    latency: float
    """Seconds that a link which carries anything is busy beside its tensors."""

    @property
    def num_units(self) -> int:
        """Number of units U."""
        return len(self.work)

    @property
    def serial_seconds(self) -> float:
        """Seconds of all work and all tensors one after the other; no plan takes longer."""
        return float(self.work.sum() + self.tensor_seconds.sum()) + self.latency or 1.0


def tensor_seconds(units: RingUnits) -> Float64[np.ndarray, "U"]:
    """Return [U] seconds of the tensors that each unit makes."""
    seconds = np.zeros(units.num_units)
    np.add.at(seconds, units.tensor_source, units.tensor_seconds)
    return seconds


def slowest_seconds(problem: Problem) -> Float64[np.ndarray, "N"]:
    """Return [N] seconds on the slowest device kind that can run each node; 0 where none can."""
    return np.where(np.isfinite(problem.seconds), problem.seconds, 0.0).max(axis=0)


def ring_units(instance: RingInstance) -> RingUnits:
    """Return the instance's blocks as units, one a block."""
    none = np.zeros(instance.problem.graph.num_nodes, np.bool_)
    seconds = slowest_seconds(instance.problem)
    return _units(instance, seconds, instance.net.group_bytes, none)


def bound_units(instance: RingInstance) -> RingUnits:
    """Return units for proofs: work on the fastest device kind, without the nodes that a legal plan
    may copy, which then force no order, no traffic and no weights."""
    fastest = instance.problem.seconds.min(axis=0)
    return _units(instance, fastest, weights_of_homes(instance), other_copies(instance))


def _units(
    instance: RingInstance, seconds: np.ndarray, group_bytes: np.ndarray, loose: np.ndarray
) -> RingUnits:
    """Units with [N] seconds and [G] group bytes; blocks of [N] ``loose`` nodes are left out."""
    problem, graph, net = instance.problem, instance.problem.graph, instance.net
    bound = (instance.block_of >= 0) & ~loose
    stays = np.bincount(instance.block_of[bound], minlength=instance.num_blocks) > 0
    unit_of = np.where(stays, np.cumsum(stays) - 1, DROPPED).astype(np.int32)
    node_unit = np.where(bound, unit_of[np.maximum(instance.block_of, 0)], DROPPED)
    units = int(stays.sum())
    work, weight = np.zeros(units), net.weight[stays].astype(np.float64)
    np.add.at(work, node_unit[bound], seconds[bound])
    # A group counts at its first unit, whose device must hold it.
    owner = unit_of[np.repeat(np.arange(instance.num_blocks), np.diff(net.group_ptr))]
    first = np.full(len(group_bytes), units)
    np.minimum.at(first, net.group[owner >= 0], owner[owner >= 0])
    held = first < units
    np.add.at(weight, first[held], group_bytes[held].astype(np.float64))
    source, sink = node_unit[graph.senders], node_unit[graph.receivers]
    crossing = (source >= 0) & (sink >= 0) & (source != sink)
    tensor = np.stack([graph.senders[crossing], graph.edge_output[crossing]], axis=1)
    links = problem.hardware.links
    return assemble_units(
        work,
        weight,
        unit_of,
        (tensor, source[crossing], sink[crossing], problem.edge_bytes[crossing] / links.bandwidth),
        links.latency_seconds,
    )


def contracted(units: RingUnits, longest: float) -> RingUnits:
    """Merge the ends of every tensor that keeps a link busy for longer than ``longest`` seconds.

    No partition whose links all finish in that time can cut such a tensor; its producer and all
    its consumers share a device, and so does whatever lies on a path between them.
    """
    heavy = (units.tensor_seconds > 0) & (units.tensor_seconds + units.latency > longest)
    uses = np.diff(units.use_ptr)
    tensor = np.repeat(np.arange(len(heavy)), uses)
    source, sink = units.tensor_source[tensor], units.user
    tied = heavy[tensor]
    edges_u = np.repeat(np.arange(units.num_units), np.diff(units.succ_ptr))
    rows = np.concatenate([edges_u, sink[tied]])
    columns = np.concatenate([units.succ, source[tied]])
    matrix = coo_matrix((np.ones(len(rows)), (rows, columns)), (units.num_units,) * 2)
    count, component = connected_components(matrix, directed=True, connection="strong")
    if count == units.num_units:
        return units
    number = topological_numbers(edges_u, units.succ, component)
    merged = number[component]
    work, weight = np.zeros(count), np.zeros(count)
    np.add.at(work, merged, units.work)
    np.add.at(weight, merged, units.weight)
    keys = np.stack([tensor, np.zeros_like(tensor)], axis=1)
    a, b = merged[source], merged[sink]
    apart = a != b
    busy = units.tensor_seconds[tensor]
    return assemble_units(
        work,
        weight,
        np.where(units.unit_of >= 0, merged[units.unit_of], DROPPED).astype(np.int32),
        (keys[apart], a[apart], b[apart], busy[apart]),
        units.latency,
        (merged[edges_u], merged[units.succ]),
    )


def assemble_units(
    work: np.ndarray,
    weight: np.ndarray,
    unit_of: np.ndarray,
    uses: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    latency: float,
    plain: tuple[np.ndarray, np.ndarray] | None = None,
) -> RingUnits:
    """Build rows from uses (tensor key [Z, 2], source [Z], sink [Z], seconds [Z])."""
    keys, source, sink, seconds = uses
    units = len(work)
    table = np.unique(np.column_stack([keys, source, sink]).astype(np.int64), axis=0)
    fresh = np.r_[True, (table[1:, :2] != table[:-1, :2]).any(axis=1)][: len(table)]
    starts = np.flatnonzero(fresh)
    busy = np.zeros(len(starts))
    if len(table):
        lookup = {(int(a), int(b)): i for i, (a, b) in enumerate(table[starts, :2])}
        which = np.array([lookup[int(a), int(b)] for a, b in keys], np.int64)
        np.maximum.at(busy, which, seconds)
    edges = table[:, 2:] if plain is None else np.column_stack(plain)
    edges = np.unique(edges[edges[:, 0] != edges[:, 1]], axis=0).reshape(-1, 2)
    pred_ptr, pred = sorted_rows(edges[:, 1], edges[:, 0], units)
    succ_ptr, succ = sorted_rows(edges[:, 0], edges[:, 1], units)
    return RingUnits(
        work=work,
        weight=weight,
        unit_of=unit_of,
        pred_ptr=pred_ptr,
        pred=pred.astype(np.int32),
        succ_ptr=succ_ptr,
        succ=succ.astype(np.int32),
        tensor_seconds=busy,
        tensor_source=table[starts, 2].astype(np.int32),
        use_ptr=np.r_[starts, len(table)].astype(np.int64),
        user=table[:, 3].astype(np.int32),
        latency=latency,
    )
