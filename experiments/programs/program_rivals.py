"""CDMPP and its rivals on tensor programs, each trained until it stops improving.

Networks and trees follow one rule (`fit_rival`): updates, or trees, are doubled until the error on
a tenth of the tasks to learn from is level. Their speeds of training are in
`experiments.programs.cdmpp.speed`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from experiments.programs.cdmpp.runs import Runs, trained
from experiments.programs.rivals.boosted_programs import TREE_RIVALS, tree_rival
from experiments.programs.rivals.network_rival import NetworkRival
from experiments.programs.rivals.recursive_lstm import RecursiveLstm
from experiments.programs.rivals.summed_mlp import SummedMlp
from experiments.programs.rivals.tlp import TlpPrograms
from go_rl.costs.learning.metrics import mape
from go_rl.costs.learning.splits import DataSplit, by_target, by_task, within_task
from go_rl.costs.programs.learn.code_inputs import WIDE_NUMBERS
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs

FIRST_UPDATES, FIRST_TREES = 625, 75
"""Of the shortest fits."""
LEVEL = 0.02
"""Share of the error by which a doubling must lower it."""
CDMPP = "CDMPP"
CODE = "CDMPP, code of loops"
"""CDMPP that reads what rules say of each leaf's machine code besides."""
CMD = "CDMPP, fine-tuned with CMD"
"""CDMPP that learned on with the inputs of the programs that judge, whose times it never sees."""
NETWORKS: Mapping[str, type[NetworkRival]] = {
    "recursive LSTM (Tiramisu)": RecursiveLstm, "TLP": TlpPrograms, "MLP": SummedMlp,
}  # fmt: skip
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
    if name in (CDMPP, CODE, CMD):
        config = runs.run_config(seed)
        if name == CODE:
            config = replace(config, network=replace(config.network, leaf_numbers=WIDE_NUMBERS))

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
