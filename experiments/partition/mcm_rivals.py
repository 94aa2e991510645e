"""The policy against strong rivals: linear DP, METIS, ideal DP, annealing and CP-SAT.

Run: ``python -m experiments.partition.mcm_rivals [--seconds 10] [--exact-seconds 90]``. Equal
seconds for every method on the 16 test graphs; at 36 chips also CP-SAT, from the compiler
heuristic's plan. Memory is off: these are the static rules alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.experiment import Experiment, say
from experiments.page_text import NOTHING, markdown_table
from experiments.statistics import geometric_mean
from go_rl.compare.benchmark.evaluate import Comparison, EvaluateConfig, best_bounds, evaluate
from go_rl.compare.benchmark.run_store import ProblemName, Run
from go_rl.compare.benchmark.summary import summarise
from go_rl.compare.portfolio import portfolio
from go_rl.core import Budget, Optimizer, Plan, Problem
from go_rl.graphs.zoo import zoo_entry, zoo_names
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.report.comparison import write_comparison

WARM_UP = 1.0
"""Seconds of the run that compiles."""
HEADS = ("package", "method", "graphs", "T_max / best bound", "throughput / heuristic", "no plan")
CHIPS = ("ring6", "ring16", "ring36")


@dataclass(frozen=True)
class McmRivals(Experiment):
    """Options of this experiment."""

    seconds: float = 10.0
    """Time of each method on each problem."""
    exact_seconds: float = 90.0
    """Time of CP-SAT on each graph at 36 chips; 0: not run."""
    exact_nodes: int = 2500
    """Graphs up to this size are given to CP-SAT."""
    seeds: int = 1
    """Runs of each method on each problem."""
    hardware: tuple[str, ...] = CHIPS
    """Hardware."""

    def run(self) -> None:
        """Make the missing runs, then the tables."""
        config = EvaluateConfig(
            graphs=("zoo:test",), hardware=self.hardware, rules=("strict",), memory=False,
            methods=("greedy", "metis", "annealing", "linear-dp", "ideal-dp", "policy"),
            samples=None, seconds=self.seconds, seeds=self.seeds,
        )  # fmt: skip
        comparison = evaluate(config, self.stem, say, METHODS)
        exact = _exact(config, self)
        bounds = best_bounds([*comparison.runs, *exact])
        comparison = replace(comparison, bounds=bounds)
        write_comparison(comparison, self.stem, summarise(comparison))
        self.write_page(_report(comparison, exact, self))


@dataclass(frozen=True)
class Auto:
    """`Optimizer`: the portfolio, as the command line runs it."""

    name: str = "auto"

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the portfolio's best plan; the run that only compiles gets a second."""
        budget = Budget(budget.samples, WARM_UP) if budget.seconds is None else budget
        result = portfolio.run(problem, "auto", budget, seed)
        return replace(result.best, wall_seconds=sum(p.wall_seconds for p in result.plans))


METHODS: dict[str, Callable[[], Optimizer]] = {"finetuned": FineTuned, "auto": Auto}


def _exact(config: EvaluateConfig, options: McmRivals) -> tuple[Run, ...]:
    if options.exact_seconds <= 0:
        return ()
    small = [n for n in zoo_names("test") if zoo_entry(n).nodes <= options.exact_nodes]
    asked = replace(
        config, graphs=tuple(f"zoo:{name}" for name in small), hardware=("ring36",),
        methods=("exact",), seconds=options.exact_seconds, seeds=1,
    )  # fmt: skip
    return evaluate(asked, options.stem, say).runs


def _report(comparison: Comparison, exact: tuple[Run, ...], options: McmRivals) -> str:
    hours = sum(r.seconds + (r.cold_seconds or 0.0) for r in (*comparison.runs, *exact)) / 3600
    problems = dict.fromkeys(run.problem for run in comparison.runs)
    every = [
        _line(comparison, method, [p for p in problems if p.hardware == hardware])
        for hardware in comparison.config.hardware
        for method in comparison.methods
    ]
    text = (
        f"# Strong rivals at equal seconds\n\nThe 16 test graphs of the zoo, strict rules, memory "
        f"off, {options.seconds:g} s for each method on two shared cores, {hours:.1f} hours in "
        "all. Geometric means; a method without a plan counts as the compiler heuristic's plan.\n"
        f"\n{markdown_table(HEADS, every)}"
    )
    if not exact:
        return text
    names = [run.problem for run in exact]
    both = replace(comparison, runs=(*exact, *comparison.runs))
    against = [_line(both, method, names) for method in ("exact", *comparison.methods)]
    return (
        f"{text}\n## Against {options.exact_seconds:g} s of CP-SAT, 36 chips, graphs of at most "
        f"{options.exact_nodes} nodes\n\n{markdown_table(HEADS, against)}"
    )


def _line(comparison: Comparison, method: str, problems: Sequence[ProblemName]) -> list[str]:
    runs = [r for r in comparison.runs if r.problem in problems and r.method == method]
    hardware = problems[0].hardware
    usable = [r for r in runs if r.heuristic is not None and comparison.bounds[r.problem] > 0]
    if not usable:
        return [hardware, method, "0", NOTHING, NOTHING, str(len(runs))]
    values = np.array([r.value or r.heuristic for r in usable], np.float64)
    heuristic = np.array([r.heuristic for r in usable], np.float64)
    bound = np.array([comparison.bounds[r.problem] for r in usable])
    graphs = len({r.problem for r in usable})
    over, gain = geometric_mean(values / bound), geometric_mean(heuristic / values)
    failed = sum(r.value is None for r in runs)
    return [hardware, method, str(graphs), f"{over:.4f}", f"{gain:.4f}", str(failed)]


if __name__ == "__main__":
    McmRivals.main()
