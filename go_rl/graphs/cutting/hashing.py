"""Canonical hashes of kernels by their computation, independent of names and numbers of nodes.

A node's label mixes its own fields with the labels of its inputs; a kernel's hash is the sum of the
mixed labels of its nodes, so that neither order nor names count. Labels are pairs of 64-bit words
mixed as in SplitMix64 (Steele, Lea and Flood 2014): two different kernels share a hash with a
chance of about 2**-100 in a set of millions.
"""

from __future__ import annotations

import hashlib
from functools import cache

import numpy as np
from jaxtyping import Int64, Shaped, UInt64

from go_rl.core import NO_DIM, OpGraph
from go_rl.graphs.cutting.graph_rows import geometry_of, levels

LANES = 2
SEEDS = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F], np.uint64)
"""One constant for each lane."""


def kernel_hashes(
    graph: OpGraph, kernel: Int64[np.ndarray, "n"], num_kernels: int
) -> tuple[str, ...]:
    """Return [K] hashes of 32 hexadecimal digits; see `KernelSet.hashes`."""
    total = kernel_keys(graph, kernel, num_kernels)
    return tuple(f"{high:016x}{low:016x}" for high, low in total.tolist())


def kernel_keys(
    graph: OpGraph, kernel: Int64[np.ndarray, "n"], num_kernels: int
) -> UInt64[np.ndarray, "K 2"]:
    """Return [K, 2] the same hashes as words."""
    labels = _labels(graph)
    total = np.zeros((num_kernels, LANES), np.uint64)
    for lane in range(LANES):
        np.add.at(total[:, lane], kernel, _mixed(labels[:, lane]))
    return total


def _labels(graph: OpGraph) -> UInt64[np.ndarray, "n 2"]:
    """Labels of all nodes, level by level: a node's label is computed after those of the nodes that
    it reads."""
    labels, level = _own_labels(graph), levels(graph)
    order = np.argsort(level[graph.receivers], kind="stable")
    ends = np.searchsorted(level[graph.receivers][order], np.arange(1, level.max(initial=0) + 2))
    for first, last in zip(ends[:-1].tolist(), ends[1:].tolist(), strict=True):
        edges = order[first:last]
        senders, receivers = graph.senders[edges], graph.receivers[edges]
        which = graph.edge_output[edges].astype(np.uint64)
        for lane in range(LANES):
            read = np.zeros(len(labels), np.uint64)
            np.add.at(read, receivers, _mixed(labels[senders, lane] + which * SEEDS[lane]))
            reached = np.unique(receivers)
            labels[reached, lane] = _mixed(labels[reached, lane] ^ read[reached])
    return labels


def _own_labels(graph: OpGraph) -> UInt64[np.ndarray, "n 2"]:
    """[n, 2] from each node's own fields. Bytes accessed are left out: which kernel pays for a
    shared constant or a view depends on the rest of the model."""
    labels = np.array([_word(t) for t in graph.op_type], np.uint64).reshape(-1, LANES)
    for column in graph.output_shape.T:  # padding does not count, however much there is
        labels = np.where((column == NO_DIM)[:, None], labels, _joined(labels, column))
    columns = [
        graph.output_itemsize, graph.output_bytes, graph.flops, graph.weight_bytes,
        graph.is_output, *np.nan_to_num(geometry_of(graph), nan=-1.0).T,
    ]  # fmt: skip
    for column in columns:
        labels = _joined(labels, column)
    other = graph.product_type[:, None] != 0
    return np.where(other, _joined(labels, graph.product_type), labels)


def _joined(
    labels: UInt64[np.ndarray, "n 2"], column: Shaped[np.ndarray, "n"]
) -> UInt64[np.ndarray, "n 2"]:
    bits = np.ascontiguousarray(column.astype(np.float64) + 0.0).view(np.uint64)
    return _mixed(labels ^ (bits[:, None] + SEEDS))


@cache
def _word(text: str) -> tuple[int, int]:
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "big"), int.from_bytes(digest[8:16], "big")


def _mixed(x: UInt64[np.ndarray, "..."]) -> UInt64[np.ndarray, "..."]:
    """SplitMix64's finaliser."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
