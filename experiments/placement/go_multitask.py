"""GO's three decisions together: makespan with placement, schedule and fusion learned jointly.

Run: ``python -m experiments.placement.go_multitask [--rows NAME ...] [--samples 200] [--seeds 1]``.
Training graphs of the zoo on P100-class devices, analytical costs, one simulator for all. Each
decision alone, each pair and all three, the others as the framework's default has them: everything
on one device if it fits, topological order, nothing fused. *one* is the policy learning on the
single graph from untrained weights (GO-one), *fine-tuned* from the shipped ones; *compiler* is what
a stack of passes does today (expert placement, HEFT's order, greedy fusion), *composed* the best of
all such stacks, *auto* the portfolio. *separate* learns like *one*, with a policy (encoder
included) for each decision instead of one for all; *sequential* learns placement, then schedule,
then fusion, the earlier ones frozen at their best, in as many samples altogether, and *sequential,
tuned* does from the shipped weights. Every finished run is kept in
``results/go_multitask/runs.jsonl`` and not made again.

Published (Zhou et al. 2020): three decisions jointly are 33 to 60 % faster than TensorFlow's
default. Here the speed-up is default / joint - 1; time saved, 1 - joint / default, is given as
well.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax

from experiments.experiment import Experiment
from experiments.placement.go_compositions import Compiler
from experiments.placement.go_learners import (
    ONE,
    GroupLearner,
    Policy,
    SequentialLearner,
    restricted,
)
from experiments.placement.go_multitask_report import COLUMNS, JOINT, SETS, Run, page, picture
from experiments.placement.go_rows import ROWS, milliseconds, row_problem, searched
from experiments.rows import KeptRows
from go_rl.compare.portfolio.portfolio import compile_methods, run
from go_rl.core import DECISIONS, Budget, Objective, Plan, Problem
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.objectives.methods import Composed, DefaultPlacement, MakespanAnnealing
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.config import NodesPolicyConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.weights import shipped_agent

Solve = Callable[[Problem, Budget, int], Plan]
SINGLE = ("default", "compiler", "composed")
"""Methods that do not draw."""
WARM = {"one": 25, "fine-tuned": 25, "auto": 100, "separate": 25, "sequential": 75,
        "sequential, tuned": 75}  # fmt: skip
"""Samples of a search before the timed one, because learners compile for each size of graph."""
EVERY_SET = ("compiler", "one", "fine-tuned")
"""Methods that run on each set of decisions; the others only on all three."""


def untrained(seed: int = 0) -> Agent:
    """Return the policy that *one* starts from; other seeds give others."""
    return new_agent(NodesPolicyConfig(carry=False), seed)


def separate() -> GroupLearner:
    """Return the learner with a policy for each decision."""
    policies = tuple(Policy((task,), untrained(i)) for i, task in enumerate(DECISIONS))
    return GroupLearner(policies, name="separate")


METHODS: dict[str, Solve] = {
    "default": lambda *given: DefaultPlacement().optimize(*given),
    "compiler": lambda *given: Compiler().optimize(*given),
    "composed": lambda *given: Composed().optimize(*given),
    "annealing": lambda *given: MakespanAnnealing().optimize(*given),
    "one": lambda *given: FineTuned(untrained(), config=ONE, name="one").optimize(*given),
    "fine-tuned": lambda *given: FineTuned(name="fine-tuned").optimize(*given),
    "auto": lambda problem, budget, seed: run(problem, "auto", budget, seed).best,
    "separate": lambda *given: separate().optimize(*given),
    "sequential": lambda *given: SequentialLearner(untrained(), ONE).optimize(*given),
    "sequential, tuned": lambda *given: SequentialLearner(
        shipped_agent(Objective.MAKESPAN)
    ).optimize(*given),
}


@dataclass(frozen=True)
class GoMultitask(Experiment):
    """Options of this experiment."""

    rows: tuple[str, ...] = tuple(ROWS)
    """Rows of the table."""
    samples: int = 200
    """Plans that a search may price."""
    seeds: int = 1
    """Runs of each method that draws."""
    methods: tuple[str, ...] = COLUMNS
    """Methods to run, annealing as well if named; the tables show all that were ever run."""

    def run(self) -> None:
        """Make the missing runs, then the tables and the figure."""
        compile_methods(Objective.MAKESPAN)
        table = self.kept_runs(Run)
        for row in self.rows:
            problem = row_problem(row, DECISIONS)
            for tasks in SETS:
                self._run_missing(table, row, problem, tasks)
            # Programs of all rows together take more memory maps than Linux grants a process.
            jax.clear_caches()
        self.write_page(page(table.rows, self.samples, self.seeds))
        self.save_figure(picture(table.rows, self.samples))

    def _run_missing(
        self, table: KeptRows[Run], row: str, problem: Problem, tasks: tuple[str, ...]
    ) -> None:
        done = {(r.row, r.method, r.tasks, r.seed, r.samples) for r in table.rows}
        missing = [
            (method, seed)
            for method in self.methods
            if tasks == JOINT or method in EVERY_SET
            for seed in range(1 if method in SINGLE else self.seeds)
            if (row, method, "+".join(tasks), seed, self.samples) not in done
        ]
        part = part_of(problem, tasks) if missing else problem
        for method in dict.fromkeys(method for method, _ in missing):
            if method in WARM:
                METHODS[method](part, Budget(samples=WARM[method]), 0)
        for method, seed in missing:
            table.add(_run(row, method, part, seed, self.samples))


def part_of(problem: Problem, tasks: tuple[str, ...]) -> Problem:
    """Return the problem with these decisions; what is not placed sits where the default has it."""
    if tasks == problem.decisions:
        return problem
    return restricted(problem, tasks, makespan_workspace(problem).reference.device[0])


def _run(row: str, method: str, problem: Problem, seed: int, samples: int) -> Run:
    budget = Budget(samples=samples)
    plan, spent = searched(lambda: METHODS[method](problem, budget, seed), problem)
    curve = [[c.samples, c.wall_seconds, 1e3 * c.seconds] for c in plan.curve]
    tasks = "+".join(problem.decisions)
    return Run(row, method, tasks, seed, samples, milliseconds(plan), round(spent, 3), curve)


if __name__ == "__main__":
    GoMultitask.main()
