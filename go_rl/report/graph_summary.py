"""An operator graph in two tables: its facts and its operators."""

from __future__ import annotations

from collections import Counter

import numpy as np
from rich.table import Table

from go_rl.core import OpGraph, OpKind
from go_rl.core.printable import name_line
from go_rl.report.tables import bytes_text
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
        "work": f"{graph.flops.sum() / 1e9:,.4g} GFLOP" if graph.has_flops else "profile only",
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
    """Bytes of all weights, tied ones once."""
    return graph.held_weights.total(np.ones(graph.num_nodes, np.bool_))
