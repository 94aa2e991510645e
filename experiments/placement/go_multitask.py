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

import time
from collections.abc import Callable

import jax

from experiments.pages import run_script, write_page
from experiments.placement.go_compositions import Compiler
from experiments.placement.go_learners import (
    ONE,
    GroupLearner,
    Policy,
    SequentialLearner,
    restricted,
)
from experiments.placement.go_multitask_report import JOINT, NAME, SETS, Options, Run, page, picture
from experiments.placement.go_rows import ROWS
from experiments.placement.go_runs import keep_run, read_runs
from go_rl.api.options import OptimizeOptions
from go_rl.api.problem import problem_for
from go_rl.compare.portfolio.portfolio import compile_kernels, run
from go_rl.core import DECISIONS, Budget, Objective, Plan, Problem
from go_rl.graphs.zoo import zoo_graph
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.objectives.methods import Composed, DefaultPlacement, MakespanAnnealing
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.config import PolicyConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.weights import shipped_agent
from go_rl.report.figures import save_figure
from go_rl.verify.check_plan import check_plan

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
    return new_agent(PolicyConfig(), seed, Objective.MAKESPAN)


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


def main(options: Options) -> None:
    """Make the missing runs, then the tables and the figure."""
    compile_kernels(problem_for(zoo_graph("ncf"), OptimizeOptions(hardware="p100x2")).objective)
    path = options.folder / "runs.jsonl"
    runs = read_runs(Run, path)
    done = {(r.row, r.method, r.tasks, r.seed, r.samples) for r in runs}
    for row in options.rows:
        name, devices = ROWS[row]
        problem = problem_for(
            zoo_graph(name), OptimizeOptions("makespan", DECISIONS, hardware=f"p100x{devices}")
        )
        for tasks in SETS:
            missing = [
                (method, seed)
                for method in options.methods
                if tasks == JOINT or method in EVERY_SET
                for seed in range(1 if method in SINGLE else options.seeds)
                if (row, method, "+".join(tasks), seed, options.samples) not in done
            ]
            part = part_of(problem, tasks) if missing else problem
            for method in dict.fromkeys(method for method, _ in missing):
                if method in WARM:
                    METHODS[method](part, Budget(samples=WARM[method]), 0)
            for method, seed in missing:
                runs.append(_run(row, method, part, seed, options.samples))
                keep_run(path, runs[-1])
        # Programs of all rows together take more memory maps than Linux grants a process.
        jax.clear_caches()
    write_page(options.out / NAME, page(runs, options), __file__)
    save_figure(picture(runs, options), options.out / NAME)


def part_of(problem: Problem, tasks: tuple[str, ...]) -> Problem:
    """Return the problem with these decisions; what is not placed sits where the default has it."""
    if tasks == problem.decisions:
        return problem
    return restricted(problem, tasks, makespan_workspace(problem).reference.device[0])


def _run(row: str, method: str, problem: Problem, seed: int, samples: int) -> Run:
    started = time.perf_counter()
    plan = METHODS[method](problem, Budget(samples=samples), seed)
    spent = time.perf_counter() - started
    if plan.evaluation.status.ok:
        verdict = check_plan(plan, problem)
        assert verdict.ok, verdict.sentence
    value = 1e3 * plan.value if plan.evaluation.status.ok else None
    curve = [[c.samples, c.wall_seconds, 1e3 * c.seconds] for c in plan.curve]
    tasks = "+".join(problem.decisions)
    return Run(row, method, tasks, seed, samples, value, round(spent, 3), curve)


if __name__ == "__main__":
    run_script(main, Options, __doc__)
