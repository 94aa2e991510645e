"""What the compiler makes of loops, as features: errors on networks not learned from.

Run: ``python -m experiments.programs.cdmpp.code``. Rows, split and seeds are those of
`experiments.programs.cdmpp.cross_model`. Arms add one idea at a time to its boosted trees; the last
gives CDMPP's network the same numbers of each leaf. Sizes of the trees, their loss and the factor
were chosen by tasks of the networks learned from; while the features were written, errors on both
parts were seen, and the worst programs of both were looked at.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from experiments.experiment import Experiment
from experiments.page_text import table_lines
from experiments.programs.cdmpp.cross_model import both_parts, parts_lines
from experiments.programs.cdmpp.runs import Metrics, Runs, TableOptions, mean_of, named, trained
from go_rl.costs.learning.metrics import mape
from go_rl.costs.learning.splits import HELD_OUT, by_model
from go_rl.costs.programs.learn.code_inputs import (
    SUMMED_NAMES,
    WIDE_NUMBERS,
    code_tree_features,
    log_bound,
    with_code,
)
from go_rl.costs.programs.learn.code_trees import CONFIG, best_factor, held_out_errors
from go_rl.costs.programs.learn.examples import KeepRules, ProgramExamples
from go_rl.costs.programs.learn.reading import read_examples
from go_rl.costs.trees.boosted import BoostedTrees, SummedKernels

SUMMED, BOUND, CODE, RATIO, TREES, NETWORK, MEAN = (
    "boosted trees on summed leaf vectors", "… learning seconds over the bound",
    "… and the code of loops", "… learning seconds over the bound, with both",
    "`CodeTrees`: the code of loops, for least relative error", "CDMPP with the code of each leaf",
    "`CodeTrees` and CDMPP with code, their geometric mean",
)  # fmt: skip
ARMS = {
    "summed": SUMMED, "bound": BOUND, "code": CODE, "ratio": RATIO, "trees": TREES,
    "network": NETWORK, "mean": MEAN,
}  # fmt: skip
TREE_ARMS = ("summed", "bound", "code", "ratio", "trees")
"""Those whose seconds are over the bound are run once."""
NETWORK_STEPS = 1500


@dataclass(frozen=True)
class CdmppCode(TableOptions, Experiment):
    """Options of this table."""

    page_name: ClassVar[str] = "cdmpp_code"

    steps: int = NETWORK_STEPS
    """Updates of CDMPP's network."""

    def run(self) -> None:
        """Run the arms that are missing; write the page."""
        runs = WideRuns(self)
        found: dict[str, list[Metrics]] = {arm: [] for arm in (*ARMS, "single")}
        for seed in range(self.seeds):
            for name, make in (("trees", _tree_arms), ("network", _network), ("single", _single)):
                for kept in runs.tried(f"code-{name}-{seed}", partial(make, runs, seed)):
                    for arm, results in found.items():
                        own = named(kept, f"{arm} ")
                        results += [own] if own else []
        self.write_page(_page(runs, found))


class WideRuns(Runs):
    """Runs whose examples have the code of their leaves, which is computed once."""

    @cached_property
    def wide(self) -> ProgramExamples:
        """The examples with `WIDE_NUMBERS` a leaf."""
        return self.with_code_of(self.examples)

    def with_code_of(self, examples: ProgramExamples) -> ProgramExamples:
        """Return examples with code, kept in a file by their number."""
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


def _tree_arms(runs: WideRuns, seed: int) -> Metrics:
    found: Metrics = {}
    for arm in TREE_ARMS if seed == 0 else ("summed", "code", "trees"):
        seconds = _trees(runs, arm, seed)
        found |= {f"{arm} {k}": v for k, v in both_parts(runs, seed, seconds).items()}
    return found


def _trees(runs: WideRuns, arm: str, seed: int) -> np.ndarray:
    """Seconds by trees of one arm."""
    features, seconds = runs.features, runs.examples.seconds
    bound = np.exp(log_bound(features)) if arm in ("bound", "ratio") else np.ones(len(seconds))
    config, train = replace(CONFIG, seed=seed), runs.split(seed).train
    if arm in ("summed", "bound"):
        features, config = features[:, : len(SUMMED_NAMES)], replace(config, column_share=0.6)
    by = 1.0
    if arm == "trees":
        task = runs.examples.inputs.task[train]
        by = best_factor(held_out_errors(features[train], seconds[train], task, config))
    rows = SummedKernels(features[train], by * seconds[train] / bound[train])
    return BoostedTrees.fit(rows, config).predict(features) * bound


def _network(runs: WideRuns, seed: int) -> Metrics:
    """CDMPP's network on wide leaves, and its mean with trees."""
    config = runs.run_config(seed)
    config = replace(config, network=replace(config.network, leaf_numbers=WIDE_NUMBERS))
    learned = trained(runs.wide.take(runs.split(seed).train), config)
    own = learned.seconds(runs.wide.inputs)
    both = np.sqrt(own * _trees(runs, "trees", seed))
    return {
        **{f"network {k}": v for k, v in both_parts(runs, seed, own).items()},
        **{f"mean {k}": v for k, v in both_parts(runs, seed, both).items()},
    }


def _single(runs: WideRuns, seed: int) -> Metrics:
    """`CodeTrees` that learned tasks of one program, too: on the rows held out before, and on the
    element-wise ones of the networks held out, by these trees and by those without."""
    rules = KeepRules(least_programs=1)
    examples = runs.with_code_of(read_examples(runs.options.data, rules))
    inputs, seconds = examples.inputs, examples.seconds
    split, features = by_model(inputs.task, inputs.networks, HELD_OUT, seed), code_tree_features(
        inputs
    )  # fmt: skip
    few = np.bincount(inputs.task * len(inputs.targets) + inputs.target)
    alone = few[inputs.task * len(inputs.targets) + inputs.target] == 1
    held, found = split.held_out, {}
    for name, train in (("with", split.train), ("without", split.train[~alone[split.train]])):
        config = replace(CONFIG, seed=seed)
        own = inputs.task[train]
        by = best_factor(held_out_errors(features[train], seconds[train], own, config))
        trees = BoostedTrees.fit(SummedKernels(features[train], by * seconds[train]), config)
        guess = trees.predict(features)
        for part, rows in (("others", held[~alone[held]]), ("single", held[alone[held]])):
            found[f"single {name} {part}"] = mape(guess[rows], seconds[rows])
            found[f"single count {part}"] = float(len(rows))
    return found


def _page(runs: Runs, found: dict[str, list[Metrics]]) -> str:
    split = runs.split(0)
    lines = [
        "# Features of compiled loops",
        "",
        f"Errors on {len(split.held_out):,} programs of ResNet-50, MobileNet-V2 and BERT-tiny and",
        f"on {len(split.test):,} others, learned from {len(split.train):,}, as in",
        "`cdmpp_cross_model`, whose trees the first row is. *Code*: order, strides and annotations",
        "of the innermost loops, which of them the compiler unrolls and vectorises, registers,",
        "memory operations, working sets by cache; *bound*: the largest of eight lower bounds of",
        f"the time that follow. CDMPP's network: {runs.options.steps:,} updates. Means of n runs.",
        "Sizes, loss and factor were chosen by tasks of the networks learned from; while the",
        "features were written, errors and worst programs of both parts were seen.",
        "Published for TenSet on real devices: 14.03 % on held-out networks. Repeated measurements",
        "of one program differ by 5.1 % on average (482 programs drawn twice or more).",
    ]
    arms = {name: found[arm] for arm, name in ARMS.items()}
    lines += [*parts_lines(arms, counted=True), *_single_lines(found["single"]), *runs.not_run()]
    return "\n".join([*lines, ""])


def _single_lines(found: list[Metrics]) -> list[str]:
    """Tasks of which there is one program."""
    lines = ["", "## Element-wise tasks, of one program each", ""]
    if not found:
        return [*lines, "Not run yet."]
    counts = {part: f"{found[0][f'count {part}']:,.0f}" for part in ("others", "single")}
    heads = ["learned", f"{counts['others']} other programs", f"{counts['single']} of such tasks"]
    rows = [
        [f"{name} such tasks", *(mean_of(found, f"{name} {part}") for part in counts)]
        for name in ("without", "with")
    ]
    return [
        *lines,
        "`KeepRules(least_programs=1)` keeps them: regressions can learn them, ranks cannot judge",
        "them. MAPE of `CodeTrees` on networks held out, %.", "", *table_lines(heads, rows),
    ]  # fmt: skip


if __name__ == "__main__":
    CdmppCode.main()
