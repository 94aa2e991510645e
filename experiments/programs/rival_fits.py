"""Fits of CDMPP and its rivals in equal seconds of a processor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from experiments.experiment import timed
from experiments.programs.cdmpp.runs import Runs, trained
from experiments.programs.rivals.boosted_programs import TREE_RIVALS, tree_rival
from experiments.programs.rivals.network_rival import NetworkRival
from experiments.programs.rivals.recursive_lstm import RecursiveLstm
from experiments.programs.rivals.summed_mlp import SummedMlp
from experiments.programs.rivals.tlp import TlpPrograms
from go_rl.costs.learning.splits import Split, by_target, by_task, within_task
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


def split_rows(split: str, runs: Runs, seed: int) -> tuple[np.ndarray, np.ndarray, Split]:
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
