"""Speed of the replay of a plan: compiled code against the checker's plain Python, same plans.

Run: ``python -m experiments.simulate.replay_speed``. Training graphs of the zoo on P100-class
devices; plans are HEFT's, and one with a random device for every node, where nearly every tensor
travels. Single plans run on one core; batches of 16 on all. CPU seconds of this process, best of
several repeats.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from experiments.experiment import Experiment, repeated_seconds, timed
from experiments.page_text import markdown_table
from go_rl.api.options import OptimizeOptions
from go_rl.api.problem import problem_for
from go_rl.core import Budget
from go_rl.core.decisions import Decisions
from go_rl.graphs.zoo import zoo_graph
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.objectives.methods import Heft
from go_rl.verify.makespan_value import replayed

BATCH = 16
HEADS = ("graph", "nodes", "plan", "one core", "batch", "plain", "plain / one core")


@dataclass(frozen=True)
class ReplaySpeed(Experiment):
    """Options of this experiment."""

    graphs: tuple[str, ...] = (
        "transformer-xl-8-layers-training",
        "amoebanet-d-6-192-training",
        "gnmt-8-layers-training",
    )
    """Graphs of the zoo."""
    hardware: str = "p100x4"
    """Hardware."""
    repeats: int = 20
    """Of the compiled function; the plain twin runs once."""

    def run(self) -> None:
        """Measure and write the table."""
        rows = []
        for name in self.graphs:
            for row in _rows(name, self):
                print(*row, sep=" | ", flush=True)
                rows.append(row)
        self.write_page(
            "# Replaying plans\n\nMilliseconds of CPU a plan on one core; *batch*: wall "
            f"milliseconds a plan of {BATCH} at once on two shared cores; *plain*: the checker's "
            f"Python on the same plan, in the same run.\n\n{markdown_table(HEADS, rows, ('plan',))}"
        )


def _rows(name: str, options: ReplaySpeed) -> list[list[str]]:
    graph = zoo_graph(name)
    decide, hardware = "placement,schedule", options.hardware
    problem = problem_for(
        graph, OptimizeOptions("makespan", decide, hardware=hardware, cost="analytical")
    )
    workspace, rng = makespan_workspace(problem), np.random.default_rng(0)
    heft = Heft().optimize(problem, Budget(samples=1), 0)
    devices = workspace.num_devices
    plans = {
        "HEFT": Decisions(heft.device[None], heft.priority[None] if heft.priority is not None
                          else None),
        "random": Decisions(rng.integers(0, devices, (1, graph.num_nodes)).astype(np.int16)),
    }  # fmt: skip
    rows = []
    for label, plan in plans.items():
        one = min(
            repeated_seconds(
                lambda plan=plan: workspace.evaluate(plan), options.repeats, time.process_time
            )
        )
        many = Decisions(
            np.repeat(plan.device, BATCH, axis=0),
            None if plan.priority is None else np.repeat(plan.priority, BATCH, axis=0),
        )
        batch = min(repeated_seconds(lambda many=many: workspace.evaluate(many), 5)) / BATCH
        priority = None if plan.priority is None else plan.priority[0]
        plain, spent = timed(
            lambda one=plan.device[0], first=priority: replayed(problem, one, first, None),
            time.process_time,
        )
        assert plain.seconds == workspace.evaluate(plan).seconds[0]
        rows.append([
            name, str(graph.num_nodes), label, f"{1e3 * one:.2f}", f"{1e3 * batch:.2f}",
            f"{1e3 * spent:.0f}", f"{spent / one:.0f}",
        ])  # fmt: skip
    return rows


if __name__ == "__main__":
    ReplaySpeed.main()
