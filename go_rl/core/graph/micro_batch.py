"""Micro-batches in the names of nodes.

A node of micro-batch 1 in the layer ``encoder/block`` is named ``encoder/block/dot_general.7@1``:
its scope is that of the layer, which all micro-batches share.
"""

from __future__ import annotations

import re

from go_rl.core.graph.op_graph import NodeId

WHOLE = -1
"""Micro-batch of a node that belongs to none, such as an update."""
_SCOPE = re.compile(r"(?:^|/)micro_batch_(\d+)(?=/|$)")
_NAME = re.compile(r"@(\d+)$")


def micro_batch_scope(number: int) -> str:
    """Return the scope in which a micro-batch is traced."""
    return f"micro_batch_{number}"


def micro_batch_ending(number: int) -> str:
    """Return the ending of the names of a micro-batch's nodes."""
    return f"@{number}"


def without_micro_batch(scope: str) -> tuple[str, str]:
    """Return a scope without its micro-batch, and the ending of a node's name that says which."""
    found = _SCOPE.search(scope)
    if found is None:
        return scope, ""
    return _SCOPE.sub("", scope).lstrip("/"), micro_batch_ending(int(found[1]))


def micro_batch_of(name: NodeId) -> int:
    """Return the micro-batch of a node by its name; `WHOLE`: none."""
    found = _NAME.search(str(name))
    return int(found[1]) if found else WHOLE
