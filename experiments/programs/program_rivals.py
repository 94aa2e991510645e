"""CDMPP beside its rivals on tensor programs: equal rows, equal seconds of a processor.

Run: ``python -m experiments.programs.program_rivals``. Each network is fitted for as many seconds
of a processor as the others, on the same rows of each split; boosted trees need less. Finished
cells are kept, and a call goes on where the last one stopped; the page states what is missing.
Their speeds of training are in `experiments.programs.cdmpp.speed`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np

from experiments.experiment import Experiment, timed
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
from go_rl.costs.learning.splits import DataSplit, by_target, by_task, within_task
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs

PROBE = 40
"""Updates that are timed; as many before compile."""
MOST_UPDATES = 40_000
TREES = 600
"""More change little."""
CDMPP = "CDMPP"
NETWORKS: Mapping[str, type[NetworkRival]] = {
    "recursive LSTM (Tiramisu)": RecursiveLstm, "TLP": TlpPrograms, "MLP": SummedMlp,
}  # fmt: skip
RIVALS = (CDMPP, *TREE_RIVALS, *NETWORKS)
Predict = Callable[[ProgramInputs], np.ndarray]


@dataclass(frozen=True, eq=False)
class Fitted:
    """A predictor and what its fit took."""

    predict: Predict
    seconds: float
    """Of the processor, compilation and probes apart."""
    updates: int
    """Or trees."""


def fit_rival(name: str, runs: Runs, train: ProgramExamples, seconds: float, seed: int) -> Fitted:
    """Return a rival that learned from rows; networks use so many seconds of a processor, trees
    those that `TREES` take."""
    if name in TREE_RIVALS:
        fit = tree_rival(name, TREES, seed)
        learned, taken = timed(lambda: fit(train), time.process_time)
        return Fitted(learned.predict, taken, TREES)
    if name == CDMPP:
        config = runs.run_config(seed)
        return _within(seconds, lambda steps: trained(train, replace(config, steps=steps)).seconds)
    kind = NETWORKS[name]
    run = replace(kind.run_defaults, seed=seed)
    return _within(seconds, lambda steps: kind.fit(train, replace(run, steps=steps)).predict)


def split_rows(split: str, runs: Runs, seed: int) -> tuple[np.ndarray, np.ndarray, DataSplit]:
    """Return the rows that are learned from, those that judge, and the whole split."""
    inputs = runs.examples.inputs
    if split == "within_task":
        found = within_task(inputs.task * len(inputs.targets) + inputs.target, seed)
    elif split == "by_task":
        found = by_task(inputs.task, seed)
    elif split == "by_target":
        found = by_target(inputs.task, inputs.target, len(inputs.targets) - 1, seed)
    else:
        found = runs.split(seed)
    return found.train, found.held_out if len(found.held_out) else found.test, found


def _within(seconds: float, fit: Callable[[int], Predict]) -> Fitted:
    """The fit whose updates take so long, by a probe behind one that compiles."""
    fit(PROBE)
    _, probed = timed(lambda: fit(PROBE), time.process_time)
    updates = int(np.clip(PROBE * seconds / probed, PROBE, MOST_UPDATES))
    predict, taken = timed(lambda: fit(updates), time.process_time)
    return Fitted(predict, taken, updates)


SPLITS = {
    "by_task": "Other tasks (`by_task`)",
    "by_model": "ResNet-50, MobileNet-V2, BERT-tiny (by model)",
    "by_target": "The other codegen target, x86-64-v4 (`by_target`)",
    "within_task": "Other programs of the same tasks (`within_task`)",
}
COLUMNS = {
    "mape": "MAPE %", "median": "median %", "rmse_ms": "RMSE ms", "within_20": "within 20 %",
    "pair_accuracy": "PCA", "top_1": "top-1", "top_5": "top-5",
    "fit_seconds": "CPU s", "updates": "updates",
}  # fmt: skip
NOT_HERE = """\
Habitat scales the measured time of an operator from one GPU to another, and NeuSight's utilisation
is of a GPU's tiles: neither has an input in these records, of one processor (`left_out_gpus` has
NeuSight's figures). The kernel GraphSAGE reads kernels of XLA's graphs, not scheduled programs."""


@dataclass(frozen=True)
class ProgramRivals(TableOptions, Experiment):
    """Options of this table."""

    runs: str = "build/program_rivals"
    """Folder of finished cells."""
    seconds: float = 20.0
    """Of a processor, for the fit of each network."""

    def run(self) -> None:
        """Run the cells that are missing; write the page."""
        runs = Runs(self)
        found: dict[tuple[str, str], list[Metrics]] = {}
        for seed, split, rival in product(range(self.seeds), SPLITS, RIVALS):
            name = f"{split}-{rival.split(' (')[0].replace(' ', '-')}-{seed}-{self.seconds:g}s"
            kept = runs.tried(name, partial(_cell, runs, self, split, rival, seed))
            found.setdefault((split, rival), []).extend(kept)
        self.write_page(_page(runs, self, found))


def _cell(runs: Runs, options: ProgramRivals, split: str, rival: str, seed: int) -> Metrics:
    train, test, _ = split_rows(split, runs, seed)
    fitted = fit_rival(rival, runs, runs.examples.take(train), options.seconds, seed)
    found = np.full(len(runs.examples.seconds), np.nan)
    found[test] = fitted.predict(runs.examples.inputs.take(test))
    return {
        **judged(found, runs.examples, test), "fit_seconds": fitted.seconds,
        "updates": float(fitted.updates), "learned": float(len(train)), "tested": float(len(test)),
    }  # fmt: skip


def _page(runs: Runs, options: ProgramRivals, found: dict[tuple[str, str], list[Metrics]]) -> str:
    examples = runs.examples
    device = examples.inputs.targets[0].device
    lines = [
        "# CDMPP and its rivals on tensor programs", "",
        f"{len(examples.seconds):,} programs measured on one processor, {device}; its two targets,",
        "levels of x86-64 for which code was compiled, are no devices. Every predictor learns the",
        f"same rows. Fits of networks are planned for {options.seconds:g} s of a processor, by",
        "a probe; the column says what they took, what was compiled on the way included, beside",
        f"other work. Means of up to {options.seeds} seeds (column n). Times repeat to some",
        "5 %, below which differences of errors mean nothing.",
    ]  # fmt: skip
    for split, title in SPLITS.items():
        results = {rival: found.get((split, rival), []) for rival in RIVALS}
        known = next((each[0] for each in results.values() if each), None)
        count = known and f" ({known['learned']:,.0f} learned, {known['tested']:,.0f} tested)"
        lines += ["", f"## {title}{count or ''}", ""]
        lines += means_table(results, COLUMNS, {"updates": 0}, counted=True)
    return "\n".join([*lines, "", NOT_HERE, *runs.not_run(), ""])


if __name__ == "__main__":
    ProgramRivals.main()
