"""How plans change when GPUs are priced by what was learned instead of a roofline.

Run: ``python -m experiments.programs.plans_on_gpus [--graphs NAME ...] [--seconds 4]``. Each
training graph is placed and scheduled on a machine twice, with the same methods, budget and seed:
with analytical prices, and with ``learned:gpus``. The plan found with analytical prices is then
evaluated with the learned ones; what it loses is what a roofline costs the user, if the learned
prices are right (nothing is measured here).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from experiments.csv_rows import csv_text, rows_table
from experiments.pages import RESULTS, geometric_mean, rounded, run_script, write_page
from go_rl.api.load import load
from go_rl.api.optimize import optimize
from go_rl.api.options import OptimizeOptions
from go_rl.api.problem import problem_for
from go_rl.core import OpGraph, Plan
from go_rl.core.decisions import Decisions
from go_rl.core.files.whole_file import write_text
from go_rl.objectives.makespan.workspace import MakespanWorkspace

NAME = "plans_on_gpus"
LEARNED, ANALYTICAL = "learned:gpus", "analytical"
HEAD = """# Plans on GPUs with learned prices

Makespan of a training step, placement and schedule, the best plan of `auto` at equal budget and
seed, by the prices it was found with; `one_gpu` is the whole step on one device.
`roofline_plan_ms` is the plan found with analytical prices under the learned ones, `loss` how much
longer than the plan found with learned prices it takes (below 1: the search with learned prices
found less); `moved` the share of the FLOP on another device than in the other plan, after the best
renaming of devices. Nothing is measured: the learned prices are those of docs/predict.md,
operator by operator, with the host's launch in each."""


@dataclass(frozen=True)
class Options:
    """Options of the script."""

    graphs: tuple[str, ...] = ("gpt-6-layers-training", "resnet50-b8-training",
                               "transformer-xl-2-layers-training")  # fmt: skip
    """Training graphs of the zoo."""
    hardware: tuple[str, ...] = ("v100x4",)
    """Presets."""
    seconds: float = 4.0
    """Of each search."""
    seed: int = 0
    """Of the methods."""
    out: Path = RESULTS
    """Folder of the page."""


@dataclass(frozen=True)
class Row:
    """One graph on one machine."""

    graph: str
    hardware: str
    analytical_ms: float
    one_gpu_analytical_ms: float
    learned_ms: float
    one_gpu_learned_ms: float
    roofline_plan_ms: float
    loss: float
    devices_analytical: int
    devices_learned: int
    moved: float


def main(options: Options) -> None:
    """Plan all graphs and write the page."""
    rows: list[Row] = []
    for name in options.graphs:
        graph = load(f"zoo:{name}")
        for hardware in options.hardware:
            rows.append(_row(graph, hardware, options))
            print(rows[-1], flush=True)
    write_text(options.out / f"{NAME}.csv", csv_text(Row, rows))
    loss = geometric_mean(row.loss for row in rows)
    said = (
        f"Geometric mean of `loss`: {loss:.3f}; {options.seconds:g} s a search, seed "
        f"{options.seed}, beside other work on the machine."
    )
    write_page(options.out / NAME, f"{HEAD}\n\n{said}\n\n{rows_table(rows)}\n", __file__)


def _row(graph: OpGraph, hardware: str, options: Options) -> Row:
    plans, alone, spaces = {}, {}, {}
    for cost in (ANALYTICAL, LEARNED):
        given = OptimizeOptions("makespan", "placement,schedule", cost=cost)
        spaces[cost] = MakespanWorkspace(problem_for(graph, hardware, given))
        one = Decisions(np.zeros((1, graph.num_nodes), np.int16))
        alone[cost] = float(spaces[cost].evaluate(one).seconds[0])
        plans[cost] = optimize(
            graph, hardware, objective="makespan", decide="placement,schedule", cost=cost,
            seconds=options.seconds, seed=options.seed,
        ).best  # fmt: skip
    swapped = float(spaces[LEARNED].evaluate(_decisions(plans[ANALYTICAL])).seconds[0])
    learned = plans[LEARNED].value
    return Row(
        graph=graph.name, hardware=hardware,
        analytical_ms=rounded(1e3 * plans[ANALYTICAL].value, 4),
        one_gpu_analytical_ms=rounded(1e3 * alone[ANALYTICAL], 4),
        learned_ms=rounded(1e3 * learned, 4), one_gpu_learned_ms=rounded(1e3 * alone[LEARNED], 4),
        roofline_plan_ms=rounded(1e3 * swapped, 4), loss=rounded(swapped / learned, 4),
        devices_analytical=len(np.unique(plans[ANALYTICAL].device[~graph.is_fed])),
        devices_learned=len(np.unique(plans[LEARNED].device[~graph.is_fed])),
        moved=rounded(_moved(graph, plans[ANALYTICAL], plans[LEARNED]), 3),
    )  # fmt: skip


def _decisions(plan: Plan) -> Decisions:
    priority = None if plan.priority is None else plan.priority[None].astype(np.int64)
    return Decisions(plan.device[None], priority)


def _moved(graph: OpGraph, one: Plan, other: Plan) -> float:
    """Share of the FLOP on other devices, after the renaming under which it is least."""
    from scipy.optimize import linear_sum_assignment

    count = int(max(one.device.max(), other.device.max())) + 1
    shared = np.zeros((count, count))
    np.add.at(shared, (one.device.astype(np.int64), other.device.astype(np.int64)), graph.flops)
    rows, columns = linear_sum_assignment(-shared)
    return 1.0 - float(shared[rows, columns].sum() / graph.flops.sum())


if __name__ == "__main__":
    run_script(main, Options, __doc__)
