"""Ablations of the policy: learning from scratch on single graphs without each part.

Run: ``python -m experiments.partition.mcm_ablations``. Every variant learns from untrained weights
on test graphs of the zoo (36 chips, strict rules, memory off) with equal samples. ``order``
variants drop a part of the network; ``placement`` variants change how chips go through the solver:
SAMPLE, FIX, or not at all, where a proposal that breaks a rule fails. Pretraining every variant
would cost hours; this shows what a part is worth where a policy learns on the graph itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from experiments.experiment import Experiment, say
from experiments.page_text import markdown_table
from go_rl.compare.benchmark.evaluate import Comparison, EvaluateConfig, evaluate
from go_rl.compare.benchmark.summary import summarise
from go_rl.core import Optimizer
from go_rl.policy.agent import new_agent
from go_rl.policy.config import RingPolicyConfig
from go_rl.policy.learn.config import FineTuneConfig
from go_rl.policy.learn.fine_tune import FineTuned
from go_rl.report.comparison import write_comparison

WHOLE = RingPolicyConfig()
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
class McmAblations(Experiment):
    """Options of this experiment."""

    graphs: tuple[str, ...] = ("dlrm-kaggle", "dlrm-rm2", "convdraw", "bert-medium")
    """Graphs of the zoo."""
    samples: int = 100
    """Plans of each run."""
    seeds: int = 2
    """Runs of each variant on each graph."""

    def run(self) -> None:
        """Make the missing runs, then the table."""
        config = EvaluateConfig(
            graphs=tuple(f"zoo:{name}" for name in self.graphs),
            memory=False,
            methods=("greedy",),
            samples=self.samples,
            seeds=self.seeds,
        )
        comparison = evaluate(config, self.stem, say, variants())
        write_comparison(comparison, self.stem, summarise(comparison))
        self.write_page(_report(comparison, self))


def variants() -> dict[str, Callable[[], Optimizer]]:
    """Return every variant by its label."""
    found: dict[str, Callable[[], Optimizer]] = {}
    for label, network in NETWORKS.items():
        found[label] = lambda label=label, network=network: FineTuned(
            new_agent(network, 0), config=UNTRAINED, name=label
        )
    for label, mode in SOLVERS.items():
        found[label] = lambda label=label, mode=mode: FineTuned(
            new_agent(WHOLE, 0), "placement", UNTRAINED, solver=mode, name=label
        )
    return found


def _report(comparison: Comparison, options: McmAblations) -> str:
    hours = sum(run.seconds + (run.cold_seconds or 0.0) for run in comparison.runs) / 3600
    summary = summarise(comparison)
    counts = [i for i, n in enumerate(summary.samples) if n in (10, 50, 100)]
    heads = ["variant", *(f"at {summary.samples[i]:g}" for i in counts), "at the end"]
    cells = [
        [row.method, *(f"{row.at_samples[i]:.4f}" for i in counts), f"{row.improvement[0]:.4f}"]
        for row in summary.rows
    ]
    return (
        f"# Ablations\n\nLearning from scratch on {len(options.graphs)} test graphs "
        f"({', '.join(options.graphs)}), ring36, strict rules, {options.samples} samples, "
        f"{options.seeds} seeds; {hours:.1f} hours on two shared cores. Throughput over the "
        "compiler heuristic, geometric mean; every curve starts at the heuristic's plan, 1.\n\n"
        f"{markdown_table(heads, cells)}"
    )


if __name__ == "__main__":
    McmAblations.main()
