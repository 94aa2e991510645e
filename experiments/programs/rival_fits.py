"""Fits of CDMPP and its rivals in equal seconds of a processor."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from experiments.programs.cdmpp.runs import Runs, trained
from experiments.programs.rivals.boosted_programs import (
    LightgbmPrograms,
    XgboostConfig,
    XgboostPrograms,
)
from experiments.programs.rivals.network_rival import NetworkRival
from experiments.programs.rivals.recursive_lstm import RecursiveLstm
from experiments.programs.rivals.summed_mlp import SummedMlp
from experiments.programs.rivals.tlp import TlpPrograms
from go_rl.costs.learning.splits import Split, by_target, by_task, within_task
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs
from go_rl.costs.trees.boosted import BoostedConfig

PROBE = 40
"""Updates that are timed; as many before compile."""
MOST_UPDATES = 40_000
TREES = 600
"""More change little."""
CDMPP = "CDMPP"
NETWORKS: Mapping[str, type[NetworkRival]] = {
    "recursive LSTM (Tiramisu)": RecursiveLstm, "TLP": TlpPrograms, "MLP": SummedMlp,
}  # fmt: skip
RIVALS = (CDMPP, "XGBoost", "LightGBM", *NETWORKS)
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
    if name == "XGBoost":
        return _trees(lambda: XgboostPrograms.fit(train, XgboostConfig(TREES, seed=seed)))
    if name == "LightGBM":
        config = BoostedConfig(trees=TREES, learning_rate=0.05, seed=seed)
        return _trees(lambda: LightgbmPrograms.fit(train, config))
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


def _trees(fit: Callable[[], Any]) -> Fitted:
    began = time.process_time()
    learned = fit()
    return Fitted(learned.predict, time.process_time() - began, TREES)


def _within(seconds: float, fit: Callable[[int], Predict]) -> Fitted:
    """The fit whose updates take so long, by a probe behind one that compiles."""
    fit(PROBE)
    began = time.process_time()
    fit(PROBE)
    each = (time.process_time() - began) / PROBE
    updates = int(np.clip(seconds / each, PROBE, MOST_UPDATES))
    began = time.process_time()
    predict = fit(updates)
    return Fitted(predict, time.process_time() - began, updates)
