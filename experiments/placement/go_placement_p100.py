"""GO's table by prices learned from real times of the P100, beside the analytical ones.

Run: ``python -m experiments.placement.go_placement_p100 [--rows NAME ...] [--methods NAME ...]``.
The same problems as in `go_placement.py` (14 training graphs on P100s, decision placement, 200
samples), each searched by every method under each of `PRICES` with the same seed; every plan is
then judged by all of them. *dispatch* is ``dispatch-2.5``, which never saw them; beside it its
control arms (docs/policy.md).
*one* learns on the single graph from untrained weights. Every finished run is kept in
``results/go_placement_p100/runs.jsonl`` and not made again with the same weights of the prices.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from experiments.experiment import ROOT, Experiment
from experiments.page_text import rounded
from experiments.placement.go_p100_report import Run, page
from experiments.placement.go_rows import CLASSICAL, ROWS, SINGLE, searched
from experiments.placement.two_prices import ANALYTICAL, LEARNED, moved, seconds_of, workspaces
from experiments.rows import csv_text, read_rows, rows_table
from go_rl.core import Budget, Objective, OpGraph, OpKind, Optimizer, Plan
from go_rl.core.files.whole_file import write_text
from go_rl.core.hardware.gpus import GPU_CHIPS
from go_rl.costs.learning.metrics import mape
from go_rl.costs.models import CostModel
from go_rl.costs.models.analytical import Analytical
from go_rl.costs.models.cost_model import Kernels
from go_rl.costs.models.gpus.learned_gpus import LearnedGpus
from go_rl.costs.operators import GPU_WEIGHTS
from go_rl.costs.operators.examples import ERROR_GROUPS, OperatorExamples, error_groups
from go_rl.costs.operators.measured_tables import of_devices, read_measured
from go_rl.costs.operators.predictor import OperatorPredictor
from go_rl.costs.operators.tables import OperatorRows
from go_rl.graphs.zoo import zoo_graph
from go_rl.objectives.common.workspace import Workspace
from go_rl.policy.agent import new_agent
from go_rl.policy.config import CONTROLS, DispatchPolicyConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.policy_search import PolicySearch
from go_rl.policy.weights import load_weights

QUICK_HOST = "learned, quick host"
"""The learned prices with the analytical model's time of a launch in place of the host's."""
WEIGHTS = {"dispatch": "dispatch-2.5"}
LEARNS = "one"


def _drawn(policy: str, control: str | None = None) -> Optimizer:
    agent = load_weights(WEIGHTS[policy], Objective.MAKESPAN).agent
    return PolicySearch(agent, control=control, name=policy)


METHODS: dict[str, Callable[[], Optimizer]] = {
    **CLASSICAL,
    **{
        policy if control is None else f"{policy} ({control})": partial(_drawn, policy, control)
        for policy in WEIGHTS
        for control in (None, *CONTROLS)
    },
    LEARNS: lambda: FineTuned(new_agent(DispatchPolicyConfig(), 0), name=LEARNS),
}


@dataclass(frozen=True)
class GoPlacementP100(Experiment):
    """Options of this experiment."""

    rows: tuple[str, ...] = tuple(ROWS)
    """Rows of the table."""
    methods: tuple[str, ...] = tuple(METHODS)
    """Methods to run; the page shows all that were ever run."""
    samples: int = 200
    """Placements that a search may price."""
    seeds: int = 2
    """Runs of each method that draws; *one* has a single run."""
    data: Path = ROOT.parent / "shared" / "data" / "neusight" / "train"
    """Folder of measured operators, for the errors of the prices; where it is missing the page has
    those found last."""

    def run(self) -> None:
        """Make the missing runs, then the page."""
        table = self.kept_runs(Run)
        done = {(r.row, r.method, r.seed, r.samples, r.weights) for r in table.rows}
        for row in self.rows:
            name, devices = ROWS[row]
            graph = zoo_graph(name)
            spaces = workspaces(graph, f"p100x{devices}", "makespan", "placement", prices())
            for method in self.methods:
                for seed in range(1 if method in (*SINGLE, LEARNS) else self.seeds):
                    if (row, method, seed, self.samples, GPU_WEIGHTS) not in done:
                        found = _searched(method, seed, spaces, self.samples)
                        key = Run(row, method, seed, self.samples, weights=GPU_WEIGHTS)
                        table.add(_judged(key, found, graph, spaces))
        now = (self.samples, GPU_WEIGHTS)
        runs = [run for run in table.rows if (run.samples, run.weights) == now]
        errors = _errors(self)
        accuracy = rows_table(errors) if errors else "Not known without the measured operators."
        self.write_page(page(runs, tuple(METHODS), self.samples, accuracy))


def _errors(options: GoPlacementP100) -> list[PriceError]:
    path = options.stem / "prices.csv"
    if options.data.is_dir():
        errors = price_errors(options.data, OperatorPredictor.load(GPU_WEIGHTS))
        write_text(path, csv_text(PriceError, errors))
    return read_rows(PriceError, path)


def prices() -> dict[str, str | CostModel]:
    """Return the cost models by name."""
    learned = OperatorPredictor.load(GPU_WEIGHTS)
    launch = np.log(GPU_CHIPS["p100"].launch_seconds)
    quick = {
        group: {**of_group, "floor": np.full_like(of_group["floor"], launch)}
        for group, of_group in learned.params.items()
    }
    host = LearnedGpus(replace(learned, params=quick), name=QUICK_HOST)
    return {ANALYTICAL: ANALYTICAL, LEARNED: LEARNED, QUICK_HOST: host}


Searched = dict[str, tuple[Plan, float]]
"""By the prices of the search: its plan and its seconds."""


def _searched(method: str, seed: int, spaces: dict[str, Workspace], samples: int) -> Searched:
    """Plans of one method and seed under each of the prices."""
    found: Searched = {}
    optimizer = METHODS[method]()
    budget = Budget(samples=samples)
    for name, space in spaces.items():
        solve = partial(optimizer.optimize, space.problem, budget, seed)
        found[name] = searched(solve, space.problem)
    return found


def _judged(key: Run, searched: Searched, graph: OpGraph, spaces: dict[str, Workspace]) -> Run:
    """The run with what all prices say of its plans."""
    base = searched[ANALYTICAL][0]
    for found_with, (plan, seconds) in searched.items():
        steps = {judge: 1e3 * seconds_of(plan, space) for judge, space in spaces.items()}
        key.judged[found_with] = {
            judge: rounded(step) if np.isfinite(step) else None for judge, step in steps.items()
        }
        key.moved[found_with] = rounded(moved(graph, base, plan), 3)
        key.seconds[found_with] = rounded(seconds, 3)
    return key


DEVICE = "p100"
KINDS = {"bmm": OpKind.MATMUL, "linear": OpKind.MATMUL, "conv": OpKind.CONVOLUTION,
         "softmax": OpKind.REDUCTION, "ln": OpKind.REDUCTION}  # fmt: skip
"""What the analytical model takes operators for; others are element-wise."""


@dataclass(frozen=True)
class PriceError:
    """Of one group of operators on the P100."""

    operators: str
    rows: int
    analytical: float
    """Mean absolute percentage error."""
    analytical_over_measured: float
    """Geometric mean."""
    learned: float
    learned_over_measured: float


def price_errors(folder: Path, learned: OperatorPredictor) -> list[PriceError]:
    """Return the errors on all rows of a P100 in a folder of measured operators."""
    examples = of_devices(read_measured(folder), [DEVICE])
    group = error_groups(examples.inputs.rows)
    answers = {
        "analytical": _analytical(examples.inputs.rows),
        "learned": learned.predict(examples.inputs),
    }
    return [
        _error(name, examples, np.flatnonzero(group == number), answers)
        for number, name in enumerate(ERROR_GROUPS)
        if (group == number).any()
    ]


def _error(
    name: str, examples: OperatorExamples, rows: np.ndarray,
    answers: Mapping[str, Float64[np.ndarray, "R"]],
) -> PriceError:  # fmt: skip
    measured = examples.seconds[rows]
    found: list[float] = []
    for seconds in answers.values():
        found += [mape(seconds[rows], measured),
                  float(np.exp(np.log(seconds[rows] / measured).mean()))]  # fmt: skip
    return PriceError(name, len(rows), *found)


def _analytical(rows: OperatorRows) -> Float64[np.ndarray, "R"]:
    """Seconds by the roofline that plans have; the graph has no say in them."""
    kinds = [int(KINDS.get(op, OpKind.ELEMENTWISE)) for op in rows.op.tolist()]
    kernels = Kernels(
        graph=zoo_graph("bert-tiny"),
        kind=np.array(kinds, np.int8),
        flops=rows.flops(),
        bytes_accessed=rows.least_bytes(),
        streamed_bytes=np.zeros(len(rows)),
    )
    return Analytical().seconds(kernels, GPU_CHIPS[DEVICE])


if __name__ == "__main__":
    GoPlacementP100.main()
