"""How errors of tensor programs fall with the number of programs that were learned.

Run: ``python -m experiments programs.program_curves [--data programs-3] [--seeds 2]``. Of the data
sets' last processor alone, programs are taken at random, fewer and fewer; tasks, or networks, that
are held out judge. Rivals are trained until they stop improving
(`experiments.programs.program_rivals.fit_rival`), ours as they ship. Finished cells are kept, and a
call goes on where the last one stopped; the page states what is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from experiments.experiment import Experiment
from experiments.page_text import grid_table
from experiments.programs.cdmpp.runs import (
    Metrics,
    Runs,
    TableOptions,
    judged,
    mean_of,
    means_table,
)
from experiments.programs.program_rivals import CDMPP, CODE, NETWORKS, fit_rival, split_rows
from experiments.programs.rivals.boosted_programs import TREE_RIVALS
from go_rl.core.printable import counted
from go_rl.costs.learning.splits import HELD_OUT
from go_rl.costs.programs.learn.code_inputs import with_code
from go_rl.costs.programs.learn.code_trees import (
    CodeTrees,
    MachineTrees,
    ProgramTrees,
    device_apart,
)
from go_rl.costs.programs.learn.examples import ProgramExamples, with_machine_code

OURS: Mapping[str, type[ProgramTrees]] = {"MachineTrees": MachineTrees, "CodeTrees": CodeTrees}
SLOW = (CODE, *(name for name in NETWORKS if name != "MLP"))
"""Rivals that learn all programs and no fewer: an update of theirs takes long."""
ARMS = (*OURS, CDMPP, *TREE_RIVALS, "MLP", *SLOW)
SPLITS = {
    "within_task": "other programs of the same tasks",
    "by_task": "tasks held out",
    "by_model": "networks held out",
}


ALL = "all"
COLUMNS = {
    "mape": "MAPE, %", "median": "median, %", "rmse_ms": "RMSE, ms", "within_20": "within 20 %",
    "pair_accuracy": "pairs in order", "top_1": "top-1", "top_5": "top-5",
}  # fmt: skip
DIGITS = {"mape": 1, "median": 1, "within_20": 0}
Cells = dict[tuple[str, str, str], list[Metrics]]
"""By split, column and predictor."""


class LastProcessor(Runs):
    """Runs on the programs of one processor."""

    @cached_property
    def examples(self) -> ProgramExamples:
        """Those of the data set's last processor."""
        return device_apart(with_machine_code(super().examples))[1]

    @cached_property
    def described(self) -> ProgramExamples:
        """The same, with what rules say of the code, which ours read."""
        return replace(self.examples, inputs=with_code(self.examples.inputs))


@dataclass(frozen=True)
class ProgramCurves(TableOptions, Experiment):
    """Options of this experiment."""

    data: tuple[str, ...] = ("programs-3", "programs-4")
    """Data sets, by file or by the name of one that ships; or folders of records."""
    runs: str = "build/program_curves"
    """Folder of finished cells."""
    counts: tuple[int, ...] = (1000, 2000, 4000, 8000, 16_000, 32_000, 64_000)
    """Programs that are learned, as far as there are so many; all there are come last."""
    most: int = 10_000
    """Updates of the longest fit of a network; of trees an eighth."""
    arms: tuple[str, ...] = ARMS
    """Predictors."""

    def run(self) -> None:
        """Run the cells that are missing; write the page and its figure."""
        runs = LastProcessor(self)
        found: Cells = {}
        for seed, split in product(range(self.seeds), SPLITS):
            train, test, _ = split_rows(split, runs, seed)
            order = np.random.default_rng(seed).permutation(train)
            counts = [count for count in self.counts if count < len(order)]
            columns = {f"{count:,}": count for count in counts} | {ALL: len(order)}
            for (column, count), arm in product(columns.items(), self.arms):
                if arm in SLOW and column != ALL:
                    continue
                make = partial(_cell, runs, self.most, arm, np.sort(order[:count]), test, seed)
                kept = runs.tried(f"{split}-{arm}-{count}-{seed}", make)
                found.setdefault((split, column, arm), []).extend(kept)
        self.write_page(_page(runs, self, found))
        self.save_figure(_figure(found))


def _cell(
    runs: LastProcessor, most: int, arm: str, learned: np.ndarray, test: np.ndarray, seed: int
) -> Metrics:
    kind = OURS.get(arm)
    examples = runs.described if kind or arm == CODE else runs.examples
    train, inputs = examples.take(learned), examples.inputs
    known = test[np.isin(inputs.leaves[test], train.inputs.leaves)]
    asked = inputs.take(known)
    fitted = kind.fit(train) if kind else fit_rival(arm, runs, train, asked, most, seed)
    found = np.full(len(runs.examples.seconds), np.nan)
    found[known] = fitted.predict(asked)
    return judged(found, runs.examples, known) | {"learned": float(len(learned))}


def _page(runs: Runs, options: ProgramCurves, found: Cells) -> list[str]:
    examples = runs.examples
    targets = [examples.inputs.targets[i] for i in np.unique(examples.inputs.target).tolist()]
    devices = sorted({target.device for target in targets})
    lines = [
        "# Errors of tensor programs by the number learned", "",
        f"{len(examples.seconds):,} programs of {len(np.unique(examples.inputs.task))} tasks of "
        f"`{examples.name}`, measured on {', '.join(devices)}. Mean absolute percentage errors "
        f"(medians in brackets), means of {counted(options.seeds, 'seed')}. Rivals are doubled "
        f"until they stop improving, up to {options.most:,} updates or {options.most // 8:,} "
        "trees, by the error on a tenth of the tasks learned from. Programs with a number of "
        f"leaves that was not learned judge nobody. Networks held out: {', '.join(HELD_OUT)}. "
        "Tables of all programs: *top-k*, the speed of the best of the k programs of a task that "
        "are predicted fastest, over that of its fastest.",
    ]  # fmt: skip
    for split, title in SPLITS.items():
        own = {key[1:]: cells for key, cells in found.items() if key[0] == split}
        learned = mean_of(next(cells for key, cells in own.items() if key[0] == ALL), "learned", 0)

        def cell(arm: str, column: str, own: Mapping[Any, list[Metrics]] = own) -> str:
            cells = own.get((column, arm), [])
            return f"{mean_of(cells, 'mape', 1)} ({mean_of(cells, 'median', 1)})"

        columns = dict.fromkeys(key[0] for key in own)
        heads = {f"{each} ({learned})" if each == ALL else each: each for each in columns}
        arms = [arm for arm in options.arms if arm not in SLOW]
        of_all = {arm: own[ALL, arm] for arm in options.arms if own.get((ALL, arm))}
        lines += ["", f"## {title}", "", grid_table("", arms, heads, cell), ""]
        lines += [f"### {title}: all programs learned", "", *means_table(of_all, COLUMNS, DIGITS)]
    return [*lines, *runs.not_run()]


def _figure(found: Cells) -> Figure:
    figure = Figure(figsize=(12, 3.6), layout="constrained")
    for axes, (split, title) in zip(figure.subplots(1, len(SPLITS)), SPLITS.items(), strict=True):
        for arm in dict.fromkeys(key[2] for key in found if key[2] not in SLOW):
            cells = [some for key, some in found.items() if key[::2] == (split, arm) and some]
            points = [[np.mean([run[of] for run in some]) for of in ("learned", "mape")]
                      for some in cells]  # fmt: skip
            axes.plot(*np.array(points).T, marker="o", label=arm)
        axes.set_xscale("log", base=2)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.set(xlabel="programs learned", title=title, ylim=(0, None))
    figure.axes[0].set_ylabel("mean absolute percentage error")
    figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside right upper")
    return figure
