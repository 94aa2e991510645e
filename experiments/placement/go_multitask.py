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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations

import jax
import numpy as np
from matplotlib.figure import Figure

from experiments.experiment import Experiment
from experiments.page_text import NOTHING, grid_table
from experiments.placement.go_learners import (
    ONE,
    Compiler,
    GroupLearner,
    Policy,
    SequentialLearner,
    restricted,
)
from experiments.placement.go_rows import (
    ROWS,
    devices,
    known_rows,
    milliseconds,
    row_problem,
    searched,
)
from experiments.rows import KeptRows, grouped
from experiments.statistics import geometric_mean, with_deviation
from go_rl.compare.portfolio.portfolio import compile_methods, run
from go_rl.core import DECISIONS, Budget, Objective, Plan, Problem
from go_rl.objectives.makespan.workspace import makespan_workspace
from go_rl.objectives.methods import Composed, DefaultPlacement, MakespanAnnealing
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.config import NodesPolicyConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.weights import shipped_agent
from go_rl.report.figures import GREY, LINE_COLOURS, new_figure

COLUMNS = (
    "default", "compiler", "composed", "one", "fine-tuned", "auto", "separate", "sequential",
    "sequential, tuned",
)  # fmt: skip
"""Methods in the order of the columns; others come behind."""
JOINT = DECISIONS
Tasks = tuple[str, ...]
SETS: tuple[tuple[str, ...], ...] = tuple(
    chosen for count in (1, 2, 3) for chosen in combinations(DECISIONS, count)
)
"""Each decision alone, each pair, all three."""
FUSED = ("compiler", ("fusion",))
"""Method and decisions of the default plan with greedy fusion."""
PUBLISHED = (0.33, 0.60)
"""Speed-up over TensorFlow's default."""


@dataclass(frozen=True)
class Run:
    """One search."""

    row: str
    method: str
    tasks: str
    """Joined by +."""
    seed: int
    samples: int
    milliseconds: float | None
    """Step time of the best plan; None: none fits."""
    seconds: float
    """Time of the search, compilation left out."""
    curve: list[list[float]]
    """[samples, seconds, ms] at every improvement."""


class Table:
    """Mean step times of runs with equal samples."""

    def __init__(self, runs: Sequence[Run], samples: int) -> None:
        self.runs = [run for run in runs if run.samples == samples]
        self.rows = known_rows(self.runs)
        self._found = grouped(self.runs, lambda run: (run.row, run.method, run.tasks))

    def has(self, method: str, tasks: Tasks = JOINT) -> bool:
        """Whether any row was run so."""
        return any(self.of(row, method, tasks) for row in self.rows)

    def of(self, row: str, method: str, tasks: Tasks = JOINT) -> list[Run]:
        """Runs of a row."""
        return self._found.get((row, method, "+".join(tasks)), [])

    def steps(self, row: str, method: str, tasks: Tasks = JOINT) -> list[float]:
        """Milliseconds of each run; NaN: no plan fits."""
        found = (run.milliseconds for run in self.of(row, method, tasks))
        return [np.nan if each is None else each for each in found]

    def mean(self, row: str, method: str, tasks: Tasks = JOINT) -> float:
        """Milliseconds; nan: not run, or a run found no plan that fits."""
        return float(np.mean(self.steps(row, method, tasks) or [np.nan]))

    def seconds(self, row: str, method: str) -> float:
        """Seconds of a search on all tasks."""
        return float(np.mean([run.seconds for run in self.of(row, method)] or [np.nan]))

    def cell(self, row: str, method: str, tasks: Tasks = JOINT) -> str:
        """Mean and deviation as text."""
        return with_deviation(self.steps(row, method, tasks))

    def ratio(self, over: Callable[[str], float], under: Callable[[str], float]) -> str:
        """Geometric mean over the rows that have both, as text."""
        usable = [r for row in self.rows if np.isfinite(r := over(row) / under(row))]
        return f"{geometric_mean(usable):.3f} ({len(usable)})" if usable else NOTHING


def page(runs: Sequence[Run], samples: int, seeds: int) -> str:
    """Return the tables of the runs of so many samples."""
    table = Table(runs, samples)
    hours = sum(run.seconds for run in table.runs) / 3600
    known = dict.fromkeys([*COLUMNS, *(run.method for run in runs)])
    methods = [method for method in known if table.has(method)]
    parted = [m for m in methods if any(table.has(m, tasks) for tasks in SETS[:-1])]
    parts = [
        "# Placement, schedule and fusion together",
        f"Milliseconds a step, {samples} samples, P100-class devices by the analytical cost model, "
        f"one simulator for all; {seeds} seed(s), mean and standard deviation. Search {hours:.2f} "
        "hours on two shared cores. The shipped weights, from which *fine-tuned* starts, learned "
        "from searches on graphs of all these families. Default: everything on one device if it "
        "fits, topological order, nothing fused; on one device with one stream a schedule by "
        "itself changes memory only.",
        *_joint(table, methods),
        *(part for method in parted for part in _sets(table, method)),
        *(_worth(table, parted) if parted else ()),
        *_shared(table),
    ]
    return "\n\n".join(part.rstrip() for part in parts) + "\n"


def _joint(table: Table, methods: list[str]) -> list[str]:
    columns = {"devices": devices}
    columns |= {method: lambda row, m=method: table.cell(row, m) for method in methods}
    others = [method for method in methods if method != "default"]
    least, most = (f"{100 * x:.0f}" for x in PUBLISHED)
    parts = [
        "## All three tasks",
        grid_table("row", table.rows, columns),
        "Speed-up over the default, default / joint - 1, and in brackets the time saved, 1 - "
        f"joint / default; per cent. Published: {least} to {most} % over TensorFlow's default.",
        _gains(table, others, lambda row: table.mean(row, "default")),
    ]
    if table.has(*FUSED):
        parts += [
            "The same over the default with greedy fusion, as compilers have it.",
            _gains(table, others, lambda row: table.mean(row, *FUSED)),
        ]
    return parts


def _gains(table: Table, methods: list[str], baseline: Callable[[str], float]) -> str:
    rows = {**{row: [row] for row in table.rows}, "geometric mean": table.rows}
    return grid_table(
        "row", rows, methods,
        lambda some, m: _gain(geometric_mean(baseline(row) / table.mean(row, m) for row in some)),
    )  # fmt: skip


def _gain(speedup: float) -> str:
    if not np.isfinite(speedup):
        return NOTHING
    return f"{100 * (speedup - 1):.1f} ({100 * (1 - 1 / speedup):.1f})"


def _name(tasks: Tasks) -> str:
    return " + ".join(tasks) if len(tasks) < len(DECISIONS) else "all three"


def _sets(table: Table, method: str) -> list[str]:
    shown = [row for row in table.rows if any(table.of(row, method, tasks) for tasks in SETS)]
    columns = {"default": lambda row: table.cell(row, "default")}
    for tasks in SETS:
        columns[_name(tasks)] = lambda row, t=tasks: table.cell(row, method, t)
    grid = grid_table("row", shown, columns)
    return [f"## Sets of tasks: {method}", grid]


def _worth(table: Table, methods: list[str]) -> list[str]:
    """Gain of each decision alone, and loss when it is left out of all three."""

    def ratio(over: Tasks, under: Tasks, method: str) -> str:
        def mean(row: str, tasks: Tasks) -> float:
            return table.mean(row, method, tasks) if tasks else table.mean(row, "default")

        return table.ratio(lambda row: mean(row, over), lambda row: mean(row, under))

    columns: dict[str, tuple[Tasks, Tasks]] = {f"{t} alone": ((), (t,)) for t in DECISIONS}
    for task in DECISIONS:
        columns[f"{task} left out"] = (tuple(x for x in DECISIONS if x != task), JOINT)
    return [
        "## What each task is worth",
        "Geometric means, in brackets the rows. Alone: default / that task alone. Left out: the "
        "other two tasks / all three; 1.05 means that without the task a step takes 5 % longer.",
        grid_table(
            "method", methods, columns, lambda method, pair: ratio(pair[0], pair[1], method)
        ),
    ]


PAIRS = (
    ("separate", "one", "a policy for each task / one policy for all"),
    ("sequential", "one", "one task after the other / jointly, from untrained weights"),
    ("sequential, tuned", "fine-tuned", "the same from the shipped weights"),
    ("composed", "one", "best stack of passes / jointly, from untrained weights"),
    ("composed", "fine-tuned", "the same against the shipped weights"),
)


def _shared(table: Table) -> list[str]:
    """Ways to learn against each other at equal samples."""
    shown = {words: (a, b) for a, b, words in PAIRS if table.has(a) and table.has(b)}
    if not shown:
        return []
    columns: dict[str, Callable[[str, str], str]] = {
        "ratio": lambda a, b: table.ratio(
            lambda row: table.mean(row, a), lambda row: table.mean(row, b)
        ),
        "rows that the second wins": lambda a, b: str(
            sum(table.mean(row, a) > table.mean(row, b) for row in table.rows)
        ),
        "search seconds, ratio": lambda a, b: table.ratio(
            lambda row: table.seconds(row, a), lambda row: table.seconds(row, b)
        ),
    }
    return [
        "## Jointly or not, shared or not",
        "Step times at equal samples, geometric mean and in brackets the rows; above 1 the second "
        "is better.",
        grid_table("comparison", shown, columns, lambda pair, told: told(*pair)),
    ]


def picture(runs: Sequence[Run], samples: int) -> Figure:
    """Return the figure: speed-up over the default of each row, by method."""
    table = Table(runs, samples)
    methods = [m for m in ("compiler", "composed", "one", "fine-tuned", "auto") if table.has(m)]
    figure = new_figure(11.0, 4.2)
    axes = figure.subplots()
    axes.axhspan(*(100 * x for x in PUBLISHED), color="#eeeeee", label="published, 33 to 60 %")
    for i, method in enumerate(methods):
        gains = [
            100 * (table.mean(row, "default") / table.mean(row, method) - 1) for row in table.rows
        ]
        at = np.arange(len(gains)) + (i - (len(methods) - 1) / 2) * 0.16
        axes.bar(at, gains, 0.15, color=LINE_COLOURS[i], label=method)
    axes.axhline(0.0, color=GREY, linewidth=0.8)
    labels = [f"{row}\n{devices(row)} devices" for row in table.rows]
    axes.set_xticks(range(len(labels)), labels, rotation=30, ha="right", fontsize=8)
    axes.set_ylabel("speed-up over the default [%]")
    axes.legend(frameon=False, fontsize=9, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


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
