"""Micro-batches in the names of nodes.

A node of micro-batch 1 in the layer ``encoder/block`` is named ``encoder/block/dot_general.7@1``:
its scope is that of the layer, which all micro-batches share.
"""

from __future__ import annotations

import re

import numpy as np
from jaxtyping import Int64

from go_rl.core.graph.op_graph import OpGraph

WHOLE = -1
"""Micro-batch of a node that belongs to none, such as an update."""
_SCOPE = re.compile(r"(?:^|/)micro_batch_(\d+)(?=/|$)")
_NAME = re.compile(r"@(\d+)$")


def micro_batch_scope(number: int) -> str:
    """Return the scope in which a micro-batch is traced."""
    return f"micro_batch_{number}"


def without_micro_batch(scope: str) -> tuple[str, str]:
    """Return a scope without its micro-batch, and the ending of a node's name that says which."""
    found = _SCOPE.search(scope)
    return (_SCOPE.sub("", scope).lstrip("/"), f"@{found[1]}") if found else (scope, "")


def micro_batches(graph: OpGraph) -> Int64[np.ndarray, "N"]:
    """Return [N] the micro-batch of each node; `WHOLE`: none."""
    found = (_NAME.search(str(name)) for name in graph.names)
    return np.array([int(f[1]) if f else WHOLE for f in found], np.int64)
