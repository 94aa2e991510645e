"""Inputs of HDP's networks: features of operators and of groups (Mirhoseini et al. 2018, section
3).

An operator is its type, the sizes of its outputs and the positions of its neighbours; a group is
how often each type occurs in it, the sizes of its members summed, and the groups it touches.

Dimension letters: ``N`` operators, ``A`` numbers of an operator's neighbours, ``S`` sizes, ``F``
both together, ``M`` groupings, ``G`` groups, ``X`` numbers of a group.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np
from jaxtyping import Float32, Float64, Int, Int32, Int64

from go_rl.core import OpGraph

TYPES = 64
"""Operator types that are distinguished, the most frequent of a graph first; all others share the
last. The number is fixed, so that graphs of one size share compiled code."""
DIMENSIONS = 5
"""Dimensions of an output that are read."""
SIZES = DIMENSIONS + 2
"""Size features of an operator: `DIMENSIONS`, the bytes of all outputs, and the number of outputs
that are read."""
LEAST_SPREAD = 1e-6
"""A column whose standard deviation is less counts as constant."""


def features_of(groups: int) -> int:
    """Number X of features that describe a group where there are this many."""
    return TYPES + SIZES + 2 * groups


def columns(adjacency: int, published: bool) -> int:
    """Number F of features of an operator that the grouper reads."""
    return adjacency + (1 + DIMENSIONS if published else SIZES)


class OpFeatures(NamedTuple):
    """Features of operators."""

    op_type: Int32[np.ndarray, "N"]
    """[N] less than `TYPES`."""
    sizes: Float32[np.ndarray, "N S"]
    """[N, S] logarithms of 1 + size."""
    numbers: Float32[np.ndarray, "N F"]
    """[N, F] for the grouper: sizes, then pairs (position, direction) of the nearest neighbours;
    every column has mean 0 and deviation 1 over the graph, or is constant and 0. As published: the
    number of the type, dimensions (-1: none) and positions, as they are."""
    run: Int32[np.ndarray, "N"]
    """[N] group that the grouper starts from, where it has a prior; see `equal_runs`."""


def op_features(graph: OpGraph, adjacency: int, published: bool = False) -> OpFeatures:
    """Return the features of all operators.

    Args:
        graph: the operators.
        adjacency: numbers for the neighbours of each.
        published: as in the authors' code instead of logarithms of sizes, standardised.
    """
    if published:
        op_type, shape = _types(graph), graph.output_shape[:, :DIMENSIONS]
        near = neighbours(graph, adjacency)
        near[:, ::2] *= graph.num_nodes
        known = np.full((graph.num_nodes, SIZES), -1.0)
        known[:, : shape.shape[1]] = shape
        numbers = np.concatenate([op_type[:, None], known[:, :DIMENSIONS], near], axis=1)
        sizes = np.maximum(known, 0.0)
        return OpFeatures(
            op_type, sizes.astype(np.float32), numbers.astype(np.float32), np.zeros_like(op_type)
        )
    sizes = _sizes(graph)
    numbers = np.concatenate([sizes, neighbours(graph, adjacency)], axis=1)
    spread = numbers.std(axis=0)
    centred = (numbers - numbers.mean(axis=0)) / np.where(spread > LEAST_SPREAD, spread, np.inf)
    op_type = _types(graph)
    return OpFeatures(
        op_type, sizes.astype(np.float32), centred.astype(np.float32), np.zeros_like(op_type)
    )


def equal_runs(work: Float64[np.ndarray, "N"], groups: int) -> Int32[np.ndarray, "N"]:
    """Return [N] runs of operators in topological order, as many as groups, of about equal work."""
    work = work if work.any() else np.ones(len(work))
    middle = (np.cumsum(work) - work / 2) / work.sum()
    return np.minimum((middle * groups).astype(np.int32), groups - 1)


def group_features(
    graph: OpGraph,
    ops: OpFeatures,
    group: Int[np.ndarray, "M N"],
    groups: int,
    published: bool = False,
) -> Float32[np.ndarray, "M G X"]:
    """Return [M, G, X] features of the groups of some groupings.

    Each of the three parts is divided by 1 + its largest entry in the group; as ``published``, the
    parts together are.
    """
    rows = len(group)
    cell = np.arange(rows)[:, None] * groups + group
    types = _sums(cell * TYPES + ops.op_type, rows * groups * TYPES)
    columns = [
        _sums(cell, rows * groups, np.tile(size.astype(np.float64), rows)) for size in ops.sizes.T
    ]
    sizes = np.stack(columns, axis=-1)
    edges = cell[:, graph.senders] * groups + group[:, graph.receivers]
    count = _sums(edges, rows * groups * groups).reshape(rows, groups, groups)
    touches = np.concatenate([count, count.swapaxes(1, 2)], axis=-1)
    parts = (types.reshape(rows, groups, -1), sizes.reshape(rows, groups, -1), touches)
    if published:
        parts = (np.concatenate(parts, axis=-1),)
    scaled = [part / (1 + part.max(axis=-1, keepdims=True)) for part in parts]
    return np.concatenate(scaled, axis=-1).astype(np.float32)


def _sums(
    cell: Int64[np.ndarray, "M K"], cells: int, weights: Float64[np.ndarray, "Z"] | None = None
) -> Float64[np.ndarray, "C"]:
    return np.bincount(cell.ravel(), weights, cells).astype(np.float64)


def _types(graph: OpGraph) -> Int32[np.ndarray, "N"]:
    often = sorted(Counter(graph.op_type).items(), key=lambda item: (-item[1], item[0]))
    number = {name: min(i, TYPES - 1) for i, (name, _) in enumerate(often)}
    return np.array([number[name] for name in graph.op_type], np.int32)


def _sizes(graph: OpGraph) -> Float64[np.ndarray, "N S"]:
    sizes = np.zeros((graph.num_nodes, SIZES))
    shape = np.maximum(graph.output_shape[:, :DIMENSIONS], 0)
    sizes[:, : shape.shape[1]] = shape
    sizes[:, -2] = graph.output_bytes
    results = np.unique(np.stack([graph.senders, graph.edge_output]), axis=1)[0]
    sizes[:, -1] = np.bincount(results, minlength=graph.num_nodes)
    return np.log1p(sizes)


def neighbours(graph: OpGraph, width: int) -> Float64[np.ndarray, "N A"]:
    """Return [N, A] pairs (position, direction), the nearest neighbour first, then zeros.

    Positions are in (0, 1]; the direction is -1 for a producer and 1 for a consumer.
    """
    edges = np.unique(np.stack([graph.senders, graph.receivers]), axis=1).astype(np.int64)
    node, other = np.concatenate([edges, edges[::-1]], axis=1)
    order = np.lexsort((other, np.abs(other - node), node))
    node, other = node[order], other[order]
    rank = np.arange(len(node)) - np.searchsorted(node, node)
    kept = rank < width // 2
    node, other, rank = node[kept], other[kept], 2 * rank[kept]
    found = np.zeros((graph.num_nodes, width))
    found[node, rank] = (other + 1) / graph.num_nodes
    found[node, rank + 1] = np.sign(other - node)
    return found
