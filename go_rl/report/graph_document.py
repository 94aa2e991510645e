"""An operator graph as the JSON document of ``go-rl graph --json``."""

from __future__ import annotations

from typing import Any

from go_rl.core import FREE, NO_DIM, OpGraph, OpKind
from go_rl.core.evaluation import finite
from go_rl.report.graph_summary import weight_bytes


def graph_document(graph: OpGraph) -> dict[str, Any]:
    """Return ``name``, ``hash``, ``totals``, ``notes``, ``nodes`` and ``edges``; ids are those of
    the source file.

    Sizes are bytes in the model's own number format, times are seconds; null stands where there is
    no finite number. Nodes are in topological order.
    """
    return {
        "name": graph.name,
        "hash": graph.digest,
        "totals": totals(graph),
        "notes": [str(note) for note in graph.meta.get("notes", ())],
        "nodes": [_node(graph, n) for n in range(graph.num_nodes)],
        "edges": [_edge(graph, e) for e in range(graph.num_edges)],
    }


def totals(graph: OpGraph) -> dict[str, Any]:
    """Return the sums over nodes and edges: counts, FLOP, bytes, and profiled seconds by device
    kind (null where it cannot run some node); tied weights count once."""
    return {
        "nodes": graph.num_nodes,
        "edges": graph.num_edges,
        "backward_nodes": int(graph.is_backward.sum()),
        "flops": float(graph.flops.sum()),
        "bytes": float(graph.bytes_accessed.sum()),
        "output_bytes": float(graph.output_bytes.sum()),
        "weight_bytes": weight_bytes(graph),
        "edge_bytes": float(graph.edge_bytes.sum()),
        "seconds": {kind: finite(float(times.sum())) for kind, times in graph.seconds.items()},
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
