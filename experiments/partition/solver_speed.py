"""How fast the ring solver draws legal partitions, beside CP-SAT's first one, and how it grows.

Run: ``python -m experiments partition.solver_speed --data DIR`` with the folder that holds
``dnn-partitioning/throughput``; without it only the size curve runs. Compilation and the building
of the solver are not counted (the latter has a column of its own).
Writes ``experiments/results/solver_speed.csv`` and ``.md``.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, product
from pathlib import Path
from typing import Annotated

import numpy as np

from experiments.experiment import Experiment, peak_mib, timed
from experiments.page_text import Column
from experiments.rows import rows_table
from go_rl.core import OpGraph, OpKind, Problem, load_hardware, rule_set
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.readers import load
from go_rl.graphs.readers.graph_builder import GraphBuilder, Node
from go_rl.solvers import RingSolver, SolverOptions
from go_rl.solvers.replication import place_copies, replicas_of
from go_rl.solvers.twins.cp_sat import first_partition
from go_rl.verify.rules import legal

GRAPHS = Path("dnn-partitioning") / "throughput"
RIVALS = (
    ("layers/resnet50_inference", 6),
    ("operators/bert_l-3_inference", 6),
    ("operators/bert_l-3_inference", 36),
    ("operators/resnet50_inference", 36),
)
"""Graphs (177, 235 and 604 nodes) and chips on which CP-SAT is asked for a first partition."""
MAIN = ("operators/bert_L-12_training", 36)
SIZES = (500, 1000, 2000, 5000, 10_000, 20_000, 50_000)
SHARPNESS = {"uniform": 0.0, "peaked": 30.0}
"""Scale of normal random logits; at 30 nearly all mass is on one chip, chosen at random."""


@dataclass(frozen=True)
class SolverSpeed(Experiment):
    """Options of this experiment."""

    data: Path | None = None
    """Folder that holds ``dnn-partitioning/throughput``."""
    samples: int = 50
    """Of each row."""
    judged: int = 10
    """Samples of each row that are checked independently."""
    rival_seconds: float = 60.0
    """Of CP-SAT."""
    sizes: tuple[int, ...] = SIZES
    """Nodes of the size curve."""

    def run(self) -> None:
        """Measure everything and write the results."""
        published = on_published_graphs(self.data, self) if self.data else ()
        rows = self.write_rows(chain(published, on_growing_graphs(self)))
        self.write_page(
            f"# Ring solver: time of one legal SAMPLE\n\n{self.samples} samples a row, one "
            f"thread, after warm-up; the first {self.judged} were judged independently. "
            "*CP-SAT* is the time to its first legal partition (2 workers, at most "
            f"{self.rival_seconds:.0f} s, inf: none by then). *build* is paid once for a "
            "problem. *memory* is the process's peak so far. *core ms* hardly depends on what else "
            f"runs; at the end the machine's {os.cpu_count()} cores had a mean load of "
            f"{os.getloadavg()[-1]:.1f} over 15 minutes.\n\n{rows_table(rows, ('edges',))}"
        )


@dataclass(frozen=True)
class Row:
    """One row of the table."""

    graph: str
    nodes: int
    edges: int
    chips: int
    rules: str
    probabilities: str
    build_ms: Annotated[float, Column("build ms", ".0f")]
    """Milliseconds to build the solver."""
    median_ms: Annotated[float, Column("median ms", ".2f")]
    """Median milliseconds of one SAMPLE on one thread."""
    cpu_ms: Annotated[float, Column("median core ms", ".2f")]
    """Median milliseconds of a core in one SAMPLE, which other programs hardly change."""
    worst_ms: Annotated[float, Column("worst ms", ".2f")]
    success: Annotated[float, Column(form=".1%")]
    """Share of samples that are legal partitions."""
    violations: int
    """Violations, by the independent checker."""
    cp_sat_s: Annotated[float, Column("CP-SAT s", ".2f")]
    """Seconds to CP-SAT's first partition, 2 workers; nan: not asked, inf: none in time."""
    ratio: Annotated[float, Column(form="{:.0f} ×")]
    """CP-SAT's time over the median sample's."""
    peak_mib: Annotated[float, Column("memory MiB", ".0f")]
    """Largest resident memory of this process so far, MiB."""


def layered_graph(nodes: int) -> OpGraph:
    """A network of layers of one to six operators that read a few of the layers just before."""
    rng = np.random.default_rng(0)
    builder = GraphBuilder(f"layered {nodes}")
    recent: list[int] = []
    layer: list[int] = []
    width = 1
    for n in range(nodes):
        weights = float(rng.integers(0, 600_000_000 // nodes))
        builder.add_node(
            Node(n, "MatMul", OpKind.MATMUL, flops=float(rng.uniform(1e6, 1e8)),
                 output_bytes=1e4, weight_bytes=weights)
        )  # fmt: skip
        if len(layer) == width:
            recent, layer, width = [*recent, *layer][-8:], [], int(rng.integers(1, 7))
        for u in rng.choice(recent, min(len(recent), 2), replace=False) if recent else []:
            builder.add_edge(int(u), n, 1e4)
        layer.append(n)
    return builder.build()


def problem_for(graph: OpGraph, chips: int, rules: str) -> Problem:
    """The graph on a ring, colour classes off, training allowed."""
    options = ProblemOptions(rules=rule_set(rules), colocation="none", allow_training=True)
    return make_problem(graph, load_hardware(f"ring{chips}"), options)


def measure(problem: Problem, name: str, settings: SolverSpeed, rival: float) -> Iterator[Row]:
    """Time samples one by one, uniform and peaked."""
    solver, build = timed(lambda: RingSolver(problem, SolverOptions(threads=1)))
    for kind, sharpness in SHARPNESS.items():
        seconds, cpu, legal_ones, broken = _draw(solver, sharpness, settings)
        median = float(np.median(seconds))
        yield Row(
            graph=name, nodes=problem.graph.num_nodes, edges=problem.graph.num_edges,
            chips=problem.hardware.num_devices, rules=problem.rules.name, probabilities=kind,
            build_ms=1e3 * build, median_ms=1e3 * median, cpu_ms=1e3 * float(np.median(cpu)),
            worst_ms=1e3 * float(seconds.max()), success=legal_ones / len(seconds),
            violations=broken, cp_sat_s=rival, ratio=rival / median, peak_mib=peak_mib(),
        )  # fmt: skip


def _draw(
    solver: RingSolver, sharpness: float, settings: SolverSpeed
) -> tuple[np.ndarray, np.ndarray, int, int]:
    """Seconds and core seconds of each sample, how many are legal, and the checker's verdicts on
    the first ones."""
    problem = solver.problem
    shape = (problem.graph.num_nodes, problem.hardware.num_devices)
    (seconds, cpu), legal_ones, broken = np.zeros((2, settings.samples)), 0, 0
    solver.sample(np.zeros(shape), seed=0)
    for i in range(settings.samples):
        log_probs = sharpness * np.random.default_rng(i).standard_normal(shape)
        started, began = time.perf_counter(), time.process_time()
        found = solver.sample(log_probs, seed=i)
        seconds[i], cpu[i] = time.perf_counter() - started, time.process_time() - began
        legal_ones += int(found.ok[0])
        if found.ok[0] and i < settings.judged:
            home, present = place_copies(problem, solver.instance.replicated, found.device[0])
            broken += len(legal(problem, home, replicas_of(home, present)))
    return seconds, cpu, legal_ones, broken


def on_published_graphs(folder: Path, settings: SolverSpeed) -> Iterator[Row]:
    """The training BERT, then the graphs on which CP-SAT is asked too."""
    for (name, chips), rules in product((MAIN, *RIVALS), ("strict", "default")):
        problem = problem_for(load(folder / GRAPHS / f"{name}.json"), chips, rules)
        rival = float("nan")
        if (name, chips) != MAIN:
            instance = RingSolver(problem).instance
            found = first_partition(instance, settings.rival_seconds, workers=2)
            rival = found.seconds if found.status.ok else float("inf")
        yield from measure(problem, name, settings, rival)


def on_growing_graphs(settings: SolverSpeed) -> Iterator[Row]:
    """The size curve, ascending, so that the peak memory of a row is that row's."""
    for nodes, rules in product(settings.sizes, ("strict", "default")):
        problem = problem_for(layered_graph(nodes), 36, rules)
        yield from measure(problem, f"layered {nodes}", settings, float("nan"))
