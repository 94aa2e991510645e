"""Max-load and latency on the graphs of dnn-partitioning, against its authors' own results.

Run: ``python -m experiments placement.dnn_partitioning --data DIR [--seconds 120] [--objective
max-load]``, where DIR is a folder with ``throughput`` and ``latency`` of
github.com/msr-fiddle/dnn-partitioning (MIT licence). Each objective has a page of its own.

Reference figures: the authors' program run on the same files (best of full DP, linear DP,
PipeDream, local search; best of greedy, DP split, human expert for latency).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from experiments.experiment import Experiment, timed
from experiments.rows import rows_table
from go_rl.core import Budget, Objective, Problem
from go_rl.costs.models import ProblemOptions, file_hardware, make_problem
from go_rl.graphs.readers import load
from go_rl.objectives.host.methods.local_search import LocalSearch
from go_rl.verify.check_plan import check_plan

MILLISECONDS = 1e3


@dataclass(frozen=True)
class Reference:
    """One graph and the best result known for it, milliseconds."""

    graph: str
    milliseconds: float
    source: str


MAX_LOAD = (
    Reference("layers/bert24_inference", 17.7776, "local search"),
    Reference("layers/gnmt_inference", 31.7827, "local search"),
    Reference("layers/inceptionv3_training", 122.679, "local search"),
    Reference("layers/resnet50_inference", 33.7747, "DP"),
    Reference("layers/resnet50_training", 78.6318, "DP"),
    Reference("operators/bert_l-3_inference", 27.5741, "local search"),
    Reference("operators/bert_l-3_training", 65.3031, "DP"),
    Reference("operators/bert_l-6_inference", 29.5795, "DP"),
    Reference("operators/bert_L-12_training", 437.998, "DP"),
    Reference("operators/resnet50_inference", 124.349, "DP"),
)
LATENCY = (
    Reference("layers/bert24_inference", 100.219, "greedy"),
    Reference("layers/inceptionv3_inference", 865.519, "expert, over memory"),
    Reference("layers/resnet50_inference", 1014.927, "expert, over memory"),
    Reference("operators/bert_l-3_inference", 414.441, "DP split"),
    Reference("operators/bert_l-6_inference", 444.020, "DP split"),
    Reference("operators/resnet50_inference", 839.536, "greedy"),
)


@dataclass(frozen=True)
class DnnPartitioning(Experiment):
    """Options of this experiment."""

    data: Path
    """Folder with ``throughput`` and ``latency``, or the one that holds ``dnn-partitioning``."""
    seconds: float = 120.0
    """Time limit of each graph, proof of the bound included."""
    objective: Literal["max-load", "latency", "both"] = "both"
    """Which table to make."""
    seed: int = 0
    """Seed of every search."""

    def run(self) -> None:
        """Run every graph that has no row yet, and write the tables."""
        inner = self.data / "dnn-partitioning"
        data = inner if inner.is_dir() else self.data
        for objective, folder, references in (
            (Objective.MAX_LOAD, "throughput", MAX_LOAD),
            (Objective.LATENCY, "latency", LATENCY),
        ):
            if self.objective in ("both", str(objective)):
                table = self.kept_rows(Row, f"{_ending(objective)}.csv")
                for each in references:
                    problem = _problem(data / folder / f"{each.graph}.json", objective)
                    memory = {"on": problem}
                    if "over memory" in each.source:
                        memory["off"] = replace(problem, memory=False)
                    table.fill(
                        ((each.graph, word) for word in memory),
                        lambda _, word, each=each, of=memory: _row(self, of[word], each),
                        ("graph", "memory"),
                    )
                self._write(table.rows, objective)

    def _write(self, rows: list[Row], objective: Objective) -> None:
        self.write_page(
            f"# dnn-partitioning, objective {objective}\n\nMethod local-search, at most "
            f"{self.seconds:g} s a graph on 2 cores shared with other jobs; milliseconds. Ratio "
            f"below 1: better than every reference.\n\n{rows_table(rows)}",
            self.stem.name + _ending(objective),
        )


def _ending(objective: Objective) -> str:
    return f"_{objective.replace('-', '_')}"


@dataclass(frozen=True)
class Row:
    """One line of the table; times in milliseconds."""

    graph: str
    nodes: int
    accelerators: int
    memory: str
    reference_ms: float
    reference_by: str
    ours_ms: float
    ratio: float
    bound_ms: float
    gap: float
    samples: int
    seconds: float
    verdict: str


def _row(options: DnnPartitioning, problem: Problem, reference: Reference) -> Row:
    budget = Budget(seconds=options.seconds)
    plan, spent = timed(lambda: LocalSearch().optimize(problem, budget, options.seed))
    value = plan.value * MILLISECONDS
    return Row(
        graph=reference.graph, nodes=problem.graph.num_nodes,
        accelerators=problem.hardware.num_accelerators, memory="on" if problem.memory else "off",
        reference_ms=reference.milliseconds, reference_by=reference.source,
        ours_ms=round(value, 4), ratio=round(value / reference.milliseconds, 4),
        bound_ms=round(plan.bound * MILLISECONDS, 4), gap=round(plan.gap, 5), samples=plan.samples,
        seconds=round(spent, 1), verdict=str(check_plan(plan, problem).status),
    )  # fmt: skip


def _problem(path: Path, objective: Objective) -> Problem:
    if not path.exists():
        raise SystemExit(f"{path} is absent; --data names a folder with throughput/ and latency/")
    graph = load(path)
    hardware = file_hardware(graph)
    if hardware is None:
        raise SystemExit(f"{path} does not name its hardware (maxFPGAs, maxCPUs)")
    return make_problem(graph, hardware, ProblemOptions(objective=objective))
