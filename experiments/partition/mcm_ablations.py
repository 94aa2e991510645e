"""Ablations of the policy: learning from scratch on single graphs without each part.

Run: ``python -m experiments.partition.mcm_ablations``. Every variant learns from untrained weights
on test graphs of the zoo (36 chips, strict rules, memory off) with equal samples. ``order``
variants drop a part of the network; ``placement`` variants change how chips go through the solver:
SAMPLE, FIX, or not at all, where a proposal that breaks a rule fails. Pretraining every variant
would cost hours; this shows what a part is worth where a policy learns on the graph itself.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from experiments.pages import RESULTS, run_script, say, write_page
from go_rl.compare.benchmark.evaluate import Comparison, EvaluateConfig, evaluate
from go_rl.compare.benchmark.summary import summarise
from go_rl.core import Optimizer
from go_rl.policy.agent import new_agent
from go_rl.policy.config import PolicyConfig
from go_rl.policy.learn.config import FineTuneConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.report.comparison import write_comparison

NAME = "mcm_ablations"
WHOLE = PolicyConfig()
UNTRAINED = FineTuneConfig(widen=1.0, first=1)
NETWORKS = {
    "order": WHOLE,
    "order, no GraphSAGE": replace(WHOLE, sage_layers=0),
    "order, no attention": replace(WHOLE, attention_layers=0),
    "order, no recurrence": replace(WHOLE, recurrence=False),
    "order, no conditioning": replace(WHOLE, conditioning=False),
    "order, one iteration": replace(WHOLE, iterations=1),
    "order, three iterations": replace(WHOLE, iterations=3),
}
SOLVERS = {
    "placement, SAMPLE": "sample",
    "placement, FIX": "fix",
    "placement, no solver": "none",
}


@dataclass(frozen=True)
class Options:
    """Command line of this experiment."""

    graphs: tuple[str, ...] = ("dlrm-kaggle", "dlrm-rm2", "convdraw", "bert-medium")
    """Graphs of the zoo."""
    samples: int = 100
    """Plans of each run."""
    seeds: int = 2
    """Runs of each variant on each graph."""
    folder: Path = RESULTS / NAME
    """Where finished runs are kept."""


def variants() -> dict[str, Callable[[], Optimizer]]:
    """Return every variant by its label."""
    found = {label: partial(_order, config, label) for label, config in NETWORKS.items()}
    return found | {label: partial(_placement, mode, label) for label, mode in SOLVERS.items()}


def _order(config: PolicyConfig, label: str) -> Optimizer:
    return FineTuned(new_agent(config, 0), config=UNTRAINED, name=label)


def _placement(mode: str, label: str) -> Optimizer:
    return FineTuned(new_agent(WHOLE, 0), "placement", UNTRAINED, solver=mode, name=label)


def main(options: Options) -> None:
    """Make the missing runs, then the table."""
    config = EvaluateConfig(
        graphs=tuple(f"zoo:{name}" for name in options.graphs),
        memory=False,
        methods=("greedy",),
        samples=options.samples,
        seeds=options.seeds,
    )
    comparison = evaluate(config, options.folder, say, variants())
    write_comparison(comparison, options.folder, summarise(comparison))
    write_page(RESULTS / NAME, _report(comparison, options), __file__)


def _report(comparison: Comparison, options: Options) -> str:
    out = io.StringIO()
    hours = sum(run.seconds + (run.cold_seconds or 0.0) for run in comparison.runs) / 3600
    out.write(
        f"# Ablations\n\nLearning from scratch on {len(options.graphs)} test graphs "
        f"({', '.join(options.graphs)}), ring36, strict rules, {options.samples} samples, "
        f"{options.seeds} seeds; {hours:.1f} hours on two shared cores. Throughput over the "
        "compiler heuristic, geometric mean; every curve starts at the heuristic's plan, 1.\n\n"
    )
    summary = summarise(comparison)
    counts = [i for i, n in enumerate(summary.samples) if n in (10, 50, 100)]
    heads = " | ".join(f"at {summary.samples[i]:g}" for i in counts)
    out.write(f"| variant | {heads} | at the end |\n| --- |{' --- |' * (len(counts) + 1)}\n")
    for row in summary.rows:
        cells = " | ".join(f"{row.at_samples[i]:.4f}" for i in counts)
        out.write(f"| {row.method} | {cells} | {row.improvement[0]:.4f} |\n")
    return out.getvalue()


if __name__ == "__main__":
    run_script(main, Options, __doc__)
