"""How plans change when GPUs are priced by what was learned instead of a roofline.

Run: ``python -m experiments.programs.plans_on_gpus [--graphs NAME ...] [--hardware NAME ...]``.
Each graph is planned on each machine twice, with the same methods, samples and seed: with
analytical prices, and with ``learned:gpus``; once for each of `DECISIONS`. Either plan is then
judged by the other's prices. Finished rows are kept in ``results/plans_on_gpus.csv`` and not made
again.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import rounded
from experiments.rows import rows_table
from experiments.statistics import geometric_mean, with_range
from go_rl.api.load import load
from go_rl.api.optimize import optimize
from go_rl.api.options import OptimizeOptions
from go_rl.api.problem import problem_for
from go_rl.core import Objective, OpGraph, Plan
from go_rl.core.decisions import Decisions
from go_rl.costs.operators import GPU_WEIGHTS
from go_rl.objectives.common.workspace import Workspace
from go_rl.objectives.host.workspace import host_workspace
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.report.text_table import markdown_table

METHOD = "auto-classical"
ANALYTICAL, LEARNED = "analytical", "learned:gpus"
Minimised = Literal["max-load", "makespan"]
"""Objectives whose plans can be judged here."""
NAMED = ("decision", "samples", "weights")
"""Columns that the page tells beside its tables."""
DECISIONS: dict[str, tuple[Minimised, str]] = {
    "partition": ("max-load", "placement"),
    "placement": ("makespan", "placement"),
    "schedule": ("makespan", "placement,schedule"),
    "fusion": ("makespan", "placement,schedule,fusion"),
}
"""Objective and what is decided; each of the last three decides what those before it do, too."""
HEAD = """# Plans on GPUs with learned prices

Time of one training step, the best plan of `{method}` after {samples} samples of each of its
methods, same seed, with analytical prices and with `learned:gpus`. *partition*: stages of a
pipeline (objective max-load); *placement*, *schedule* and *fusion*: makespan, each deciding what
the one before it does, too. `by_roofline_ms`, `by_learned_ms`: each plan by the prices that it was
found with. `loss`: the roofline's plan over the other, both by the learned prices; `loss_back`: the
learned prices' plan over the other, both by the roofline; below 1 the search found less with the
judge's own prices. Nothing is measured: a loss is what the wrong prices cost if the judge's are
right. Learned prices are those of docs/predict.md ({weights}), operator by operator, with the
host's launch in each."""


@dataclass(frozen=True)
class PlansOnGpus(Experiment):
    """Options of the script."""

    graphs: tuple[str, ...] = ("transformer-xl-2-layers-training", "resnet50-b8-training",
                               "gpt-6-layers-training")  # fmt: skip
    """Training graphs of the zoo."""
    hardware: tuple[str, ...] = ("v100x4", "t4x4", "a100-40gbx4")
    """Presets."""
    decisions: tuple[str, ...] = tuple(DECISIONS)
    """What is decided; see `DECISIONS`."""
    samples: int = 200
    """Plans that each method may price."""
    seed: int = 0
    """Random seed of the methods."""

    def run(self) -> None:
        """Plan what is missing and write the page."""
        table = self.kept_rows(Row)
        for name in self.graphs:
            graph = load(f"zoo:{name}")
            for hardware in self.hardware:
                for decision in self.decisions:
                    if not table.has(decision, hardware, graph.name, self.samples, GPU_WEIGHTS):
                        table.add(_row(graph, hardware, decision, self))
        now = (self.samples, GPU_WEIGHTS)
        rows = [row for row in table.rows if (row.samples, row.weights) == now]
        self.write_page(_page(rows, self.samples))


@dataclass(frozen=True)
class Row:
    """One graph on one machine."""

    decision: str
    hardware: str
    graph: str
    samples: int
    weights: str
    """Of the learned prices."""
    by_roofline_ms: float
    by_learned_ms: float
    loss: float
    loss_back: float


def _row(graph: OpGraph, hardware: str, decision: str, options: PlansOnGpus) -> Row:
    objective, decide = DECISIONS[decision]
    spaces = workspaces(graph, hardware, objective, decide, (ANALYTICAL, LEARNED))
    plans = {
        cost: optimize(
            graph, hardware, objective=objective, decide=decide, cost=cost, method=METHOD,
            samples=options.samples, seed=options.seed,
        ).best
        for cost in spaces
    }  # fmt: skip
    both: tuple[Plan, Plan] = plans[ANALYTICAL], plans[LEARNED]
    own = [plans[cost].value for cost in (ANALYTICAL, LEARNED)]
    return Row(
        decision, hardware, graph.name, options.samples, GPU_WEIGHTS,
        by_roofline_ms=rounded(1e3 * own[0]), by_learned_ms=rounded(1e3 * own[1]),
        loss=rounded(seconds_of(both[0], spaces[LEARNED]) / own[1]),
        loss_back=rounded(seconds_of(both[1], spaces[ANALYTICAL]) / own[0]),
    )  # fmt: skip


def workspaces(
    graph: OpGraph, hardware: str, objective: Minimised, decide: str, costs: Iterable[str]
) -> dict[str, Workspace]:
    """Return the same problem under several prices, by their names."""
    found: dict[str, Workspace] = {}
    for cost in costs:
        options = OptimizeOptions(objective, decide, hardware=hardware, cost=cost)
        problem = problem_for(graph, options)
        is_makespan = problem.objective is Objective.MAKESPAN
        found[cost] = makespan_workspace(problem) if is_makespan else host_workspace(problem)
    return found


def seconds_of(plan: Plan, space: Workspace) -> float:
    """Return what a plan of the same graph and hardware takes by a workspace's prices; inf: it
    does not fit."""
    return float(space.evaluate(_decisions(plan)).seconds[0])


def _decisions(plan: Plan) -> Decisions:
    priority, leader = (
        None if each is None else each[None].astype(np.int64)
        for each in (plan.priority, plan.fusion_group)
    )
    return Decisions(plan.device[None], priority, leader)


def _page(rows: Sequence[Row], samples: int) -> str:
    shown = [name for name in DECISIONS if any(row.decision == name for row in rows)]
    heads = ("decision", "plans", "loss", "loss_back")
    means = [_means(name, [row for row in rows if row.decision == name]) for name in shown]
    parts = [HEAD.format(method=METHOD, samples=samples, weights=GPU_WEIGHTS),
             "Geometric means of the losses with smallest and largest:",
             markdown_table(heads, means)]  # fmt: skip
    for name in shown:
        own = [row for row in rows if row.decision == name]
        parts += [f"## {name.capitalize()}", rows_table(own, NAMED)]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _means(name: str, rows: Sequence[Row]) -> list[str]:
    losses = [
        with_range([getattr(row, loss) for row in rows], ".3f", geometric_mean, ".2f")
        for loss in ("loss", "loss_back")
    ]
    return [name, str(len(rows)), *losses]


if __name__ == "__main__":
    PlansOnGpus.main()
