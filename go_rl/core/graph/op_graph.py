"""`OpGraph`: the frozen operator graph that every other part of go_rl reads.

Dimension letters: ``N`` nodes, ``E`` edges, ``R`` the largest rank of an output, ``A`` arrays of
weights that several nodes read (tied), ``T`` pairs of such a node and such an array.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Bool, Float64, Int8, Int32, Int64, Shaped

from go_rl.core.graph.element_type import ElementType
from go_rl.core.graph.held_weights import HeldWeights, held_weights
from go_rl.core.graph.op_kind import IS_FREE, IS_PRODUCT, OpKind

if TYPE_CHECKING:
    import jraph
    import networkx as nx

FREE = -1
"""`colocation`: the node may be on any device."""
NO_DIM = -1
"""`output_shape`: padding after the last dimension of an output."""

NO_TIED_WEIGHTS: Mapping[str, np.ndarray] = MappingProxyType({
    "tied_node": np.zeros(0, np.int32), "tied_array": np.zeros(0, np.int32),
    "tied_bytes": np.zeros(0),
})  # fmt: skip
"""Fields of an `OpGraph` no two nodes of which read one array of weights."""

NodeId = int | str


@dataclass(frozen=True, eq=False)
class OpGraph:
    """A neural network as operators (nodes) and the tensors between them (edges).

    Nodes are in topological order: every edge goes from a lower to a higher index. Sizes are in
    bytes of the model's own number format; a `Hardware` with its own element width rescales them.
    Build one with `GraphBuilder`, which sorts and checks.
    """

    name: str
    """Name of the model."""
    names: tuple[NodeId, ...]
    """[N] node ids exactly as in the source file, unique."""
    op_type: tuple[str, ...]
    """[N] the operator's name in its own framework, such as ``Conv`` or ``dot_general``."""
    kind: Int8[np.ndarray, "N"]
    """[N] `OpKind` values."""
    flops: Float64[np.ndarray, "N"]
    """[N] floating-point operations an iteration, as XLA's cost analysis counts them."""
    bytes_accessed: Float64[np.ndarray, "N"]
    """[N] operand plus result bytes that an iteration reads and writes when nothing is fused."""
    output_bytes: Float64[np.ndarray, "N"]
    """[N] bytes of all results of the node."""
    weight_bytes: Float64[np.ndarray, "N"]
    """[N] bytes of the constants that the node keeps on its chip between iterations."""
    output_itemsize: Float64[np.ndarray, "N"]
    """[N] bytes of one element of the node's results (0: has none)."""
    weight_itemsize: Float64[np.ndarray, "N"]
    """[N] bytes of one element of the node's weights (0: has none)."""
    tied_node: Int32[np.ndarray, "T"]
    """[T] nodes that read a tied array of weights, ascending; a device keeps one copy of each tied
    array that its nodes read. All other weights are a node's own."""
    tied_array: Int32[np.ndarray, "T"]
    """[T] the tied array, ascending for each node."""
    tied_bytes: Float64[np.ndarray, "A"]
    """[A] bytes of each tied array, included in `weight_bytes` of each node that reads it."""
    output_shape: Int64[np.ndarray, "N R"]
    """[N, R] shape of the first result, padded with `NO_DIM`."""
    colocation: Int32[np.ndarray, "N"]
    """[N] nodes of the same class >= 0 must share a device; `FREE`: no class."""
    is_backward: Bool[np.ndarray, "N"]
    """[N] the node belongs to the backward pass of a training graph."""
    is_output: Bool[np.ndarray, "N"]
    """[N] a result of the node is a result of the whole model."""
    senders: Int32[np.ndarray, "E"]
    """[E] producing node of each edge."""
    receivers: Int32[np.ndarray, "E"]
    """[E] consuming node of each edge; unique together with sender and `edge_output`."""
    edge_bytes: Float64[np.ndarray, "E"]
    """[E] bytes of the tensor that the edge carries."""
    edge_output: Int32[np.ndarray, "E"]
    """[E] index of the sender's result: edges with equal sender and output carry one and the
    same tensor, sent once however many consumers it has."""
    source: tuple[str, ...]
    """[N] where in the user's model the node came from, or an empty string."""
    seconds: Mapping[str, Float64[np.ndarray, "N"]] = field(default_factory=dict)
    """Measured seconds by device kind; ``inf`` marks a node that the kind cannot run."""
    transfer_seconds: Float64[np.ndarray, "N"] | None = None
    """[N] measured seconds to move the node's output between device and host, if profiled."""
    geometry: Float64[np.ndarray, "N G"] | None = None
    """[N, G] `go_rl.core.Geometry` of each node, NaN where the reader gives none; None: of no node.
    """
    element_type: Int8[np.ndarray, "N"] | None = None
    """[N] `ElementType` in which each node computes; None: the source does not say."""
    meta: Mapping[str, Any] = field(default_factory=dict)
    """Facts of the source other than per node (format, dims, the file's own hardware); JSON."""

    def __repr__(self) -> str:
        work = f"{self.flops.sum() / 1e9:.4g} GFLOP" if self.has_flops else "profiled"
        return f"<OpGraph {self.name!r}: {self.num_nodes} nodes, {self.num_edges} edges, {work}>"

    @property
    def num_nodes(self) -> int:
        """Number of nodes N."""
        return len(self.names)

    @property
    def num_edges(self) -> int:
        """Number of edges E."""
        return len(self.senders)

    @property
    def has_flops(self) -> bool:
        """True when operator costs are known as FLOP, not only as measured seconds."""
        return bool(self.flops.any())

    @cached_property
    def index(self) -> dict[NodeId, int]:
        """Node index by name."""
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def successors(self) -> tuple[Int32[np.ndarray, "P"], Int32[np.ndarray, "E"]]:
        """Compressed rows ``(offsets [N + 1], edge ids [E])`` of each node's outgoing edges."""
        return _compressed_rows(self.senders, self.num_nodes)

    @cached_property
    def predecessors(self) -> tuple[Int32[np.ndarray, "P"], Int32[np.ndarray, "E"]]:
        """Compressed rows ``(offsets [N + 1], edge ids [E])`` of each node's incoming edges."""
        return _compressed_rows(self.receivers, self.num_nodes)

    @cached_property
    def held_weights(self) -> HeldWeights:
        """Weights by node and by tied array."""
        return held_weights(self.weight_bytes, self.tied_node, self.tied_array, self.tied_bytes)

    @cached_property
    def is_fed(self) -> Bool[np.ndarray, "N"]:
        """[N] inputs and constants that read nothing: known before an iteration starts."""
        free = IS_FREE[self.kind]
        return free & (np.bincount(self.receivers, minlength=self.num_nodes) == 0)

    @cached_property
    def weight_bytes_read(self) -> Float64[np.ndarray, "N"]:
        """[N] bytes of weights read in an iteration: all, but of a table only the rows looked up.

        What a look-up writes, in the weights' number format, is what it read.
        """
        looks_up = (self.kind == OpKind.GATHER) & (self.output_itemsize > 0)
        size = np.where(looks_up, self.output_itemsize, 1.0)
        rows = self.output_bytes / size * self.weight_itemsize
        return np.where(looks_up, np.minimum(rows, self.weight_bytes), self.weight_bytes)

    @cached_property
    def product_type(self) -> Int8[np.ndarray, "N"]:
        """[N] `ElementType` of the products that compute in another one than float32, which alone
        can change their price; `ElementType.UNKNOWN` of all other nodes."""
        if self.element_type is None:
            return np.zeros(self.num_nodes, np.int8)
        other = IS_PRODUCT[self.kind] & (self.element_type != ElementType.FLOAT32)
        return np.where(other, self.element_type, np.int8(ElementType.UNKNOWN))

    @cached_property
    def digest(self) -> str:
        """SHA-256 over everything that can change a plan's value; the plan's ``graph_hash``."""
        h = hashlib.sha256()
        for name in self.names:
            h.update(f"{type(name).__name__}:{name}\n".encode())
        for name, array in (*self._arrays().items(), *sorted(self.seconds.items())):
            h.update(f"{name}:{array.dtype}:{array.shape}\n".encode())
            h.update(np.ascontiguousarray(array).tobytes())
        h.update("\n".join(self.op_type).encode())
        return h.hexdigest()

    def _arrays(self) -> dict[str, Shaped[np.ndarray, "..."]]:
        stated = {f.name: getattr(self, f.name) for f in fields(self)}
        stated["element_type"] = self.product_type if self.product_type.any() else None
        return {k: v for k, v in sorted(stated.items()) if isinstance(v, np.ndarray)}

    def to_networkx(self) -> nx.MultiDiGraph:
        """Return the graph for networkx; node keys are indices, attributes carry the costs."""
        import networkx as nx

        graph = nx.MultiDiGraph(name=self.name)
        for i, name in enumerate(self.names):
            graph.add_node(i, name=name, op_type=self.op_type[i], flops=float(self.flops[i]))
        for u, v, size in zip(self.senders, self.receivers, self.edge_bytes, strict=True):
            graph.add_edge(int(u), int(v), bytes=float(size))
        return graph

    def to_jraph(self) -> jraph.GraphsTuple:
        """Return the graph for jraph: node features (kind, FLOP, bytes), edge feature bytes."""
        import jraph

        nodes = np.stack(
            [self.kind.astype(np.float64), self.flops, self.output_bytes, self.weight_bytes], axis=1
        )
        return jraph.GraphsTuple(
            nodes=nodes,
            edges=self.edge_bytes[:, None],
            senders=self.senders,  # pyright: ignore[reportArgumentType]
            receivers=self.receivers,  # pyright: ignore[reportArgumentType]
            n_node=np.array([self.num_nodes]),  # pyright: ignore[reportArgumentType]
            n_edge=np.array([self.num_edges]),  # pyright: ignore[reportArgumentType]
            globals=None,
        )


def _compressed_rows(
    keys: Int32[np.ndarray, "E"], rows: int
) -> tuple[Int32[np.ndarray, "P"], Int32[np.ndarray, "E"]]:
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(np.bincount(keys, minlength=rows), out=offsets[1:])
    return offsets, np.argsort(keys, kind="stable").astype(np.int32)
