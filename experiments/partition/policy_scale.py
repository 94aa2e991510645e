"""Seconds and memory of a zero-shot plan, from 1,000 to 80,000 nodes.

Run: ``python -m experiments.partition.policy_scale``. Each graph is planned in a fresh process:
reading and solver, then a cold plan (loading and compilation), then the first plan again, warm: one
sample of the heuristic and one of the policy. Peak memory is the process's. The largest graph is an
unrolled GNMT of 8 layers; one of 80,000 nodes is two copies of its first 40,000, one after the
other.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Annotated

import numpy as np

from experiments.experiment import Experiment, peak_mib, timed
from experiments.page_text import FOUR, Column
from experiments.rows import rows_table
from go_rl.compare.portfolio.portfolio import compile_methods
from go_rl.core import Budget, Objective, OpGraph, OpKind, load_hardware, rule_set
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.graphs.zoo import zoo_graph
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace
from go_rl.policy.policy_search import PolicySearch

GRAPHS = ("gpt2-small", "gpt2-medium", "nasnet-large", "rnnlm-8-layers", "gnmt-8-layers",
          "gnmt-8-layers-full", "80000")  # fmt: skip
DOUBLED = "gnmt-8-layers-full"
LARGE = 80_000


@dataclass(frozen=True)
class PolicyScale(Experiment):
    """Options of this experiment."""

    graph: str | None = None
    """Measure this graph in this process and print JSON; used by the script itself."""
    rules: str = "strict"
    """Rule set."""

    def run(self) -> None:
        """Measure one graph, or all of them, each in its own process."""
        if self.graph is not None:
            print(json.dumps(asdict(measure(self.graph, self.rules))))
            return
        rows: list[Row] = []
        for name in GRAPHS:
            rows.append(self.row_in_own_process(Row, "--graph", name, "--rules", self.rules))
            print(rows[-1], flush=True)
        self.write_rows(rows)
        self.write_page(
            "# A zero-shot plan by size of the graph\n\n36 chips, strict rules, two shared cores. "
            "Cold: first plan of a process, with loading and compilation; warm: heuristic and one "
            f"sample of the policy; then sixteen samples more.\n\n{rows_table(rows)}"
        )


@dataclass(frozen=True)
class Row:
    """One graph."""

    graph: str
    nodes: int
    units: int
    prepare_s: Annotated[float, Column("prepare, s", FOUR)]
    """Reading, pricing, solver and features."""
    cold_s: Annotated[float, Column("cold, s", FOUR)]
    """First plan: weights, compilation, everything."""
    warm_s: Annotated[float, Column("warm, s", FOUR)]
    """Heuristic's plan and one sample of the policy, once all is compiled."""
    sixteen_s: Annotated[float, Column("16 samples, s", FOUR)]
    """Sixteen more samples."""
    peak_mib: Annotated[float, Column("peak MiB", FOUR)]
    over_heuristic: Annotated[float, Column("throughput / heuristic", FOUR)]
    """Throughput of the one sample over the compiler heuristic's."""


def measure(name: str, rules: str) -> Row:
    """Plan one graph in this process."""
    compile_methods(Objective.RING)
    graph = large_graph() if name == GRAPHS[-1] else zoo_graph(name)
    options = ProblemOptions(rules=rule_set(rules), memory=False)

    def prepared() -> RingWorkspace:
        workspace = ring_workspace(make_problem(graph, load_hardware("ring36"), options))
        _ = workspace.units, workspace.bound
        return workspace

    workspace, prepare = timed(prepared)
    search = PolicySearch()
    (_, cold), (plan, warm), (_, more) = (
        timed(lambda n=samples: search.optimize(workspace.problem, Budget(samples=n), 0))
        for samples in (2, 2, 18)
    )
    heuristic = plan.curve[0].seconds if plan.curve else float("nan")
    units = workspace.units.num_units
    gain = heuristic / plan.value
    return Row(name, graph.num_nodes, units, prepare, cold, warm, more - warm, peak_mib(), gain)


def large_graph() -> OpGraph:
    """Return two copies of a graph's first 40,000 nodes, the second reads the first's last
    results."""
    graph, half = zoo_graph(DOUBLED), LARGE // 2
    builder = GraphBuilder(f"{DOUBLED}-doubled")
    for copy in range(2):
        for i in range(half):
            name, kind = f"{copy}/{graph.names[i]}", OpKind(int(graph.kind[i]))
            node = Node(
                name,
                graph.op_type[i],
                kind,
                flops=graph.flops[i],
                bytes_accessed=graph.bytes_accessed[i],
                output_bytes=graph.output_bytes[i],
                weight_bytes=graph.weight_bytes[i],
            )
            builder.add_node(node)
    inside = np.flatnonzero((graph.senders < half) & (graph.receivers < half))
    for copy in range(2):
        for e in inside.tolist():
            u, v = int(graph.senders[e]), int(graph.receivers[e])
            builder.add_edge(copy * half + u, copy * half + v, float(graph.edge_bytes[e]))
    first = int(np.flatnonzero(np.bincount(graph.receivers, minlength=half)[:half] == 0)[0])
    builder.add_edge(half - 1, half + first, float(graph.output_bytes[half - 1]))
    return builder.build()


if __name__ == "__main__":
    PolicyScale.main()
