"""Limits of a fused kernel, shared by fusion and the checker."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool

from go_rl.core.graph.op_graph import OpGraph
from go_rl.core.graph.op_kind import IS_PRODUCT, OpKind

MAX_FUSED = 64
"""Nodes of one kernel."""
MAX_BOUNDARY = 96
"""Tensors that a kernel reads and writes together; XLA's limit on operands and outputs."""
LOOP = frozenset({OpKind.ELEMENTWISE, OpKind.MOVEMENT, OpKind.GATHER})
"""Operators that compute each result element on its own."""
FUSIBLE: dict[OpKind, frozenset[OpKind]] = {
    OpKind.ELEMENTWISE: LOOP | {OpKind.REDUCTION},
    OpKind.MOVEMENT: LOOP | {OpKind.REDUCTION},
    OpKind.GATHER: LOOP | {OpKind.REDUCTION},
    OpKind.MATMUL: frozenset({OpKind.ELEMENTWISE, OpKind.MOVEMENT}),
    OpKind.CONVOLUTION: frozenset({OpKind.ELEMENTWISE, OpKind.MOVEMENT}),
}
"""Kinds of consumers with which a producer may share a kernel; a kind not listed: none."""


def fusible_kinds() -> Bool[np.ndarray, "K K"]:
    """Return [K, K] `FUSIBLE` as a table: whether a producer of a kind may share a kernel with a
    consumer of another."""
    table = np.zeros((len(OpKind), len(OpKind)), np.bool_)
    for producer, consumers in FUSIBLE.items():
        table[producer, list(consumers)] = True
    return table


def heavy_nodes(graph: OpGraph) -> Bool[np.ndarray, "N"]:
    """Return [N] matrix products and convolutions."""
    return IS_PRODUCT[graph.kind]
