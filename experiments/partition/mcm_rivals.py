"""The policy against strong rivals: linear DP, METIS, ideal DP, annealing and CP-SAT.

Run: ``python -m experiments.partition.mcm_rivals [--seconds 10] [--exact-seconds 90]``. The 16 test
graphs of the zoo at 6, 16 and 36 chips under strict rules, equal seconds for every method; at 36
chips also CP-SAT, started from the compiler heuristic's plan, on graphs of at most
``--exact-nodes`` nodes. Memory is off: these are the static rules alone. ``auto`` is what ``go-rl
optimize`` does. Finished runs are kept in ``results/mcm_rivals/``; a second start goes on from
there.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from experiments.pages import RESULTS, geometric_mean, run_script, say, write_page
from go_rl.compare.benchmark.evaluate import Comparison, EvaluateConfig, best_bounds, evaluate
from go_rl.compare.benchmark.run_store import Run
from go_rl.compare.benchmark.summary import summarise
from go_rl.compare.portfolio import portfolio
from go_rl.core import Budget, Optimizer, Plan, Problem
from go_rl.graphs.zoo import zoo_entry, zoo_names
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.report.comparison import write_comparison

NAME = "mcm_rivals"
WARM_UP = 1.0
"""Seconds of the run that compiles."""
CHIPS = ("ring6", "ring16", "ring36")


@dataclass(frozen=True)
class Options:
    """Command line of this experiment."""

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
    folder: Path = RESULTS / NAME
    """Where finished runs are kept."""


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


def main(options: Options) -> None:
    """Make the missing runs, then the tables."""
    config = EvaluateConfig(
        graphs=("zoo:test",),
        hardware=options.hardware,
        rules=("strict",),
        memory=False,
        methods=("greedy", "metis", "annealing", "linear-dp", "ideal-dp", "policy"),
        samples=None,
        seconds=options.seconds,
        seeds=options.seeds,
    )
    comparison = evaluate(config, options.folder, say, METHODS)
    exact = _exact(config, options)
    bounds = best_bounds([*comparison.runs, *exact])
    comparison = replace(comparison, bounds=bounds)
    write_comparison(comparison, options.folder, summarise(comparison))
    write_page(RESULTS / NAME, _report(comparison, exact, options), __file__)


def _exact(config: EvaluateConfig, options: Options) -> tuple[Run, ...]:
    if options.exact_seconds <= 0:
        return ()
    small = [n for n in zoo_names("test") if zoo_entry(n).nodes <= options.exact_nodes]
    asked = replace(
        config,
        graphs=tuple(f"zoo:{name}" for name in small),
        hardware=("ring36",),
        methods=("exact",),
        seconds=options.exact_seconds,
        seeds=1,
    )
    return evaluate(asked, options.folder, say).runs


def _report(comparison: Comparison, exact: tuple[Run, ...], options: Options) -> str:
    out = io.StringIO()
    hours = sum(r.seconds + (r.cold_seconds or 0.0) for r in (*comparison.runs, *exact)) / 3600
    out.write(
        f"# Strong rivals at equal seconds\n\nThe 16 test graphs of the zoo, strict rules, memory "
        f"off, {options.seconds:g} s for each method on two shared cores, {hours:.1f} hours in "
        "all. Geometric means; a method without a plan counts as the compiler heuristic's plan.\n"
        "\n| package | method | graphs | T_max / best bound | throughput / heuristic | no plan |\n"
        "| --- | --- | --- | --- | --- | --- |\n"
    )
    for hardware in comparison.config.hardware:
        for method in comparison.methods:
            runs = [r for r in comparison.runs
                    if r.problem.hardware == hardware and r.method == method]  # fmt: skip
            out.write(_line(hardware, method, runs, comparison))
    if exact:
        out.write(
            f"\n## Against {options.exact_seconds:g} s of CP-SAT, 36 chips, graphs of at most "
            f"{options.exact_nodes} nodes\n\n| package | method | graphs | T_max / best bound | "
            "throughput / heuristic | no plan |\n| --- | --- | --- | --- | --- | --- |\n"
        )
        names = {run.problem for run in exact}
        out.write(_line("ring36", "exact", list(exact), comparison))
        for method in comparison.methods:
            runs = [r for r in comparison.runs if r.problem in names and r.method == method]
            out.write(_line("ring36", method, runs, comparison))
    return out.getvalue()


def _line(hardware: str, method: str, runs: list[Run], comparison: Comparison) -> str:
    usable = [r for r in runs if r.heuristic is not None and comparison.bounds[r.problem] > 0]
    if not usable:
        return f"| {hardware} | {method} | 0 | – | – | {len(runs)} |\n"
    values = np.array([r.value or r.heuristic for r in usable], np.float64)
    heuristic = np.array([r.heuristic for r in usable], np.float64)
    bound = np.array([comparison.bounds[r.problem] for r in usable])
    graphs = len({r.problem for r in usable})
    over, gain = geometric_mean(values / bound), geometric_mean(heuristic / values)
    failed = sum(r.value is None for r in runs)
    return f"| {hardware} | {method} | {graphs} | {over:.4f} | {gain:.4f} | {failed} |\n"


if __name__ == "__main__":
    run_script(main, Options, __doc__)
