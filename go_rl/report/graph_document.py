"""An operator graph as the JSON document of ``go-rl graph --json``."""

from __future__ import annotations

from typing import Any

from go_rl.core import FREE, NO_DIM, OpGraph, OpKind
from go_rl.core.evaluation import finite


def graph_document(graph: OpGraph) -> dict[str, Any]:
    """Return ``name``, ``hash``, ``notes``, ``nodes`` and ``edges``; ids are those of the file.

    Sizes are bytes in the model's own number format, times are seconds; null stands where there is
    no finite number. Nodes are in topological order.
    """
    return {
        "name": graph.name,
        "hash": graph.digest,
        "notes": list(graph.meta.get("notes", ())),
        "nodes": [_node(graph, n) for n in range(graph.num_nodes)],
        "edges": [_edge(graph, e) for e in range(graph.num_edges)],
    }


def _node(graph: OpGraph, n: int) -> dict[str, Any]:
    colocation = int(graph.colocation[n])
    return {
        "id": graph.names[n],
        "op_type": graph.op_type[n],
        "kind": OpKind(int(graph.kind[n])).name.lower(),
        "flops": float(graph.flops[n]),
        "bytes": float(graph.bytes_accessed[n]),
        "output_bytes": float(graph.output_bytes[n]),
        "weight_bytes": float(graph.weight_bytes[n]),
        "output_shape": [int(d) for d in graph.output_shape[n] if d != NO_DIM],
        "colocation": None if colocation == FREE else colocation,
        "is_backward": bool(graph.is_backward[n]),
        "is_output": bool(graph.is_output[n]),
        "seconds": {kind: finite(float(times[n])) for kind, times in graph.seconds.items()},
        "source": graph.source[n],
    }


def _edge(graph: OpGraph, e: int) -> dict[str, Any]:
    return {
        "source": graph.names[graph.senders[e]],
        "target": graph.names[graph.receivers[e]],
        "bytes": float(graph.edge_bytes[e]),
        "output": int(graph.edge_output[e]),
    }
