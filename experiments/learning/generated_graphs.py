"""The generated training graphs: kinds, sizes, and a record of each by its digest.

Run: ``python -m experiments learning.generated_graphs [--seeds 1200]``. The rows
are the record: a graph is never stored, a test makes some again and compares.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import markdown_table
from go_rl.graphs.zoo.generate.generated import GRAMMAR, generated_graph, generated_model
from go_rl.graphs.zoo.index import GENERATED_VERSION


@dataclass(frozen=True)
class Row:
    """One graph."""

    seed: int
    kind: str
    iteration: str
    nodes: int
    edges: int
    gflop: float
    digest: str


@dataclass(frozen=True)
class GeneratedGraphs(Experiment):
    """Options of this experiment."""

    seeds: int = 1200
    """Graphs, of seeds 0 to this."""

    def run(self) -> None:
        """Make the record and the page."""
        started = time.process_time()
        rows = self.write_rows(self.rows())
        self.write_page(page(rows, time.process_time() - started))

    def rows(self) -> Iterator[Row]:
        """Yield the row of each seed."""
        for seed in range(self.seeds):
            model, graph = generated_model(seed), generated_graph(seed)
            yield Row(
                seed, model.kind, model.mode, graph.num_nodes, graph.num_edges,
                round(float(graph.flops.sum()) / 1e9, 6), graph.digest[:16],
            )  # fmt: skip


def page(rows: list[Row], seconds: float) -> str:
    """Return the page."""
    heads = ("kind", "graphs", "inference", "nodes: least", "median", "largest", "GFLOP: median")
    cells = []
    for kind in GRAMMAR:
        some = [row for row in rows if row.kind == kind]
        nodes = [row.nodes for row in some]
        if some:
            cells.append(
                (kind, str(len(some)), str(sum(row.iteration == "inference" for row in some)),
                 f"{min(nodes):,}", f"{np.median(nodes):,.0f}", f"{max(nodes):,}",
                 f"{np.median([row.gflop for row in some]):.3g}")
            )  # fmt: skip
    return (
        f"# Generated training graphs\n\n{GENERATED_VERSION}: {len(rows):,} graphs of seeds 0 to "
        f"{len(rows) - 1:,}; {len({row.digest for row in rows}):,} are different. Making them "
        f"took {seconds / len(rows):.2f} s of a processor each.\n\n{markdown_table(heads, cells)}\n"
    )
