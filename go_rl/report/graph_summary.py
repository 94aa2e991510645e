"""An operator graph in two tables, its facts and its operators; and as the JSON document of ``go-rl
graph --json``."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from rich.table import Table

from go_rl.core import FREE, NO_DIM, OpGraph, OpKind
from go_rl.core.evaluation import finite
from go_rl.core.printable import name_line
from go_rl.core.unit_text import bytes_text
from go_rl.report.text_table import LONGEST_CELL, TextTable

TOP_OPERATORS = 30
"""Operator types listed one by one; the rest share a row."""


def facts(graph: OpGraph) -> Table:
    """Return name, size, work and bytes of the graph."""
    table = Table(title=f"graph {name_line(graph.name)}", title_justify="left", show_header=False)
    table.add_column()
    table.add_column(overflow="fold")
    rows = {
        "format": str(graph.meta.get("format", "")),
        "operators": f"{graph.num_nodes:,}",
        "edges": f"{graph.num_edges:,}",
        "work": f"{graph.flops.sum() / 1e9:,.4g} GFLOP"
        if graph.has_flops or not graph.seconds
        else "profile only",
        "weights": bytes_text(weight_bytes(graph)),
        "largest result": bytes_text(float(graph.output_bytes.max())),
        "backward operators": f"{int(graph.is_backward.sum()):,}",
        "profile": ", ".join(graph.seconds),
        "dims": ", ".join(f"{k}={v}" for k, v in graph.meta.get("dims", {}).items()),
        "hash": graph.digest[:16],
    }
    for name, text in rows.items():
        if text and text not in ("0", "0 B"):
            table.add_row(name, name_line(text, LONGEST_CELL))
    return table


def histogram(graph: OpGraph) -> TextTable:
    """Return operator types by how often they occur, with their share of the FLOP."""
    count = Counter(graph.op_type)
    flops = Counter[str]()
    kinds: dict[str, str] = {}
    for n, op_type in enumerate(graph.op_type):
        flops[op_type] += float(graph.flops[n])  # pyright: ignore[reportArgumentType]
        kinds.setdefault(op_type, OpKind(int(graph.kind[n])).name.lower())
    total = sum(flops.values())
    rows = [
        (op_type, kinds[op_type], f"{number:,}", _share(flops[op_type], total))
        for op_type, number in count.most_common(TOP_OPERATORS)
    ]
    rest = [op_type for op_type, _ in count.most_common()[TOP_OPERATORS:]]
    if rest:
        share = _share(sum(flops[o] for o in rest), total)
        rows.append((f"{len(rest)} more", "", f"{sum(count[o] for o in rest):,}", share))
    heads = ("operator", "kind", "count", "share of FLOP")
    return TextTable("operators", heads, rows, words=("kind",))


def _share(part: float, whole: float) -> str:
    return f"{100 * part / whole:.1f} %" if whole > 0 else ""


def weight_bytes(graph: OpGraph) -> float:
    """Return the bytes of all weights, tied ones once."""
    return graph.held_weights.total(np.ones(graph.num_nodes, np.bool_))


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
