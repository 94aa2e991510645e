"""`GpuKernels`: what the operators of a graph do on a GPU, whichever of them share a kernel.

A kernel is its products, and the bytes that it streams beyond theirs; one without products is a
stream of all its bytes. So a fusion is priced from columns, without cutting its kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float64, Int8, Int64

from go_rl.core import NO_DIM, OpGraph
from go_rl.core.graph.op_kind import IS_FREE, IS_PRODUCT
from go_rl.costs.operator_sizes import FLOAT_BYTES
from go_rl.costs.operators.launches.attention_launches import fused_attention
from go_rl.costs.operators.launches.launch import operator_rows
from go_rl.costs.operators.launches.operator_view import VIEWS, OperatorView
from go_rl.costs.operators.launches.product_launches import product_launches
from go_rl.costs.operators.tables import OperatorRows
from go_rl.costs.operators.tables.operator_rows import ONE_READ, SIZES
from go_rl.costs.operators.type_rates import element_width
from go_rl.graphs.cutting.kernel_set import cut_kernels
from go_rl.graphs.cutting.opcode_names import opcode
from go_rl.graphs.cutting.tensor_readings import TensorReadings

KEPT = 16
"""Graphs whose operators stay in memory."""
NO_PRODUCT = -1
"""Number of the product of a node that computes none."""


class KernelWork(NamedTuple):
    """Work of the kernels of a fusion, at their leaders; all [N], 0 where a node leads none."""

    leader: Int64[np.ndarray, "N"]
    """[N] the node that leads each node's kernel."""
    moved: Float64[np.ndarray, "N"]
    """Bytes read and written: each operand once, weights, and results that another kernel or the
    user reads."""
    of_products: Float64[np.ndarray, "N"]
    """Bytes of operands and results of the products."""
    launches: Bool[np.ndarray, "N"]
    """Whether anything is launched."""
    length: Int64[np.ndarray, "N"]
    """Elements of the longest row of the results."""

    @property
    def streams(self) -> Bool[np.ndarray, "N"]:
        """[N] kernels without products."""
        return self.launches & (self.of_products == 0)

    @property
    def beyond(self) -> Float64[np.ndarray, "N"]:
        """[N] bytes that kernels with products move beyond them."""
        beyond = np.maximum(self.moved - self.of_products, 0.0)
        return np.where(self.of_products > 0, beyond, 0.0)


class Products(NamedTuple):
    """The distinct products ``P`` of a graph."""

    rows: OperatorRows
    types: Int8[np.ndarray, "P"]
    """[P] `go_rl.core.ElementType` of those in other types than float32."""
    stand_in: Bool[np.ndarray, "P"]
    """[P] whether each stands in for an operator that the table does not have."""
    of_node: Int64[np.ndarray, "N"]
    """[N] the product of each node, or `NO_PRODUCT`."""


@dataclass(frozen=True, eq=False)
class GpuKernels:
    """Operators of a graph of ``N`` nodes."""

    graph: OpGraph

    @cached_property
    def launches(self) -> Bool[np.ndarray, "N"]:
        """[N] operators that launch something: neither inputs and constants nor views."""
        is_view = {name: opcode(name) in VIEWS for name in set(self.graph.op_type)}
        free = IS_FREE[self.graph.kind]
        return ~free & ~np.array([is_view[name] for name in self.graph.op_type], bool)

    @cached_property
    def length(self) -> Int64[np.ndarray, "N"]:
        """[N] elements of a row of each result, at least 1."""
        shape = self.graph.output_shape
        rank = (shape != NO_DIM).sum(axis=1)
        padded = np.concatenate([np.ones((len(shape), 1), np.int64), shape], axis=1)
        return np.maximum(padded[np.arange(len(shape)), rank], 1).astype(np.int64)

    @cached_property
    def products(self) -> Products:
        """The products."""
        heavy = IS_PRODUCT[self.graph.kind] & self.launches
        heavy &= self.graph.output_bytes > 0
        kernels, leaders = cut_kernels(self.graph, np.arange(self.graph.num_nodes))
        alone = kernels.take(np.flatnonzero(heavy[leaders]))
        first: dict[str, int] = {}
        for k, name in enumerate(alone.hashes):
            first.setdefault(name, k)
        number = {name: i for i, name in enumerate(first)}
        of_node = np.full(self.graph.num_nodes, NO_PRODUCT, np.int64)
        of_node[heavy] = [number[name] for name in alone.hashes]
        view = OperatorView(alone.take(np.array(list(first.values()), np.int64)).graph)
        nodes = np.flatnonzero(IS_PRODUCT[view.graph.kind])
        found = [
            fused_attention(view, node) or list(product_launches(view, node, ()))[-1]
            for node in nodes.tolist()
        ]
        stand_in = np.array([launch.unlike for launch in found], bool)
        types = view.graph.product_type[nodes]
        return Products(operator_rows(found), types, stand_in, of_node)

    @cached_property
    def product_bytes(self) -> Float64[np.ndarray, "N"]:
        """[N] bytes of the operands and the result of each node's product; 0 without."""
        rows, types, _, of_node = self.products
        return np.append(rows.least_bytes() * element_width(types), 0.0)[of_node]

    @cached_property
    def _readings(self) -> TensorReadings:
        return TensorReadings(self.graph)

    def work(self, leader: Int64[np.ndarray, "N"]) -> KernelWork:
        """Return the work of the kernels of a fusion; ``leader`` [N]: nodes with equal numbers
        share the kernel that the node of this number leads."""
        count = self.graph.num_nodes
        length = np.ones(count, np.int64)
        np.maximum.at(length, leader[self.launches], self.length[self.launches])
        return KernelWork(
            leader=leader,
            moved=self._moved(leader),
            of_products=np.bincount(leader, self.product_bytes, count),
            launches=np.bincount(leader[self.launches], minlength=count) > 0,
            length=length,
        )

    def _moved(self, leader: Int64[np.ndarray, "N"]) -> Float64[np.ndarray, "N"]:
        graph, count = self.graph, self.graph.num_nodes
        fed, reader, source = graph.is_fed, leader[graph.receivers], leader[graph.senders]
        from_outside = (source != reader) | fed[graph.senders]
        read = np.flatnonzero(from_outside & ~self._readings.again(reader))
        written = graph.is_output | (np.bincount(graph.senders, minlength=count) == 0)
        written[graph.senders[read]] = True
        own = np.where(fed, 0.0, graph.output_bytes * written + graph.weight_bytes_read)
        operands = np.bincount(reader[read], graph.edge_bytes[read], count)
        return np.bincount(leader, own, count) + operands


@lru_cache(KEPT)
def gpu_kernels(graph: OpGraph) -> GpuKernels:
    """Return `GpuKernels` of a graph, made once for its many fusions."""
    return GpuKernels(graph)


def streamed_rows(
    num_bytes: Float64[np.ndarray, "S"], length: Int64[np.ndarray, "S"]
) -> OperatorRows:
    """Return operators that move this many bytes in rows of this many elements.

    `go_rl.costs.operators.launches.launch.moved` gives the launch of one of them.
    """
    elements = np.maximum(np.rint(num_bytes / (2 * FLOAT_BYTES)).astype(np.int64), 1)
    length = np.clip(length, 1, elements)
    sizes = {name: np.zeros(len(elements), np.int64) for name in SIZES}
    sizes["batch"] = np.maximum(np.rint(elements / length).astype(np.int64), 1)
    sizes["width"] = length
    return OperatorRows(np.full(len(elements), ONE_READ), sizes)
