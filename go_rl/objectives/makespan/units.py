"""A makespan problem as units: what would be fused anyway is placed and ordered together.

``U`` units in topological order. Inputs and constants belong to none: they are free everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64, Int, Int32, Int64

from go_rl.core import LinkTable, OpGraph, Problem
from go_rl.core.graph.condensation import topological_numbers
from go_rl.core.graph.fusion import heavy_nodes
from go_rl.graphs.cutting.fusion import Fuser
from go_rl.graphs.cutting.layers import in_layers, layer_names, layers
from go_rl.objectives.common.units import DROPPED, RingUnits, assemble_units
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.objectives.makespan.infer_devices import filled_in
from go_rl.objectives.makespan.workspace import MakespanWorkspace


@dataclass(frozen=True, eq=False)
class MakespanUnits:
    """Units and what they cost."""

    unit_of: Int32[np.ndarray, "N"]
    """[N] unit of each node, or `DROPPED`."""
    units: RingUnits
    """The units as work (seconds on the fastest kind that can run them) and tensors."""
    seconds: Float64[np.ndarray, "D U"]
    """[D, U] seconds of each unit on each device; inf: it cannot run there, or is pinned away."""
    traffic: Float64[np.ndarray, "Y"]
    """[Y] seconds that an edge of ``units.succ`` keeps a mean link busy, latency included."""
    layer: Float64[np.ndarray, "U"]
    """[U] mean layer of the unit's nodes, in (0, 1); a backward node's is its forward layer."""
    main_layer: Int64[np.ndarray, "U"]
    """[U] layer of the unit's most expensive node; see `_anchored_layers`."""
    backward: Float64[np.ndarray, "U"]
    """[U] share of backward nodes."""
    weight: Float64[np.ndarray, "U"]
    """[U] bytes of weights; a tied group counts at its first unit."""
    links: LinkTable
    """Links between the devices."""

    @property
    def num_units(self) -> int:
        """Number of units U."""
        return self.units.num_units

    @cached_property
    def incoming(self) -> Float64[np.ndarray, "Y"]:
        """[Y] as `traffic`, by edge of ``units.pred``."""
        source = np.repeat(np.arange(self.num_units), np.diff(self.units.succ_ptr))
        return self.traffic[np.lexsort((source, self.units.succ))]

    @cached_property
    def upward_rank(self) -> Float64[np.ndarray, "U"]:
        """[U] longest path from a unit's start to the end, every transfer paid for (HEFT,
        equation 8)."""
        units, rank = self.units, self.units.work.copy()
        for u in range(units.num_units - 1, -1, -1):
            rows = slice(units.succ_ptr[u], units.succ_ptr[u + 1])
            rank[u] += (self.traffic[rows] + rank[units.succ[rows]]).max(initial=0.0)
        return rank

    def nodes_of(self, rows: np.ndarray) -> np.ndarray:
        """Spread [..., U] rows over [..., N] nodes; nodes without a unit get 0."""
        held = self.unit_of >= 0
        spread = np.zeros((*rows.shape[:-1], len(self.unit_of)), rows.dtype)
        spread[..., held] = rows[..., self.unit_of[held]]
        return spread


def makespan_units(workspace: MakespanWorkspace) -> MakespanUnits:
    """Merge what greedy fusion would merge within a layer; nodes that may have different devices
    stay apart."""
    problem, graph, count = workspace.problem, workspace.problem.graph, workspace.num_nodes
    fed = workspace.pricer.arrays.fed
    layer, stated = layers(graph), _stated(graph)
    layer_of = _anchored_layers(graph, layer, stated)
    allowed = workspace.choices.allowed
    number: dict[bytes, int] = {}
    sets = np.packbits(allowed, axis=0).T
    apart = np.array([[number.setdefault(some.tobytes(), len(number)) for some in sets]], np.int64)
    leader = Fuser(graph, within=layer_of).leaders(np.ones((1, count), np.int64), apart)[0]
    unit_of, members = _numbered(workspace, leader, fed)
    total = int(unit_of.max(initial=-1)) + 1
    held = unit_of >= 0
    table = _prices(problem, leader)
    seconds = np.zeros((problem.hardware.num_devices, total))
    for device in range(problem.hardware.num_devices):
        cost = np.where(allowed[device], table[problem.device_kind[device]], np.inf)
        np.add.at(seconds[device], unit_of[held], cost[held])
    weight = weights_of(workspace, unit_of, total)
    source, sink = unit_of[graph.senders], unit_of[graph.receivers]
    crossing = (source >= 0) & (sink >= 0) & (source != sink)
    tensor = np.stack([graph.senders[crossing], graph.edge_output[crossing]], axis=1)
    links = problem.hardware.link_table
    busy = problem.edge_bytes[crossing] / links.mean_bandwidth
    fastest = seconds.min(axis=0, initial=np.inf)
    units = assemble_units(
        np.where(np.isfinite(fastest), fastest, 0.0),
        weight,
        unit_of,
        (tensor, source[crossing], sink[crossing], busy),
        links.mean_latency,
    )
    size = np.maximum(members, 1)
    layer = filled_in(graph, graph.is_fed, np.where(stated, layer, NOWHERE))
    depth = layer / max(int(layer.max(initial=0)), 1)
    return MakespanUnits(
        unit_of=unit_of,
        units=units,
        seconds=seconds,
        traffic=_traffic(units, source[crossing], sink[crossing], busy),
        layer=np.bincount(unit_of[held], depth[held], total) / size,
        main_layer=_main_layer(workspace, unit_of, layer_of, total),
        backward=np.bincount(unit_of[held], graph.is_backward[held], total) / size,
        weight=weight,
        links=links,
    )


def _prices(problem: Problem, leader: Int64[np.ndarray, "N"]) -> Float64[np.ndarray, "K N"]:
    """[K, N] seconds of each node; where units are to be fused, those of a unit at its leader."""
    if "fusion" not in problem.decisions or problem.kernels is None:
        return problem.seconds
    alone = leader == np.arange(len(leader))
    return np.where(alone, problem.kernels.seconds(leader), 0.0)


def _numbered(
    workspace: MakespanWorkspace, leader: Int64[np.ndarray, "N"], fed: Bool[np.ndarray, "N"]
) -> tuple[Int32[np.ndarray, "N"], Float64[np.ndarray, "U"]]:
    """[N] unit of each node in topological order of units, and [U] nodes of each."""
    graph = workspace.problem.graph
    unit_of = np.full(len(leader), DROPPED, np.int32)
    if fed.all():
        return unit_of, np.zeros(0)
    _, component = np.unique(leader[~fed], return_inverse=True)
    inner = np.cumsum(~fed) - 1
    real = ~fed[graph.senders] & ~fed[graph.receivers]
    place = topological_numbers(inner[graph.senders[real]], inner[graph.receivers[real]], component)
    unit_of[~fed] = place[component]
    return unit_of, np.bincount(unit_of[~fed]).astype(np.float64)


def _main_layer(
    workspace: MakespanWorkspace,
    unit_of: Int32[np.ndarray, "N"],
    layer_of: Int64[np.ndarray, "N"],
    total: int,
) -> Int64[np.ndarray, "U"]:
    by_work = np.argsort(workspace.problem.seconds.min(axis=0), kind="stable")
    held = by_work[unit_of[by_work] >= 0]
    main = np.zeros(total, np.int64)
    main[unit_of[held]] = layer_of[held]
    return main


def _stated(graph: OpGraph) -> Bool[np.ndarray, "N"]:
    """[N] nodes whose layer stands as it is: all where names hold scopes, else those that read
    weights."""
    if any(layer_names(graph)):
        return np.ones(graph.num_nodes, bool)
    return in_layers(graph)


def _anchored_layers(
    graph: OpGraph, layer: Int64[np.ndarray, "N"], stated: Bool[np.ndarray, "N"]
) -> Int64[np.ndarray, "N"]:
    """[N] layer of each node, where a layer has a matrix product or convolution.

    Glue between layers and the update of weights belong to the layers that they touch.
    """
    anchors = np.unique(layer[heavy_nodes(graph)])
    if not anchors.size:
        return layer
    known = np.where(np.isin(layer, anchors) & stated, layer, NOWHERE)
    return filled_in(graph, graph.is_fed, known)


def weights_of(
    workspace: MakespanWorkspace, unit_of: Int[np.ndarray, "N"], total: int
) -> Float64[np.ndarray, "U"]:
    """Return [U] bytes of weights, tied ones at the first of the units that read them.

    ``unit_of`` [N]: unit of each node; below 0: none.
    """
    held, weight, inside = workspace.problem.held_weights, np.zeros(total), unit_of >= 0
    np.add.at(weight, unit_of[inside], held.own[inside])
    read = inside[held.reader]
    arrays, first = np.unique(held.array[read], return_index=True)
    np.add.at(weight, unit_of[held.reader[read][first]], held.tied[arrays])
    return weight


def _traffic(
    units: RingUnits, source: np.ndarray, sink: np.ndarray, busy: np.ndarray
) -> Float64[np.ndarray, "Y"]:
    """[Y] link seconds of all tensors between two units, by edge of ``units.succ``."""
    count = max(units.num_units, 1)
    from_unit = np.repeat(np.arange(units.num_units), np.diff(units.succ_ptr))
    edge = from_unit.astype(np.int64) * count + units.succ
    order = np.argsort(edge)
    found = np.zeros(len(edge))
    if len(busy):
        which = order[np.searchsorted(edge[order], source.astype(np.int64) * count + sink)]
        np.add.at(found, which, busy)
    return found + units.latency
