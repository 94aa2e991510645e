"""Features of kernels for a learned cost model: a row for each node, and one for each kernel.

Sizes enter as logarithms to base two: runtimes follow from products of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64, Int32, Int64

from go_rl.core import GEOMETRY, NO_DIM, OpGraph, OpKind
from go_rl.costs.kernels.measure.settings import layouts_of
from go_rl.graphs.cutting.graph_rows import geometry_of, levels
from go_rl.graphs.cutting.kernel_set import KernelSet
from go_rl.graphs.cutting.opcode_names import opcode_numbers

DIMS = 5
"""Last dimensions of a shape that are features of their own; the product of the rest is another."""
ITEM_SIZES = (1, 2, 4, 8)
MOST_TWOS = 10.0
MINOR = GEOMETRY.index("minor")

NODE_FEATURES = (
    *(f"is {kind.name.lower()}" for kind in OpKind),
    *(f"dimension {i - DIMS}" for i in range(DIMS)), "other dimensions", "rank", "elements",
    "twos in last dimension", "twos in the one before", "twos in elements",
    *(f"{size} bytes an element" for size in ITEM_SIZES),
    "FLOP", "FLOP an element", "bytes written", "weight bytes", "bytes read", "largest read",
    *(f"log {name}" for name in GEOMETRY if name != "minor"),
    "minor in left", "minor in right", "geometry unknown",
    "is result", "readers", "operands", "depth",
)  # fmt: skip
"""Columns of `KernelFeatures.nodes`."""
KERNEL_FEATURES = (
    "nodes", "operators", "depth", "FLOP", "bytes read", "bytes written", "weight bytes",
    "bytes inside", "largest tensor", "FLOP a byte", "operands", "results",
    *(f"FLOP of {kind.name.lower()}" for kind in OpKind if kind > OpKind.CONSTANT),
    *(f"elements of {kind.name.lower()}" for kind in OpKind if kind > OpKind.CONSTANT),
    "handed over", "laid out otherwise", "fastest dimension otherwise", "slowest dimension fastest",
)  # fmt: skip
"""Columns of `KernelFeatures.whole`."""
LAYOUT_COLUMNS = slice(len(KERNEL_FEATURES) - 3, len(KERNEL_FEATURES))
"""Columns that depend on the layouts of a kernel's operands."""
HANDED_OVER_FLOPS = 1000.0
"""XLA runs a kernel with fewer FLOP in the thread that calls it, others in a thread of its pool,
which takes 12 microseconds more."""


@dataclass(frozen=True, eq=False)
class KernelFeatures:
    """``K`` kernels of ``n`` nodes and ``m`` edges; the nodes of a kernel stand together, each
    behind those that it reads."""

    opcode: Int32[np.ndarray, "n"]
    """[n] see `go_rl.graphs.cutting.opcode_names.opcode_numbers`."""
    nodes: Float32[np.ndarray, "n F"]
    """[n, F] `NODE_FEATURES`."""
    senders: Int32[np.ndarray, "m"]
    receivers: Int32[np.ndarray, "m"]
    first_node: Int64[np.ndarray, "K1"]
    """[K + 1] where the nodes of each kernel begin, and the end."""
    first_edge: Int64[np.ndarray, "K1"]
    """[K + 1] where the edges of each kernel begin, and the end."""
    whole: Float32[np.ndarray, "K W"]
    """[K, W] `KERNEL_FEATURES`."""

    @property
    def num_kernels(self) -> int:
        """Number of kernels K."""
        return len(self.whole)

    def take(self, which: Int64[np.ndarray, "J"]) -> KernelFeatures:
        """Return some kernels, in this order; one may be there several times."""
        nodes, first_node = ranges(self.first_node, which)
        edges, first_edge = ranges(self.first_edge, which)
        moved = first_node[:-1] - self.first_node[which]
        moved = np.repeat(moved, np.diff(first_edge)).astype(np.int32)
        return KernelFeatures(
            opcode=self.opcode[nodes],
            nodes=self.nodes[nodes],
            senders=self.senders[edges] + moved,
            receivers=self.receivers[edges] + moved,
            first_node=first_node,
            first_edge=first_edge,
            whole=self.whole[which],
        )

    def with_layouts(self, settings: Sequence[str]) -> KernelFeatures:
        """Return the kernels under these [K] settings (`go_rl.costs.kernels.measure.settings`), of
        which only layouts count; "" : as they come."""
        whole = self.whole.copy()
        whole[:, LAYOUT_COLUMNS] = [layout_features(setting) for setting in settings]
        return replace(self, whole=whole)


def ranges(
    first: Int64[np.ndarray, "K1"], which: Int64[np.ndarray, "J"]
) -> tuple[Int64[np.ndarray, "x"], Int64[np.ndarray, "J1"]]:
    """Return where the rows of some kernels stand, one kernel after the other, and [J + 1] where
    each begins among these; ``first`` as in `KernelFeatures`."""
    counts = first[which + 1] - first[which]
    start = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return np.arange(start[-1]) + np.repeat(first[which] - start[:-1], counts), start


def layout_features(setting: str) -> tuple[float, float, float]:
    """Return how many operands lie otherwise than row by row, in how many another dimension is the
    fastest, and in how many that is the first one; as logarithms like all counts."""
    orders = [o for o in layouts_of(setting) if o]
    otherwise = sum(list(order) != sorted(order) for order in orders)
    fastest = sum(order[-1] != len(order) - 1 for order in orders)
    slowest = sum(order[-1] == 0 for order in orders if len(order) > 1)
    return float(_log(otherwise)), float(_log(fastest)), float(_log(slowest))


def kernel_features(kernels: KernelSet, vocabulary: Sequence[str]) -> KernelFeatures:
    """Return the features of kernels; opcodes are numbered by the vocabulary."""
    graph, count = kernels.graph, kernels.num_kernels
    order = np.argsort(kernels.kernel, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    depth = levels(graph).astype(np.float64)
    by_kernel = np.argsort(kernels.kernel[graph.receivers], kind="stable")
    owner = kernels.kernel[order]
    return KernelFeatures(
        opcode=opcode_numbers(graph.op_type, vocabulary)[order],
        nodes=_node_features(graph, depth)[order],
        senders=place[graph.senders[by_kernel]].astype(np.int32),
        receivers=place[graph.receivers[by_kernel]].astype(np.int32),
        first_node=np.searchsorted(owner, np.arange(count + 1)).astype(np.int64),
        first_edge=np.searchsorted(
            kernels.kernel[graph.receivers[by_kernel]], np.arange(count + 1)
        ).astype(np.int64),
        whole=_whole_features(kernels, depth),
    )


def _log(values: Any) -> Any:
    return np.log2(1.0 + values)


def _node_features(graph: OpGraph, depth: np.ndarray) -> Float32[np.ndarray, "n F"]:
    count = graph.num_nodes
    elements = _elements(graph)
    read = np.bincount(graph.receivers, graph.edge_bytes, count)
    largest = np.zeros(count)
    np.maximum.at(largest, graph.receivers, graph.edge_bytes)
    geometry = geometry_of(graph)
    unknown = np.asarray(np.isnan(geometry).any(axis=1))
    known = np.where(unknown[:, None], 0.0, geometry)
    last = _last_dims(graph)
    columns = [
        np.equal(graph.kind[:, None], np.array([int(kind) for kind in OpKind])),
        _log(last),
        (graph.output_shape != NO_DIM).sum(axis=1),
        _log(elements), _twos(last[:, -2]), _twos(last[:, -3]), _twos(elements),
        np.equal(graph.output_itemsize[:, None], np.array(ITEM_SIZES)),
        _log(graph.flops), _log(graph.flops / elements), _log(graph.output_bytes),
        _log(graph.weight_bytes), _log(read), _log(largest),
        _log(np.delete(known, MINOR, axis=1)),
        known[:, MINOR].astype(np.int64) & 1, known[:, MINOR].astype(np.int64) >> 1,
        unknown, graph.is_output,
        _log(np.bincount(graph.senders, minlength=count)),
        _log(np.bincount(graph.receivers, minlength=count)), depth,
    ]  # fmt: skip
    return _table(columns, len(NODE_FEATURES))


def _table(columns: Sequence[np.ndarray], width: int) -> Float32[np.ndarray, "rows width"]:
    parts = [np.asarray(c if c.ndim > 1 else c[:, None], np.float32) for c in columns]
    table = np.concatenate(parts, axis=1)
    assert table.shape[1] == width, (table.shape, width)
    return table


def _twos(counts: Float64[np.ndarray, "n"]) -> Float64[np.ndarray, "n"]:
    """[n] how often each count can be halved, at most `MOST_TWOS` times: what does not divide by
    the width of a vector leaves a rest, and large powers share sets of the cache."""
    whole = counts.astype(np.int64)
    return np.minimum(np.log2(np.maximum(whole & -whole, 1)), MOST_TWOS)


def _elements(graph: OpGraph) -> Float64[np.ndarray, "n"]:
    """[n] elements of each node's result, at least 1; where no shape is known, from its bytes."""
    shapes = np.where(graph.output_shape == NO_DIM, 1, graph.output_shape).prod(axis=1)
    itemsize = np.maximum(graph.output_itemsize, 1.0)
    stated = (graph.output_shape != NO_DIM).any(axis=1)
    return np.maximum(np.where(stated, shapes, graph.output_bytes / itemsize), 1.0)


def _last_dims(graph: OpGraph) -> Float64[np.ndarray, "n D"]:
    """[n, DIMS + 1] the last dimensions of each shape, right-aligned, and the product of the rest;
    0 where there is none."""
    shape = graph.output_shape.astype(np.float64)
    count, rank = len(shape), np.count_nonzero(graph.output_shape != NO_DIM, axis=1)
    found = np.zeros((count, DIMS + 1))
    for i in range(DIMS):
        at = rank - DIMS + i
        there = at >= 0
        found[there, i] = shape[there, at[there]]
    outer = np.arange(shape.shape[1])[None, :] < (rank - DIMS)[:, None]
    product = np.where(outer, shape, 1.0).prod(axis=1) if shape.shape[1] else np.ones(count)
    found[:, DIMS] = np.where(rank > DIMS, product, 0.0)
    return found


def _whole_features(kernels: KernelSet, depth: np.ndarray) -> Float32[np.ndarray, "K W"]:
    graph, kernel, count = kernels.graph, kernels.kernel, kernels.num_kernels

    def total(values: np.ndarray) -> Float64[np.ndarray, "K"]:
        return np.bincount(kernel, values, count).astype(np.float64)  # of nothing they are integers

    def largest(values: np.ndarray) -> Float64[np.ndarray, "K"]:
        most = np.zeros(count)
        np.maximum.at(most, kernel, values)
        return most

    operand = graph.kind == OpKind.INPUT
    flops, read = total(graph.flops), total(graph.output_bytes * operand)
    written, weights = total(graph.output_bytes * graph.is_output), total(graph.weight_bytes)
    inside = total(graph.output_bytes * ~(operand | graph.is_output))
    elements = _elements(graph)
    work = [kind for kind in OpKind if kind > OpKind.CONSTANT]
    columns = [
        _log(total(np.ones(len(kernel)))), _log(total(~operand)), largest(depth),
        _log(flops), _log(read), _log(written), _log(weights), _log(inside),
        _log(largest(np.maximum(graph.output_bytes, graph.weight_bytes))),
        _log(flops / np.maximum(read + written + weights, 1.0)),
        _log(total(operand)), _log(total(graph.is_output)),
        *(_log(total(graph.flops * (graph.kind == kind))) for kind in work),
        *(_log(total(elements * (graph.kind == kind))) for kind in work),
        flops >= HANDED_OVER_FLOPS, np.zeros((count, 3)),
    ]  # fmt: skip
    return _table(columns, len(KERNEL_FEATURES))
