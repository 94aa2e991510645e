"""`KernelSet`: kernels as small graphs, cut from a model's graph by a fusion decision.

A kernel is the operators that share it and, as nodes of kind INPUT, the tensors that it reads from
outside, each once. Many kernels are one `OpGraph` of separate parts, so a set can be kept in a
graph file and its features are columns, not objects.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np
from jaxtyping import Bool, Int, Int64, Shaped, UInt64

from go_rl.core import FREE, GEOMETRY, NO_DIM, NO_TIED_WEIGHTS, OpGraph, OpKind
from go_rl.graphs.cutting.graph_rows import COLUMNS, geometry_of, graph_rows, joined_graphs, levels

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


@dataclass(frozen=True, eq=False)
class KernelSet:
    """``K`` kernels of ``n`` nodes altogether."""

    graph: OpGraph
    """No edge joins nodes of two kernels."""
    kernel: Int64[np.ndarray, "n"]
    """[n] kernel of each node, in 0..K-1."""
    num_kernels: int
    """Number of kernels K; some may be empty of nodes."""

    @cached_property
    def hashes(self) -> tuple[str, ...]:
        """[K] canonical hashes of 32 hexadecimal digits: equal for kernels that compute the same
        operators on the same shapes in the same way, wherever they were cut."""
        return kernel_hashes(self.graph, self.kernel, self.num_kernels)

    def take(self, which: Int[np.ndarray, "J"]) -> KernelSet:
        """Return some of the kernels, in the order given; each at most once."""
        place = np.full(self.num_kernels, FREE, np.int64)
        place[which] = np.arange(len(which))
        kept = place[self.kernel] != FREE
        kernel = place[self.kernel[kept]]
        return KernelSet(graph_rows(self.graph, kept), kernel, len(which))


def cut_kernels(graph: OpGraph, leader: Int[np.ndarray, "N"]) -> tuple[KernelSet, np.ndarray]:
    """Return the kernels of a fusion, and [K] the leader of each, ascending.

    Inputs and constants that read nothing are no kernels; a kernel that reads them has them as
    inputs.

    Args:
        graph: of a model.
        leader: [N] nodes with equal numbers share a kernel.
    """
    busy = ~graph.is_fed
    leaders, kernel = np.unique(leader[busy], return_inverse=True)
    of_node = np.full(graph.num_nodes, FREE, np.int64)
    of_node[busy] = kernel
    inside, tensor = _tensors_read(graph, of_node)
    columns = _columns(graph, busy, tensor)
    kernels = np.concatenate([tensor.kernel, kernel.astype(np.int64)])
    place = np.full(graph.num_nodes, FREE, np.int64)
    place[busy] = len(tensor.kernel) + np.arange(len(kernel))
    senders = np.concatenate([tensor.number, place[graph.senders[inside]]])
    receivers = place[np.concatenate([graph.receivers[tensor.edges], graph.receivers[inside]])]
    edges = np.concatenate([tensor.edges, np.flatnonzero(inside)])
    output = np.where(np.arange(len(edges)) < len(tensor.edges), 0, graph.edge_output[edges])
    cut = replace(
        columns,
        senders=senders.astype(np.int32),
        receivers=receivers.astype(np.int32),
        edge_bytes=graph.edge_bytes[edges],
        edge_output=output.astype(np.int32),
    )
    return KernelSet(cut, kernels, len(leaders)), leaders.astype(np.int64)


def join_kernels(sets: Sequence[KernelSet]) -> KernelSet:
    """Return the kernels of all sets, one after the other; at least one set."""
    before = np.cumsum([0, *(each.num_kernels for each in sets)])
    kernel = [each.kernel + first for each, first in zip(sets, before, strict=False)]
    graph = joined_graphs([each.graph for each in sets])
    return KernelSet(graph, np.concatenate(kernel), int(before[-1]))


@dataclass(frozen=True, eq=False)
class _TensorsRead:
    """``T`` tensors that kernels read from outside, each once a kernel; ``X`` edges that bring
    them."""

    kernel: Int64[np.ndarray, "T"]
    sender: Int64[np.ndarray, "T"]
    output: Int64[np.ndarray, "T"]
    num_bytes: np.ndarray
    edges: Int64[np.ndarray, "X"]
    number: Int64[np.ndarray, "X"]
    """[X] tensor that each of the edges brings."""


def _tensors_read(
    graph: OpGraph, kernel: Int64[np.ndarray, "N"]
) -> tuple[Bool[np.ndarray, "E"], _TensorsRead]:
    """[E] edges inside a kernel, and what comes from outside; ``kernel`` [N]: `FREE` for inputs and
    constants."""
    source, reader = kernel[graph.senders], kernel[graph.receivers]
    inside = (source == reader) & (reader != FREE)
    edges = np.flatnonzero(~inside & (reader != FREE))
    keys = np.stack([reader[edges], graph.senders[edges], graph.edge_output[edges]])
    tensors, first, number = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    return inside, _TensorsRead(
        kernel=tensors[0].astype(np.int64),
        sender=tensors[1].astype(np.int64),
        output=tensors[2].astype(np.int64),
        num_bytes=graph.edge_bytes[edges[first]],
        edges=edges,
        number=number.ravel().astype(np.int64),
    )


def _columns(graph: OpGraph, busy: Bool[np.ndarray, "N"], read: _TensorsRead) -> OpGraph:
    """The nodes of all kernels: the tensors read, then the operators; edges are still missing."""
    tensors, own = len(read.kernel), np.flatnonzero(busy)
    blank = {name: np.zeros(tensors, getattr(graph, name).dtype) for name in COLUMNS}
    blank["kind"][:] = OpKind.INPUT
    blank["output_bytes"] = read.num_bytes
    blank["output_itemsize"] = graph.output_itemsize[read.sender]
    columns = {k: np.concatenate([v, getattr(graph, k)[own]]) for k, v in blank.items()}
    columns["is_output"][tensors:] = _leaves_kernel(graph, read)[own]
    free = np.full(tensors + len(own), FREE, np.int32)
    shape = np.where(read.output[:, None] == 0, graph.output_shape[read.sender], NO_DIM)
    return replace(
        graph,
        name=f"kernels of {graph.name}",
        names=tuple(range(tensors + len(own))),
        op_type=("input",) * tensors + tuple(graph.op_type[i] for i in own.tolist()),
        source=("",) * (tensors + len(own)),
        output_shape=np.concatenate([shape, graph.output_shape[own]]),
        geometry=np.concatenate([np.zeros((tensors, len(GEOMETRY))), geometry_of(graph)[own]]),
        element_type=np.concatenate([np.zeros(tensors, np.int8), graph.product_type[own]]),
        colocation=free,
        **NO_TIED_WEIGHTS,
        is_backward=np.zeros(len(free), np.bool_),
        seconds={},
        transfer_seconds=None,
        meta={},
        **columns,
    )


def _leaves_kernel(graph: OpGraph, read: _TensorsRead) -> Bool[np.ndarray, "N"]:
    """[N] results of the model, those that another kernel reads, and those without a reader."""
    found = graph.is_output | (np.bincount(graph.senders, minlength=graph.num_nodes) == 0)
    found[read.sender] = True
    return found
