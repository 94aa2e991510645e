"""Seconds and memory of planning a training iteration, from 1,000 to 80,000 nodes.

Run: ``python -m experiments placement.makespan_scale [--sizes 1000 10000 ...] [--hardware
p100x8]``. GNMT training graphs with the number of time steps that gives the size, each read and
planned in a fresh process. A size that fails is a row with the reason. Published: GO handles graphs
of 80,000 nodes; its 8-layer GNMT has over 50,000.
"""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import numpy as np

from experiments.experiment import Experiment, peak_mib, timed
from experiments.page_text import FOUR, Column
from experiments.rows import rows_table
from go_rl.api.options import OptimizeOptions
from go_rl.api.problem import problem_for
from go_rl.compare.portfolio.portfolio import compile_methods
from go_rl.core import Objective, OpGraph, Problem
from go_rl.graphs.readers.archive import load_graph, save_graph
from go_rl.graphs.zoo.freeze import trace_entry
from go_rl.graphs.zoo.models.building import Built, ZooModel, flax_model, integers, training
from go_rl.graphs.zoo.models.language.recurrent import GNMT
from go_rl.policy.dispatch.dispatch_plans import DispatchPlans
from go_rl.policy.kinds import plan_decoder
from go_rl.policy.plan_decoder import Rollouts
from go_rl.policy.weights import shipped_agent

PLAN = DispatchPlans.groups[0]
BATCH = 16
"""Zero-shot plans."""
NODES_PER_STEP = {2: 338, 8: 956}
"""Nodes of a training graph for each time step, by layers."""
TWO_LAYERS = 12_000
"""Sizes up to this have two layers."""
WIDTH, SENTENCES = 1024, 64
LIMIT_MIB = 16 * 1024


@dataclass(frozen=True)
class MakespanScale(Experiment):
    """Options of this experiment."""

    sizes: tuple[int, ...] = (1_000, 10_000, 20_000, 50_000, 80_000)
    """Nodes, about."""
    hardware: str = "p100x8"
    """Hardware."""
    folder: Path = Path(tempfile.gettempdir()) / "makespan_scale"
    """Where traced graphs are kept between runs."""
    trace: int | None = None
    """Only trace the graph of this size, in this process; used by the script itself."""
    measure: int | None = None
    """Measure the graph of this size in this process and print JSON; used by the script itself."""

    def run(self) -> None:
        """Trace or measure one graph in this process, or all of them, each in its own."""
        if self.trace is not None:
            save_graph(traced(self.trace), _file(self, self.trace))
        elif self.measure is not None:
            graph = load_graph(_file(self, self.measure))
            print(json.dumps(asdict(measured(graph, _file(self, self.measure), self.hardware))))
        else:
            rows = self.write_rows(_in_own_process(size, self) for size in self.sizes)
            self.write_page(_page(rows, self.hardware))


@dataclass(frozen=True)
class Row:
    """One graph; seconds of wall time."""

    graph: str
    nodes: int
    units: int = 0
    bucket: Annotated[int, Column("padded to")] = 0
    """Rows of the padded observation."""
    read_s: Annotated[float, Column("read, s", FOUR)] = float("nan")
    """Reading the file, checking and pricing the operators."""
    units_s: Annotated[float, Column("units, s", FOUR)] = float("nan")
    """Default plan, units and observation."""
    cold_s: Annotated[float, Column("cold, s", FOUR)] = float("nan")
    """First batch of zero-shot plans: weights, compilation, everything."""
    warm_s: Annotated[float, Column("warm, s", FOUR)] = float("nan")
    """The same once all is compiled."""
    peak_mib: Annotated[float, Column("peak MiB", FOUR)] = float("nan")
    """Peak memory of the process."""
    over_default: Annotated[float, Column("default / best plan", FOUR)] = float("nan")
    """Default's makespan over that of the best plan drawn."""
    failure: str = ""
    """Last line of what went wrong."""


def shape(size: int) -> tuple[int, int]:
    """Return layers and time steps of the GNMT whose training graph has about ``size`` nodes."""
    layers = 2 if size <= TWO_LAYERS else 8
    return layers, max(1, round(size / NODES_PER_STEP[layers]))


def traced(size: int) -> OpGraph:
    """Return the training graph of about ``size`` nodes."""
    layers, steps = shape(size)
    tokens = integers(SENTENCES, steps)

    def build() -> Built:
        return training(flax_model(GNMT(layers, WIDTH), tokens, tokens))

    return trace_entry(ZooModel(f"gnmt-{layers}-layers-{steps}-steps", "gnmt", build, True))


def measured(graph: OpGraph, file: Path, hardware: str) -> Row:
    """Plan one graph in this process."""
    compile_methods(Objective.MAKESPAN)
    options = OptimizeOptions("makespan", hardware=hardware, cost="analytical")
    problem, read = timed(lambda: problem_for(load_graph(file), options))
    decoder, prepare = timed(lambda: _prepared(problem))
    noise = np.ones(BATCH, np.float32)

    def plans(seed: int) -> Rollouts:
        agent = shipped_agent(Objective.MAKESPAN)
        return decoder.sample(agent, PLAN, noise, seed)[1]

    _, cold = timed(lambda: plans(0))
    rollouts, warm = timed(lambda: plans(1))
    return Row(
        graph=graph.name, nodes=graph.num_nodes, units=decoder.units.num_units,
        bucket=len(decoder.padded.real), read_s=read, units_s=prepare, cold_s=cold, warm_s=warm,
        peak_mib=peak_mib(),
        over_default=decoder.workspace.reference_seconds / float(rollouts.priced.seconds.min()),
    )  # fmt: skip


def _prepared(problem: Problem) -> DispatchPlans:
    decoder = plan_decoder(problem, "dispatch")
    assert isinstance(decoder, DispatchPlans)
    _ = decoder.workspace.reference_seconds, decoder.padded
    return decoder


def _file(options: MakespanScale, size: int) -> Path:
    options.folder.mkdir(parents=True, exist_ok=True)
    return options.folder / f"{size}.npz"


def _in_own_process(size: int, options: MakespanScale) -> Row:
    """Trace the graph unless it is there, then measure it."""
    path = ("--hardware", options.hardware, "--folder", options.folder)
    try:
        if not _file(options, size).exists():
            options.in_own_process("--trace", size, *path)
        return Row(**json.loads(options.in_own_process("--measure", size, *path)[-1]))
    except RuntimeError as error:
        return Row(f"{size} nodes", size, failure=str(error))


def _page(rows: list[Row], hardware: str) -> str:
    good = [row for row in rows if not row.failure]
    failed = [f"\n{row.graph} fails: {row.failure}\n" for row in rows if row.failure]
    text = (
        f"# Planning a training iteration by size of the graph\n\n{hardware}, all three "
        f"decisions, two shared cores, each graph in its own process. Cold and warm: {BATCH} "
        "zero-shot plans, with compilation and without.\n\n"
        f"{rows_table(good, ('failure',)) if good else ''}{''.join(failed)}"
    )
    worst = max((row.peak_mib for row in good), default=0.0)
    verdict = "within" if worst <= LIMIT_MIB else "beyond"
    text += f"\nLargest peak {worst:.0f} MiB, {verdict} 16 GiB."
    return text + "\n"
