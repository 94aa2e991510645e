"""The multi-chip policy as published, judged as its paper judges it.

Run: ``python -m experiments partition.mcm_published [--weights FILE ...] [--samples 2000]``.
Weights are those of ``mcm-published-0`` to ``-2`` in ``experiments/learning/long.toml``. All
methods go through the same solver, node by node, which gives up after too many contradictions, but
for the project's own form, an order cut by dynamic programming. ``--split test``: families that
have no part in choosing weights. Seed i takes the i-th weights.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Literal

import numpy as np

from experiments.experiment import Experiment, say
from experiments.page_text import NOTHING, markdown_table
from go_rl.compare.benchmark.comparison import change_points, samples_to_reach, throughput_curve
from go_rl.compare.benchmark.config import THRESHOLDS
from go_rl.compare.benchmark.evaluate import Comparison, EvaluateConfig, evaluate
from go_rl.compare.benchmark.methods import learned_methods
from go_rl.compare.benchmark.run_store import Run
from go_rl.compare.benchmark.summary import by_method, settings, summarise
from go_rl.core import Budget, Objective, Optimizer, Plan, Problem
from go_rl.objectives.methods import Annealing, RandomSearch
from go_rl.policy.agent import Agent, new_agent
from go_rl.policy.config import RingPolicyConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.policy.policy_search import PolicySearch
from go_rl.policy.weights import load_weights
from go_rl.report.comparison import write_comparison

GRAPHS = {
    "validation": ("bifpn-d0", "ssd-mobilenet", "moe-8-experts", "wavernn-896"),
    "test": ("unet", "dlrm-rm2", "bert-medium", "t5-small", "gnmt-2-layers", "unet-deep"),
}
"""Graphs of at most 1,500 nodes on which something is left to win: three seconds of unit-annealing
reach 4.00, 2.56, 1.81 and 1.89 times the compiler heuristic's throughput, together 2.43; of the
test families 1.38, 4.47, 1.66, 1.57, 1.65 and 1.97 times, together 1.93."""
WEIGHTS = tuple(f"experiments/learning/runs/mcm-published-{seed}/weights.npz" for seed in range(3))
PUBLISHED = RingPolicyConfig()
"""Network of these weights, and of learning from scratch: half the sizes of our reading of the
paper, with which learning is twice as slow by the clock and, by samples, no faster."""
MODE = "sample-nodes"
PAPER = {
    "random, nodes": "305 / 915 / 3612",
    "annealing, nodes": "255 / 979 / never",
    "scratch": "330 / 676 / 1496",
    "zero-shot": "196 / 600 / 3652",
    "finetuned": "171 / 503 / 1362",
}
"""Samples in the paper until 1.6 / 1.7 / 1.8, mean of its 16 graphs."""
CATCH_UP = ("method", "runs that reach it", "samples, median", "seconds, median",
            "scratch: samples", "scratch: seconds")  # fmt: skip


@dataclass(frozen=True)
class McmPublished(Experiment):
    """Options of this experiment."""

    split: Literal["validation", "test"] = "validation"
    """Families; weights are chosen by validation ones, so that only test ones judge."""
    hardware: str = "ring36"
    """Hardware."""
    weights: tuple[str, ...] = WEIGHTS
    """Weights of the policy as published, one file for each seed of training."""
    samples: int = 2000
    """Plans of each run."""
    seeds: int = 3
    """Runs of each method on each graph."""

    @property
    def stem(self) -> Path:
        return super().stem if self.split == "validation" else self.out / "mcm_published_test"

    @property
    def graphs(self) -> tuple[str, ...]:
        """Graphs that are run."""
        return GRAPHS[self.split]

    def run(self) -> None:
        """Make the missing runs, then the page."""
        config = EvaluateConfig(
            graphs=tuple(f"zoo:{name}" for name in self.graphs), hardware=(self.hardware,),
            rules=("strict",), memory=False, methods=("greedy",), samples=self.samples,
            seeds=self.seeds, thresholds=THRESHOLDS,
        )  # fmt: skip
        comparison = evaluate(config, self.stem, say, methods(self.weights))
        write_comparison(comparison, self.stem, summarise(comparison))
        self.write_page(_report(comparison, self))


@dataclass(frozen=True)
class BySeed:
    """`Optimizer`: one made of the weights of the training seed that the run's seed names."""

    make: Callable[[Agent], Optimizer]
    """Optimizer of an agent."""
    weights: tuple[str, ...]
    """Files."""
    name: str

    @cached_property
    def agents(self) -> tuple[Agent, ...]:
        """Agents of the files."""
        return tuple(load_weights(path, Objective.RING).agent for path in self.weights)

    def optimize(self, problem: Problem, budget: Budget, seed: int) -> Plan:
        """Return the plan of that optimizer."""
        agent = self.agents[seed % len(self.agents)]
        return replace(self.make(agent).optimize(problem, budget, seed), optimizer=self.name)


def methods(weights: tuple[str, ...]) -> dict[str, Callable[[], Optimizer]]:
    """Return the paper's five methods, all through SAMPLE or FIX node by node, then the project's
    own form."""
    learned = learned_methods(Objective.RING)
    return {
        "random, nodes": lambda: RandomSearch(nodewise=True),
        "annealing, nodes": lambda: Annealing(nodewise=True),
        "scratch": lambda: published_learner(new_agent(PUBLISHED, 0)),
        "untrained": lambda: published_search(new_agent(PUBLISHED, 0)),
        "zero-shot": partial(BySeed, published_search, weights, "zero-shot"),
        "finetuned": partial(BySeed, published_learner, weights, "finetuned"),
        "orders, scratch": learned["scratch"],
        "orders, zero-shot": PolicySearch,
        "orders, finetuned": learned["finetuned"],
    }


def published_search(agent: Agent) -> Optimizer:
    """Return zero-shot search as published."""
    return PolicySearch(agent, MODE)


def published_learner(agent: Agent) -> Optimizer:
    """Return learning on the graph as published."""
    return FineTuned(agent, solver=MODE)


def _report(comparison: Comparison, options: McmPublished) -> str:
    hours = sum(run.seconds + (run.cold_seconds or 0.0) for run in comparison.runs) / 3600
    reached = [[*row, PAPER.get(row[0], "")] for row in reach_rows(comparison, THRESHOLDS)]
    heads = ("method", *(f"{x:.1f}x" for x in THRESHOLDS), "the paper's")
    return (
        f"# The multi-chip policy as published\n\n{len(options.graphs)} graphs of {options.split} "
        f"families of the zoo, {options.hardware}, strict rules, memory off, "
        f"{options.samples} samples, {options.seeds} seeds, {len(options.weights)} weights; "
        f"{hours:.1f} hours on one shared core. On each of the split's graphs at least 1.35 times "
        "the heuristic's throughput can be had. Every method but random search starts from the "
        "heuristic's plan.\n\n"
        "## Samples until the mean over the graphs reaches a throughput\n\n"
        f"{markdown_table(heads, reached)}\n"
        "## Graph by graph, throughput / heuristic in the end\n\n"
        f"{markdown_table(('method', *options.graphs), _by_graph(comparison, options))}\n"
        "## Until the final result of `scratch` on the same graph and seed\n\n"
        f"{catch_up_table(comparison, 'scratch')}"
    )


def _by_graph(comparison: Comparison, options: McmPublished) -> list[list[str]]:
    rows = []
    for method in comparison.methods:
        cells = []
        for graph in options.graphs:
            runs = [run for run in runs_of(comparison, method) if run.problem.graph == graph]
            found = [(r.heuristic or 1.0) / (r.value or r.heuristic or 1.0) for r in runs]
            cells.append(f"{np.exp(np.mean(np.log(found))):.3f}")
        rows.append([method, *cells])
    return rows


def reached(run: Run, value: float) -> tuple[float, float]:
    """Return the samples and seconds after which a run is as good as ``value``; NaN: never."""
    for samples, seconds, best in run.curve:
        if best <= value * (1 + 1e-9):
            return float(samples), seconds
    return np.nan, np.nan


def runs_of(comparison: Comparison, method: str) -> list[Run]:
    """Return the runs of a method in the one setting."""
    (setting,) = settings(comparison)
    return by_method(comparison, setting).get(method, [])


def reach_rows(comparison: Comparison, limits: Sequence[float]) -> list[list[str]]:
    """Return a line for each method: samples until its mean curve reaches each limit."""
    lines = []
    for method in comparison.methods:
        found = runs_of(comparison, method)
        reach = samples_to_reach(throughput_curve(found, change_points(found)), limits)
        lines.append([method, *("never" if x is None else f"{x:.0f}" for x in reach)])
    return lines


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
    final = {(r.problem, r.seed): r for r in runs_of(comparison, last)}
    values = {key: run.value for key, run in final.items() if run.value is not None}
    theirs = [
        reached(run, values[run.problem, run.seed])
        for run in runs_of(comparison, method)
        if (run.problem, run.seed) in values
    ]
    soon = [pair for pair in theirs if np.isfinite(pair).all()]
    own = [reached(final[key], value) for key, value in values.items()]
    middle = [
        f"{np.median(x):.4g}" if len(x) else NOTHING
        for pairs in (soon, own)
        for x in np.reshape(pairs, (-1, 2)).T
    ]
    return [method, f"{len(soon)} of {len(theirs)}", *middle]
