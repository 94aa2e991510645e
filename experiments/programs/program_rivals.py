"""CDMPP beside its rivals on tensor programs: equal rows, each trained until it stops improving.

Run: ``python -m experiments programs.program_rivals``. Networks and trees follow one rule
(`fit_rival`): updates, or trees, are doubled until the error on a tenth of the tasks to learn from
is level. Finished cells are kept, and a call goes on where the last one
stopped; the page states what is missing. Their speeds of training are in
`experiments.programs.cdmpp.speed`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from experiments.experiment import Experiment
from experiments.programs.cdmpp.runs import (
    Metrics,
    Runs,
    TableOptions,
    judged,
    means_table,
    trained,
)
from experiments.programs.rivals.boosted_programs import TREE_RIVALS, tree_rival
from experiments.programs.rivals.network_rival import NetworkRival
from experiments.programs.rivals.recursive_lstm import RecursiveLstm
from experiments.programs.rivals.summed_mlp import SummedMlp
from experiments.programs.rivals.tlp import TlpPrograms
from go_rl.costs.learning.metrics import mape
from go_rl.costs.learning.splits import DataSplit, by_target, by_task, within_task
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs

FIRST_UPDATES, FIRST_TREES = 625, 75
"""Of the shortest fits."""
LEVEL = 0.02
"""Share of the error by which a doubling must lower it."""
CDMPP = "CDMPP"
CMD = "CDMPP, fine-tuned with CMD"
"""CDMPP that learned on with the inputs of the programs that judge, whose times it never sees."""
NETWORKS: Mapping[str, type[NetworkRival]] = {
    "recursive LSTM (Tiramisu)": RecursiveLstm, "TLP": TlpPrograms, "MLP": SummedMlp,
}  # fmt: skip
RIVALS = (CDMPP, *TREE_RIVALS, *NETWORKS)
Predict = Callable[[ProgramInputs], np.ndarray]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A predictor and what its fits took."""

    predict: Predict
    seconds: float
    """Of the processor, of all fits together."""
    updates: int
    """Or trees, of the best."""
    level: bool
    """Whether the last doubling brought less than `LEVEL`; else the longest fit allowed did not."""


def fit_rival(
    name: str, runs: Runs, train: ProgramExamples, asked: ProgramInputs, most: int, seed: int
) -> Fitted:
    """Return a rival that learned from rows until it stopped improving, or has so many updates;
    ``asked``: the programs that it is to predict.

    A fit of twice the length is made, from the start and with its schedule to the end, until the
    error on tasks that were not learned from falls by less than `LEVEL`; the best fit counts. Early
    stopping inside one fit would stop learning rates that have not fallen yet, and has no meaning
    for trees.
    """
    learned, judges = _judging_tasks(train, seed)
    fit, began, level = _fits(name, runs, learned, asked, seed), time.process_time(), False
    trees = name in TREE_RIVALS
    length, longest = (FIRST_TREES, most // 8) if trees else (FIRST_UPDATES, most)
    best, found = fit(length), length
    least = mape(best(judges.inputs), judges.seconds)
    while 2 * length <= longest and not level:
        length *= 2
        longer = fit(length)
        error = mape(longer(judges.inputs), judges.seconds)
        level = error > (1 - LEVEL) * least
        if error < least:
            best, found, least = longer, length, error
    return Fitted(best, time.process_time() - began, found, level)


def _judging_tasks(examples: ProgramExamples, seed: int) -> tuple[ProgramExamples, ProgramExamples]:
    """The programs that are learned from, and those of a tenth of the tasks, which judge."""
    split = by_task(examples.inputs.task, seed)
    learned = np.concatenate([split.train, split.test])
    known = np.isin(examples.inputs.leaves, examples.inputs.leaves[learned])
    return examples.take(learned), examples.take(split.validation[known[split.validation]])


def _fits(
    name: str, runs: Runs, learned: ProgramExamples, asked: ProgramInputs, seed: int
) -> Callable[[int], Predict]:
    """What fits a rival with so many updates or trees."""
    if name in TREE_RIVALS:
        return lambda trees: tree_rival(name, trees, seed)(learned).predict
    if name in (CDMPP, CMD):
        config = runs.run_config(seed)

        def fit(updates: int) -> Predict:
            network = trained(learned, replace(config, updates=updates))
            return (network.fine_tuned(learned, asked) if name == CMD else network).predict

        return fit
    kind = NETWORKS[name]
    run = replace(kind.run_defaults, seed=seed)
    return lambda updates: kind.fit(learned, replace(run, updates=updates)).predict


def split_rows(split: str, runs: Runs, seed: int) -> tuple[np.ndarray, np.ndarray, DataSplit]:
    """Return the rows that are learned from, those that judge, and the whole split."""
    inputs = runs.examples.inputs
    if split == "within_task":
        found = within_task(inputs.group, seed)
    elif split == "by_task":
        found = by_task(inputs.task, seed)
    elif split in ("by_target", "by_device"):
        kinds = [each.device if split == "by_device" else each for each in inputs.targets]
        last = np.array([each == kinds[-1] for each in kinds])[inputs.target]
        found = by_target(inputs.task, last, True, seed)
    else:
        found = runs.split(seed)
    return found.train, found.held_out if len(found.held_out) else found.test, found


SPLITS = {
    "by_task": "Other tasks (`by_task`)",
    "by_model": "ResNet-50, MobileNet-V2, BERT-tiny (by model)",
    "by_target": "The other codegen target, x86-64-v4 (`by_target`)",
    "within_task": "Other programs of the same tasks (`within_task`)",
}
COLUMNS = {
    "mape": "MAPE %", "median": "median %", "rmse_ms": "RMSE ms", "within_20": "within 20 %",
    "pair_accuracy": "PCA", "top_1": "top-1", "top_5": "top-5",
    "fit_seconds": "CPU s", "updates": "updates", "level": "level",
}  # fmt: skip


@dataclass(frozen=True)
class ProgramRivals(TableOptions, Experiment):
    """Options of this table."""

    runs: str = "build/program_rivals"
    """Folder of finished cells."""
    most: int = 40_000
    """Updates of the longest fit of a network; of trees an eighth."""
    splits: tuple[str, ...] = ()
    """Splits that are run; empty: all."""

    def run(self) -> None:
        """Run the cells that are missing; write the page."""
        runs = Runs(self)
        found: dict[tuple[str, str], list[Metrics]] = {}
        for seed, split, rival in product(range(self.seeds), self.splits or SPLITS, RIVALS):
            name = f"{split}-{rival.split(' (')[0].replace(' ', '-')}-{seed}-level-{self.most}"
            kept = runs.tried(name, partial(_cell, runs, self, split, rival, seed))
            found.setdefault((split, rival), []).extend(kept)
        self.write_page(_page(runs, self, found))


def _cell(runs: Runs, options: ProgramRivals, split: str, rival: str, seed: int) -> Metrics:
    train, test, _ = split_rows(split, runs, seed)
    asked = runs.examples.inputs.take(test)
    fitted = fit_rival(rival, runs, runs.examples.take(train), asked, options.most, seed)
    found = np.full(len(runs.examples.seconds), np.nan)
    found[test] = fitted.predict(asked)
    return {
        **judged(found, runs.examples, test), "fit_seconds": fitted.seconds,
        "updates": float(fitted.updates), "level": float(fitted.level),
        "learned": float(len(train)), "tested": float(len(test)),
    }  # fmt: skip


def _page(runs: Runs, options: ProgramRivals, found: dict[tuple[str, str], list[Metrics]]) -> str:
    examples = runs.examples
    device = examples.inputs.targets[0].device
    lines = [
        "# CDMPP and its rivals on tensor programs", "",
        f"{len(examples.seconds):,} programs measured on one processor, {device}; its two targets,",
        "levels of x86-64 for which code was compiled, are no devices. Every predictor learns the",
        f"same rows until it stops improving: {FIRST_UPDATES} updates ({FIRST_TREES} trees) are",
        f"doubled, up to {options.most:,} ({options.most // 8:,}), until the error on a tenth of",
        f"the tasks learned from falls by less than {LEVEL:.0%}; the best counts (*updates*). *CPU",
        "s*: of all fits together, compilation included, beside other work; *level*: share of",
        f"fits that ended so. Means of up to {options.seeds} seeds (column n). Times repeat to",
        "some 5 %, below which differences of errors mean nothing.",
    ]  # fmt: skip
    for split, title in SPLITS.items():
        if options.splits and split not in options.splits:
            continue
        results = {rival: found.get((split, rival), []) for rival in RIVALS}
        known = next((each[0] for each in results.values() if each), None)
        count = known and f" ({known['learned']:,.0f} learned, {known['tested']:,.0f} tested)"
        lines += ["", f"## {title}{count or ''}", ""]
        lines += means_table(results, COLUMNS, {"updates": 0, "fit_seconds": 0})
    return "\n".join([*lines, *runs.not_run(), ""])
