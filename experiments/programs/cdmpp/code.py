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
from experiments.programs.cdmpp.cross_model import both_parts, parts_lines
from experiments.programs.cdmpp.runs import Metrics, Runs, TableOptions, named, trained
from go_rl.costs.programs.learn.code_inputs import (
    SUMMED_NAMES,
    WIDE_NUMBERS,
    code_tree_features,
    with_code,
)
from go_rl.costs.programs.learn.code_trees import CONFIG, best_factor, held_out_errors
from go_rl.costs.programs.learn.examples import ProgramExamples
from go_rl.costs.trees.boosted import BoostedTrees, SummedKernels

ARMS = {
    "summed": "boosted trees on summed leaf vectors",
    "code": "… and the code of loops",
    "trees": "`CodeTrees`: the code of loops, for least relative error",
    "network": "CDMPP with the code of each leaf",
    "mean": "`CodeTrees` and CDMPP with code, their geometric mean",
}
TREE_ARMS = ("summed", "code", "trees")
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
        found: dict[str, list[Metrics]] = {arm: [] for arm in ARMS}
        for seed in range(self.seeds):
            for name, make in (("trees", _tree_arms), ("network", _network)):
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
    for arm in TREE_ARMS:
        seconds = _trees(runs, arm, seed)
        found |= {f"{arm} {k}": v for k, v in both_parts(runs, seed, seconds).items()}
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
        by = best_factor(held_out_errors(features[train], seconds[train], task, config))
    rows = SummedKernels(features[train], by * seconds[train])
    return BoostedTrees.fit(rows, config).predict(features)


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


def _page(runs: Runs, found: dict[str, list[Metrics]]) -> str:
    split = runs.split(0)
    lines = [
        "# Features of compiled loops",
        "",
        f"Errors on {len(split.held_out):,} programs of ResNet-50, MobileNet-V2 and BERT-tiny and",
        f"on {len(split.test):,} others, learned from {len(split.train):,}, as in",
        "`cdmpp_cross_model`, whose trees the first row is. *Code*: order, strides and annotations",
        "of the innermost loops, which of them the compiler unrolls and vectorises, registers,",
        f"memory operations, working sets by cache. CDMPP's network: {runs.options.steps:,}",
        "updates. Means of n runs.",
        "Sizes, loss and factor were chosen by tasks of the networks learned from; while the",
        "features were written, errors and worst programs of both parts were seen.",
        "Published for TenSet on real devices: 14.03 % on held-out networks. Repeated measurements",
        "of one program differ by 5.1 % on average (482 programs drawn twice or more).",
    ]
    arms = {name: found[arm] for arm, name in ARMS.items()}
    lines += [*parts_lines(arms, counted=True), *runs.not_run()]
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    CdmppCode.main()
