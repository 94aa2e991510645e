"""Errors on networks not learned from (CDMPP, figures 6 and 7), and what features of the compiled
code change.

Run: ``python -m experiments programs.cdmpp.cross_model``. ResNet-50, MobileNet-V2 and BERT-tiny are
held out with every task they share with others; the rest is divided 8 : 1 : 1. CDMPP's network is
trained, then fine-tuned with the inputs of the networks held out, whose times it never sees. Arms
of boosted trees add one idea at a time; the last but one gives CDMPP's network the same numbers of
each leaf. Sizes of the trees, their loss and the factor were chosen by tasks of the networks
learned from; while the features were written, errors on both parts were seen, and the worst
programs of both were looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
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
)
from go_rl.costs.learning.splits import HELD_OUT
from go_rl.costs.programs.learn.code_inputs import (
    SUMMED_NAMES,
    WIDE_NUMBERS,
    code_tree_features,
    with_code,
)
from go_rl.costs.programs.learn.code_trees import CONFIG, best_factor, held_out_errors
from go_rl.costs.programs.learn.examples import ProgramExamples
from go_rl.costs.trees.boosted import BoostedTrees, SummedKernels

PARTS = {"test": "same networks", "held": "held-out networks"}
COLUMNS = {
    "mape": "MAPE %", "median": "median %", "rmse_ms": "RMSE ms", "within_5": "within 5 %",
    "within_10": "within 10 %", "within_20": "within 20 %", "pair_accuracy": "pairs",
    "top_1": "top-1", "top_5": "top-5", "r2": "R²",
}  # fmt: skip
ARMS = {
    "cdmpp": "CDMPP",
    "cmd": "CDMPP, fine-tuned with CMD",
    "summed": "boosted trees on summed leaf vectors",
    "code": "… and the code of loops",
    "trees": "`CodeTrees`: the code of loops, for least relative error",
    "network": "CDMPP with the code of each leaf",
    "mean": "`CodeTrees` and CDMPP with code, their geometric mean",
}
TREE_ARMS = ("summed", "code", "trees")


@dataclass(frozen=True)
class CdmppCrossModel(TableOptions, Experiment):
    """Options of this table."""

    page_name: ClassVar[str] = "cdmpp_cross_model"

    code_updates: int = 1500
    """Updates of CDMPP's network with code."""

    def run(self) -> None:
        """Run the arms that are missing; write the page."""
        runs = WideRuns(self)
        found: dict[str, list[Metrics]] = {arm: [] for arm in ARMS}
        makers = {"": _cdmpp, "-trees": _tree_arms, f"-code-{self.code_updates}": _with_code}
        for seed in range(self.seeds):
            for name, make in makers.items():
                for kept in runs.tried(f"cross{name}-{seed}", partial(make, runs, seed)):
                    for arm, results in found.items():
                        own = named(kept, f"{arm} ")
                        results += [own] if own else []
        self.write_page(_page(runs, self, found))


class WideRuns(Runs):
    """Runs whose examples have the code of their leaves, which is computed once."""

    options: CdmppCrossModel

    @cached_property
    def wide(self) -> ProgramExamples:
        """The examples with `WIDE_NUMBERS` a leaf, kept in a file by their number."""
        examples = self.examples
        path = Path(self.options.runs) / f"code-{len(examples.seconds)}.npy"
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            np.save(path, with_code(examples.inputs).asts.vectors)
        asts = replace(examples.inputs.asts, vectors=np.load(path))
        return replace(examples, inputs=replace(examples.inputs, asts=asts))

    @cached_property
    def features(self) -> np.ndarray:
        """[P, F] what trees read."""
        return code_tree_features(self.wide.inputs)


def _cdmpp(runs: WideRuns, seed: int) -> Metrics:
    split, inputs = runs.split(seed), runs.examples.inputs
    train = runs.examples.take(split.train)
    learned = trained(train, runs.run_config(seed))
    adapted = tuned(learned, train, inputs.take(split.held_out))
    return {
        **_of_arm("cdmpp", runs, seed, learned.seconds(inputs)),
        **_of_arm("cmd", runs, seed, adapted.seconds(inputs)),
    }


def _tree_arms(runs: WideRuns, seed: int) -> Metrics:
    found: Metrics = {}
    for arm in TREE_ARMS:
        found |= _of_arm(arm, runs, seed, _trees(runs, arm, seed))
    return found


def _trees(runs: WideRuns, arm: str, seed: int) -> np.ndarray:
    """Seconds by trees of one arm."""
    features, seconds = runs.features, runs.examples.seconds
    config, train = replace(CONFIG, seed=seed), runs.split(seed).train
    if arm == "summed":
        features, config = features[:, : len(SUMMED_NAMES)], replace(config, column_share=0.6)
    by = 1.0
    if arm == "trees":
        task = runs.examples.inputs.task[train]
        known = SummedKernels(features[train], seconds[train])
        by = best_factor(held_out_errors(known, task, config))
    rows = SummedKernels(features[train], by * seconds[train])
    return BoostedTrees.fit(rows, config).predict(features)


def _with_code(runs: WideRuns, seed: int) -> Metrics:
    """CDMPP's network on wide leaves, and its mean with trees."""
    config = replace(runs.run_config(seed), updates=runs.options.code_updates)
    config = replace(config, network=replace(config.network, leaf_numbers=WIDE_NUMBERS))
    learned = trained(runs.wide.take(runs.split(seed).train), config)
    own = learned.seconds(runs.wide.inputs)
    both = np.sqrt(own * _trees(runs, "trees", seed))
    return {**_of_arm("network", runs, seed, own), **_of_arm("mean", runs, seed, both)}


def _of_arm(arm: str, runs: Runs, seed: int, seconds: np.ndarray) -> Metrics:
    return {f"{arm} {name}": value for name, value in both_parts(runs, seed, seconds).items()}


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


def _page(runs: Runs, options: CdmppCrossModel, found: dict[str, list[Metrics]]) -> str:
    examples, split = runs.examples, runs.split(0)
    lines = [
        "# CDMPP across networks",
        "",
        f"Errors on {len(split.held_out):,} programs of ResNet-50, MobileNet-V2 and BERT-tiny,",
        f"learned from {len(split.train):,} of other networks (tasks shared with those three are",
        f"held out too), and on {len(split.test):,} other programs of the networks learned from.",
        f"Means of n runs. CDMPP: {options.updates:,} updates, after which the training loss still",
        f"falls; with code {options.code_updates:,}. *Code*: order, strides and annotations of the",
        "innermost loops, which of them the compiler unrolls and vectorises, registers, memory",
        "operations, working sets by cache. Sizes, loss and factor of the trees were chosen by",
        "tasks of the networks learned from; while the features were written, errors and worst",
        "programs of both parts were seen. Times are of one processor; the two targets are levels",
        "of x86-64 for which code was compiled, not devices. Repeated measurements of one program",
        "differ by 5.1 % on average (482 programs drawn twice or more).",
        "Published for TenSet on real devices: 14.03 % on held-out networks.",
    ]
    arms = {name: found[arm] for arm, name in ARMS.items()}
    for part, title in PARTS.items():
        columns = {f"{part} {column}": head for column, head in COLUMNS.items()}
        table = means_table(arms, columns, counted=True)
        lines += ["", f"## Programs of {title}", "", *table]
    networks = means_table(arms, {f"held {name} mape": name for name in HELD_OUT})
    lines += ["", "## MAPE by network held out, %", "", *networks]
    dropped = ", ".join(f"{count:,} {why}" for why, count in examples.dropped)
    return "\n".join([*lines, "", f"Not examples: {dropped}.", *runs.not_run(), ""])
