"""Transfer of the policy to unseen graphs: the comparison of the multi-chip-module paper.

Run: ``python -m experiments partition.mcm_transfer [--samples 200] [--seeds 3]``. The 16 test
graphs of the zoo, whose families the policy never trained on; learners on those of at most
``--learner-nodes`` nodes. The paper's thresholds (1.60, 1.70, 1.80) are 75, 87.5 and 100 % of what
its learner gained from scratch; the second table uses the same shares of our learner's gain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.experiment import Experiment, say
from go_rl.compare.benchmark.comparison import (
    Axis,
    change_points,
    samples_to_reach,
    throughput_curve,
)
from go_rl.compare.benchmark.evaluate import Comparison, EvaluateConfig, evaluate
from go_rl.compare.benchmark.methods import learned_methods
from go_rl.compare.benchmark.run_store import Run
from go_rl.compare.benchmark.summary import by_method, settings, summarise
from go_rl.core import Objective, Optimizer
from go_rl.graphs.zoo import zoo_entry, zoo_names
from go_rl.objectives.methods import Annealing, RandomSearch
from go_rl.policy.policy_search import PolicySearch
from go_rl.report.comparison import write_comparison
from go_rl.report.text_table import markdown_table

SHARES = (0.75, 0.875, 1.0)
"""The paper's thresholds as shares of what its learner gained from scratch."""
QUICK = ("random", "annealing", "untrained", "zero-shot", "zero-shot, placement")
"""Methods that do not learn on the graph; they run on every graph."""
CATCH_UP = ("method", "runs that reach it", "samples, median", "seconds, median",
            "scratch: samples", "scratch: seconds")  # fmt: skip
FINAL = "scratch"
"""The method whose final result others are timed against."""


@dataclass(frozen=True)
class McmTransfer(Experiment):
    """Options of this experiment."""

    graphs: tuple[str, ...] = ("zoo:test",)
    """Graphs, or splits of the zoo."""
    hardware: str = "ring36"
    """Hardware."""
    samples: int = 200
    """Plans of each run."""
    seeds: int = 3
    """Runs of each method on each graph."""
    learner_nodes: int = 2500
    """Training on the graph itself is compared on graphs up to this size."""

    def run(self) -> None:
        """Make the missing runs, then all tables."""
        config = EvaluateConfig(
            graphs=self.graphs, hardware=(self.hardware,), rules=("strict",), memory=False,
            methods=("greedy",), samples=self.samples, seeds=self.seeds,
        )  # fmt: skip
        named = methods()
        quick = {name: make for name, make in named.items() if name in QUICK}
        small = [g for g in zoo_names("test") if zoo_entry(g).nodes <= self.learner_nodes]
        everywhere = evaluate(config, self.stem, say, quick)
        within = replace(config, graphs=tuple(f"zoo:{name}" for name in small))
        comparison = evaluate(within, self.stem, say, named)
        counted = replace(comparison.config, thresholds=thresholds(comparison))
        summary = summarise(replace(comparison, config=counted))
        write_comparison(comparison, self.stem, summary)
        text = _report(comparison) + _end(everywhere)
        text += (self.stem / "summary.md").read_text(encoding="utf-8")
        self.write_page(text)


def methods() -> dict[str, Callable[[], Optimizer]]:
    """Return the paper's five methods, then its policy without dynamic programming."""
    learned = learned_methods(Objective.RING)
    return {
        "random": RandomSearch,
        "annealing": Annealing,
        "untrained": learned["untrained"],
        "scratch": learned["scratch"],
        "zero-shot": lambda: PolicySearch(name="zero-shot"),
        "finetuned": learned["finetuned"],
        "zero-shot, placement": lambda: PolicySearch(decoder="placement", name="policy-placement"),
    }


def _end(comparison: Comparison) -> str:
    """Return the table of all graphs at the end of the runs, for methods that do not learn."""
    graphs = len({run.problem.graph for run in comparison.runs})
    lines = []
    for row in summarise(comparison).rows:
        early = throughput_curve(runs_of(comparison, row.method), np.array([20.0])).mean[0]
        numbers = (early, row.improvement[0], row.over_bound)
        lines.append([row.method, *(f"{number:.4f}" for number in numbers)])
    heads = ("method", "throughput / heuristic at 20", "at 200", "T_max / best bound")
    return (
        f"## All {graphs} test graphs, methods that do not learn on the graph\n\n"
        f"{markdown_table(heads, lines)}\n"
    )


def thresholds(comparison: Comparison) -> tuple[float, ...]:
    """Return the paper's thresholds as the same shares of our learner's gain from scratch."""
    runs = runs_of(comparison, FINAL)
    final = throughput_curve(runs, np.array([np.inf])).mean[0] if runs else 1.8
    return tuple(round(1.0 + share * (float(final) - 1.0), 3) for share in SHARES)


def reach_value(run: Run, value: float, axis: Axis = "samples") -> float | None:
    """Return the samples or seconds after which a run is as good as ``value``; None: never."""
    for samples, seconds, reached in run.curve:
        if reached <= value * (1 + 1e-9):
            return float(samples) if axis == "samples" else seconds
    return None


def runs_of(comparison: Comparison, method: str) -> list[Run]:
    """Return the runs of a method in the one setting."""
    (setting,) = settings(comparison)
    return by_method(comparison, setting).get(method, [])


def _report(comparison: Comparison) -> str:
    """Return the tables that the paper prints, with our figures."""
    runs = comparison.runs
    hours = sum(run.seconds + (run.cold_seconds or 0.0) for run in runs) / 3600
    graphs = len({run.problem.graph for run in runs})
    limits = thresholds(comparison)
    reached = reach_rows(comparison, limits)
    return (
        f"# Transfer to unseen graphs\n\n{graphs} test graphs of the zoo, "
        f"{comparison.config.hardware[0]}, strict rules, {comparison.config.samples} samples, "
        f"{comparison.config.seeds} seeds; {hours:.1f} hours on two shared cores.\n\n"
        "Without a suffix a policy gives an order, cut by dynamic programming; with "
        "`, placement` it gives chips, drawn by SAMPLE, as in the paper.\n\n"
        "## Samples until the mean over the graphs reaches a throughput\n\n"
        f"{markdown_table(['method', *(f'{x:.3f}x' for x in limits)], reached)}\n"
        f"## Until the final result of `{FINAL}` on the same graph and seed\n\n"
        f"{catch_up_table(comparison, FINAL)}\n"
    )


def reach_rows(comparison: Comparison, limits: Sequence[float]) -> list[list[str]]:
    """Return a line for each method: samples until its mean curve reaches each limit."""
    reached = []
    for method in comparison.methods:
        found = runs_of(comparison, method)
        reach = samples_to_reach(throughput_curve(found, change_points(found)), limits)
        reached.append([method, *("never" if x is None else f"{x:.0f}" for x in reach)])
    return reached


def catch_up_table(comparison: Comparison, final: str) -> str:
    """Return the table of how soon every method is as good as ``final`` at its end."""
    later = [
        _catch_up(comparison, method, final)
        for method in comparison.methods
        if method not in (final, "greedy")
    ]
    return markdown_table(CATCH_UP, later)


def _catch_up(comparison: Comparison, method: str, last: str) -> list[str]:
    """One line: how soon a method is as good as the learner from scratch at its end."""
    final = {(r.problem, r.seed): r for r in runs_of(comparison, last) if r.value is not None}
    samples, seconds, total = [], [], 0
    for run in runs_of(comparison, method):
        rival = final.get((run.problem, run.seed))
        if rival is None or rival.value is None:
            continue
        total += 1
        at = reach_value(run, rival.value)
        when = reach_value(run, rival.value, "seconds")
        if at is not None and when is not None:
            samples.append(at)
            seconds.append(when)
    own = [reach_value(r, r.value or 0.0) or 0.0 for r in final.values()]
    when = [reach_value(r, r.value or 0.0, "seconds") or 0.0 for r in final.values()]
    middle = [f"{np.median(x):.4g}" if x else "–" for x in (samples, seconds, own, when)]
    return [method, f"{len(samples)} of {total}", *middle]
