"""Errors of CDMPP on networks that it did not learn from (CDMPP, figures 6 and 7).

Run: ``python -m experiments.programs.cdmpp.cross_model``. ResNet-50, MobileNet-V2 and BERT-tiny are
held out with every task they share with others; the rest is divided 8 : 1 : 1. Each network is
trained, then fine-tuned with the inputs of the networks held out, whose times it never sees.
Boosted trees learn the logarithm of the seconds from summed leaf vectors of the same rows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from experiments.experiment import Experiment
from experiments.programs.cdmpp.runs import (
    Metrics,
    Runs,
    TableOptions,
    judged,
    means_table,
    named,
    trained,
    tuned,
    tuning_steps,
)
from go_rl.costs.learning.splits import HELD_OUT
from go_rl.costs.programs.learn.examples import ProgramExamples
from go_rl.costs.trees.boosted import BoostedConfig, BoostedTrees, SummedKernels

PARTS = {"test": "same networks", "held": "held-out networks"}
COLUMNS = {
    "mape": "MAPE %", "median": "median %", "rmse_ms": "RMSE ms", "within_5": "within 5 %",
    "within_10": "within 10 %", "within_20": "within 20 %", "pair_accuracy": "pairs",
    "top_1": "top-1", "top_5": "top-5", "r2": "R²",
}  # fmt: skip
TREES = 600
CMD = "cmd "
"""Before the names of metrics of a network that was fine-tuned."""


@dataclass(frozen=True)
class CdmppCrossModel(TableOptions, Experiment):
    """Options of this table."""

    page_name: ClassVar[str] = "cdmpp_cross_model"

    def run(self) -> None:
        """Make the table."""
        runs = Runs(self)
        cdmpp = [cross_run(runs, seed) for seed in range(self.seeds)]
        trees = [
            runs.kept(f"cross-trees-{seed}", lambda seed=seed: _trees(runs, seed))
            for seed in range(self.seeds)
        ]
        found = {
            "CDMPP": cdmpp,
            "CDMPP, fine-tuned with CMD": [named(each, CMD) for each in cdmpp],
            "boosted trees (LightGBM)": trees,
        }
        self.write_page(_page(runs, found))


def cross_run(runs: Runs, seed: int) -> Metrics:
    """Return metrics of one network, and, after `CMD`, of the same fine-tuned."""
    return runs.kept(f"cross-{seed}", lambda: _cross(runs, seed))


def _cross(runs: Runs, seed: int) -> Metrics:
    split, inputs = runs.split(seed), runs.examples.inputs
    train = runs.examples.take(split.train)
    learned = trained(train, runs.run_config(seed))
    adapted = tuned(learned, train, inputs.take(split.held_out), tuning_steps(runs.options.steps))
    after = both_parts(runs, seed, adapted.seconds(inputs))
    return {
        **both_parts(runs, seed, learned.seconds(inputs)),
        **{f"{CMD}{name}": value for name, value in after.items()},
    }


def _trees(runs: Runs, seed: int) -> Metrics:
    split, examples = runs.split(seed), runs.examples
    features = tree_features(examples)
    learned = BoostedTrees.fit(
        SummedKernels(features[split.train], examples.seconds[split.train]),
        BoostedConfig(trees=TREES, learning_rate=0.05, seed=seed),
    )
    return both_parts(runs, seed, learned.predict(features))


def tree_features(examples: ProgramExamples) -> np.ndarray:
    """Return [P, F] sums of leaf vectors, vector width of the code and number of leaves."""
    inputs = examples.inputs
    width = inputs.device_features[:, -1:]
    parts = [inputs.asts.sums(), width, inputs.leaves[:, None]]
    return np.concatenate(parts, axis=1).astype(np.float32)


def both_parts(runs: Runs, seed: int, seconds: np.ndarray) -> Metrics:
    """Return metrics of the split's test rows, of those held out, and of each network held out."""
    split = runs.split(seed)
    parts = {"test": split.test, "held": split.held_out}
    parts |= {f"held {n}": _of_network(runs, split.held_out, n) for n in HELD_OUT}
    return {
        f"{part} {name}": value
        for part, rows in parts.items()
        for name, value in judged(seconds, runs.examples, rows).items()
    }


def _of_network(runs: Runs, rows: np.ndarray, network: str) -> np.ndarray:
    inputs = runs.examples.inputs
    has = np.array([network in some for some in inputs.networks])
    return rows[has[inputs.task[rows]]]


def _page(runs: Runs, found: dict[str, list[Metrics]]) -> str:
    examples, split = runs.examples, runs.split(0)
    lines = [
        "# CDMPP across networks",
        "",
        f"Errors on {len(split.held_out):,} programs of ResNet-50, MobileNet-V2 and BERT-tiny,",
        f"learned from {len(split.train):,} of other networks (tasks shared with those three are",
        f"held out too), and on {len(split.test):,} other programs of the networks learned from.",
        f"Runs of which a cell is the mean: {runs.options.seeds}, {runs.options.steps:,} updates",
        "each, after which the training loss still falls. Times are of one processor; the two",
        "targets are levels of x86-64 for which code was compiled, not devices.",
        "Published for TenSet on real devices: 14.03 % on held-out networks.",
    ]
    dropped = ", ".join(f"{count:,} {why}" for why, count in examples.dropped)
    return "\n".join([*lines, *parts_lines(found), "", f"Not examples: {dropped}.", ""])


def parts_lines(found: Mapping[str, list[Metrics]], counted: bool = False) -> list[str]:
    """Return the sections of errors by part of the split, and by network held out."""
    lines = []
    for part, title in PARTS.items():
        columns = {f"{part} {column}": head for column, head in COLUMNS.items()}
        table = means_table(found, columns, counted=counted)
        lines += ["", f"## Programs of {title}", "", *table]
    networks = means_table(found, {f"held {name} mape": name for name in HELD_OUT})
    return [*lines, "", "## MAPE by network held out, %", "", *networks]


if __name__ == "__main__":
    CdmppCrossModel.main()
