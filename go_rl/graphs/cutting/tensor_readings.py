"""`TensorReadings`: which edges of a graph carry the same tensor, and who reads it first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import no_type_check

import numpy as np
from jaxtyping import Bool, Float64, Int64

from go_rl.core import OpGraph
from go_rl.core.compiled_struct import compiled

NOTHING = -1
"""Last tensor of a reader that has read none."""


@dataclass(frozen=True, eq=False)
class TensorReadings:
    """Edges of a graph by the tensor that they carry; a kernel reads a tensor once, however many of
    its nodes do."""

    graph: OpGraph

    @cached_property
    def tensor(self) -> Int64[np.ndarray, "E"]:
        """[E] number of the tensor that each edge carries."""
        outputs = int(self.graph.edge_output.max(initial=0)) + 1
        key = self.graph.senders.astype(np.int64) * outputs + self.graph.edge_output
        return np.unique(key, return_inverse=True)[1].astype(np.int64)

    @cached_property
    def num_tensors(self) -> int:
        """Number of tensors that are read."""
        return int(self.tensor.max(initial=-1)) + 1

    @cached_property
    def first(self) -> Bool[np.ndarray, "E"]:
        """[E] the first edge of each tensor."""
        return ~self.again(np.zeros(len(self.tensor), np.int64))

    def again(self, reader: Int64[np.ndarray, "E"]) -> Bool[np.ndarray, "E"]:
        """Return [E] edges whose tensor an earlier edge brings to the same reader.

        Args:
            reader: [E] number of who reads at the end of each edge, such as its kernel's leader.
        """
        last = np.full(int(reader.max(initial=0)) + 1, NOTHING, np.int64)
        found = np.empty(len(reader), np.bool_)
        _again(self._by_tensor, self.tensor, reader, last, found)
        return found

    def saved(
        self, leader: Int64[np.ndarray, "N"], edge_bytes: Float64[np.ndarray, "E"]
    ) -> Float64[np.ndarray, "N"]:
        """Return [N] bytes that kernels need not move which their nodes would each by itself.

        A kernel reads a tensor of others once and none of its own, and writes no tensor that it
        alone reads.

        Args:
            leader: [N] node that leads each node's kernel.
            edge_bytes: [E] bytes that travel on each edge.
        """
        graph, count = self.graph, len(leader)
        last = np.full(count, NOTHING, np.int64)
        unread = np.empty(len(edge_bytes), np.bool_)
        leaves = np.zeros(self.num_tensors, np.bool_)
        scratch, reads, writes = (last, unread, leaves), np.zeros(count), np.zeros(count)
        edges = graph.senders, graph.receivers, self.tensor, self.first, edge_bytes
        _save(self._by_tensor, edges, leader, graph.is_output, scratch, reads, writes)
        return reads + writes

    @cached_property
    def _by_tensor(self) -> Int64[np.ndarray, "E"]:
        """[E] edges, those of each tensor in a row."""
        return np.argsort(self.tensor, kind="stable")


@compiled
@no_type_check
def _again(by_tensor, tensor, reader, last, found) -> None:
    for edge in by_tensor:
        found[edge] = last[reader[edge]] == tensor[edge]
        last[reader[edge]] = tensor[edge]


@compiled
@no_type_check
def _save(by_tensor, edges, leader, is_output, scratch, reads, writes) -> None:
    senders, receivers, tensor, first, size = edges
    last, unread, leaves = scratch
    for e in by_tensor:
        reader, writer = leader[receivers[e]], leader[senders[e]]
        unread[e] = reader == writer or last[reader] == tensor[e]
        leaves[tensor[e]] |= reader != writer or is_output[senders[e]]
        last[reader] = tensor[e]
    # In the order of the edges, so that sums do not depend on how tensors are numbered.
    for e in range(len(size)):
        if unread[e]:
            reads[leader[receivers[e]]] += size[e]
        if first[e] and not leaves[tensor[e]]:
            writes[leader[senders[e]]] += size[e]
