"""Transfer of the policy to unseen graphs: the comparison of the multi-chip-module paper.

Run: ``python -m experiments.partition.mcm_transfer [--samples 200] [--seeds 3]``. Random search,
simulated annealing, reinforcement learning from scratch, zero-shot and fine-tuned, on the 16 test
graphs of the zoo, whose families the policy never trained on (learners on those of at most
``--learner-nodes`` nodes); 36 chips, strict rules, memory known only after compilation, hence off.
Every finished run is kept in ``results/mcm_transfer/runs.jsonl``; a second start goes on there.

The paper's thresholds (1.60, 1.70, 1.80 times the compiler heuristic's throughput) are 75, 87.5 and
100 % of what its learner gained from scratch; the second table uses the same shares of our
learner's gain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from experiments.experiment import Experiment, say
from experiments.statistics import geometric_mean
from go_rl.compare.benchmark.comparison import (
    change_points,
    reach_value,
    samples_to_reach,
    throughput_curve,
)
from go_rl.compare.benchmark.evaluate import Comparison, EvaluateConfig, evaluate
from go_rl.compare.benchmark.methods import learned_methods
from go_rl.compare.benchmark.run_store import Run
from go_rl.compare.benchmark.summary import by_method, settings, summarise
from go_rl.core import Objective, Optimizer
from go_rl.core.plan import write_text
from go_rl.graphs.zoo import zoo_entry, zoo_names
from go_rl.objectives.methods import Annealing, RandomSearch
from go_rl.policy.policy_search import PolicySearch
from go_rl.report.comparison import comparison_figure, write_comparison
from go_rl.report.file_tables import csv_table, markdown_table

SHARES = (0.75, 0.875, 1.0)
"""The paper's thresholds as shares of what its learner gained from scratch."""
QUICK = ("random", "annealing", "untrained", "zero-shot", "zero-shot, placement")
"""Methods that do not learn on the graph; they run on every graph."""
LEARNERS = ("scratch", "finetuned")
"""Methods that do. ``scratch, placement`` and ``finetuned, placement`` run when asked for."""
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
    methods: tuple[str, ...] = ()
    """Only make the runs of these methods, and no tables; none: everything."""

    def run(self) -> None:
        """Make the missing runs, then all tables and figures."""
        config = EvaluateConfig(
            graphs=self.graphs,
            hardware=(self.hardware,),
            rules=("strict",),
            memory=False,
            methods=("greedy",),
            samples=self.samples,
            seeds=self.seeds,
        )
        named = methods()
        if self.methods:
            evaluate(config, self.stem, say, {name: named[name] for name in self.methods})
            return
        quick = {name: make for name, make in named.items() if name in QUICK}
        learned = {name: make for name, make in named.items() if name in (*QUICK, *LEARNERS)}
        small = [g for g in zoo_names("test") if zoo_entry(g).nodes <= self.learner_nodes]
        everywhere = evaluate(config, self.stem, say, quick)
        within = replace(config, graphs=tuple(f"zoo:{name}" for name in small))
        comparison = evaluate(within, self.stem, say, learned)
        counted = replace(comparison.config, thresholds=thresholds(comparison))
        summary = summarise(replace(comparison, config=counted))
        write_comparison(comparison, self.stem, summary)
        text = _report(comparison) + _end(everywhere)
        text += (self.stem / "summary.md").read_text(encoding="utf-8")
        self.write_page(text)
        write_text(self.path("_graphs.csv"), _by_graph(everywhere) + _by_graph(comparison))
        self.save_figure(comparison_figure(comparison, "samples"))


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
        "scratch, placement": learned["scratch-placement"],
        "zero-shot, placement": lambda: PolicySearch(decoder="placement", name="policy-placement"),
        "finetuned, placement": learned["finetuned-placement"],
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


def _by_graph(comparison: Comparison) -> str:
    """Return CSV: T_max over the best bound and throughput over the heuristic, graph by graph."""
    rows = []
    for problem in dict.fromkeys(run.problem for run in comparison.runs):
        for method in comparison.methods:
            runs = [r for r in comparison.runs if r.problem == problem and r.method == method]
            rows.append((problem.graph, runs[0].nodes, method, *_cells(comparison, runs)))
    return csv_table(("graph", "nodes", "method", "over_heuristic", "over_bound", "failed"), rows)


def _cells(comparison: Comparison, runs: Sequence[Run]) -> tuple[str, str, int]:
    good = [r for r in runs if r.value is not None and r.heuristic is not None]
    bound = comparison.bounds[runs[0].problem]
    if not good:
        return "", "", len(runs)
    over = geometric_mean((r.heuristic or 1.0) / (r.value or 1.0) for r in good)
    gap = geometric_mean((r.value or 1.0) / bound for r in good) if bound > 0 else 0.0
    return f"{over:.4f}", f"{gap:.4f}", len(runs) - len(good)


if __name__ == "__main__":
    McmTransfer.main()
