"""Choosing XLA's flags of kernels: what a choice by each method loses.

Run: ``python -m experiments kernels.kernel_ranks [--kernels FILE|NAME]``; it goes on where it
stopped. Five folds at random, and five by family of models. *default*: the compiler's flags;
*best setting*: best on average on the training split; *trees* learned the log of the seconds,
*trees, relative* of those over their geometric mean; *mse*, *logistic*, *hinge*: ranking networks
with this loss; *weighted*: pairs counted by how far apart they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int, Int64

from experiments.experiment import Experiment, timed
from experiments.kernels.kernel_cost_model import HELD_OUT, by_model, by_model_split, error_table
from experiments.rows import grouped, run_name
from go_rl.costs.kernels.features import kernel_features
from go_rl.costs.kernels.measure.data import load_kernel_data
from go_rl.costs.kernels.ranks.flag_times import FlagTimes, flag_times
from go_rl.costs.kernels.ranks.predictor import FlagRanks
from go_rl.costs.kernels.ranks.training import RankTrainConfig
from go_rl.costs.learning.losses import RankLoss
from go_rl.costs.learning.metrics import ape, groups_of, random_ape
from go_rl.costs.trees.boosted import BoostedTrees, SummedKernels, summed_features
from go_rl.graphs.cutting.opcode_names import vocabulary_of
from go_rl.graphs.zoo import zoo_entry

HEAD = """# Ranking XLA's flags of kernels

APE: what the settings chosen lose, in percent of the best measured ones; kernels that were \
not learned from, in five folds (seed {seed}). *mse* to *weighted*: {members} networks of \
{updates} updates.
"""
TOTALS = {"all kernels": 1, "Kendall's tau": 2, "seconds": 1}
"""Numbers of all kernels together with their decimals: time lost, Kendall's tau (NaN for what does
not rank), seconds of learning and choosing, all folds."""
LEARNED: Mapping[str, tuple[RankLoss, float | None]] = {
    "mse": ("mse", None),
    "logistic": ("logistic", None),
    "hinge": ("hinge", None),
    "weighted": ("hinge", 1.0),
}
"""Networks: their loss, and the maximum weight of a pair."""
FOLDS = 5


@dataclass(frozen=True)
class KernelRanks(Experiment):
    """Options of this experiment."""

    kernels: str = "kernels-cpu-1"
    """Kernels measured under settings of flags: a data set that ships, or a file."""
    updates: int = 1000
    """Updates of each network."""
    members: int = 3
    """Networks of an ensemble."""
    seed: int = 0
    """Of the folds."""

    def run(self) -> None:
        """Compare on both splits what is missing; write the page and its table."""
        known = load(self.kernels)
        words = f"{self.updates} {self.members} {self.seed}"
        run = run_name(words, known.seconds)
        table = self.kept_rows(Row, run=run)
        text = HEAD.format(seed=self.seed, members=self.members, updates=self.updates)
        for name, folds in splits(known.labels, self.seed).items():
            for method in (*METHODS, *LEARNED):
                if not table.has(run, name, method):
                    for measure, value in compare(method, known, folds, self).items():
                        table.add(Row(run, name, method, measure, value))
            text += section([row for row in table.rows if row.split == name], folds)
        self.write_page(text)


@dataclass(frozen=True, eq=False)
class Ranked:
    """``K`` kernels, their ``R`` times, and what is known of them beside the times."""

    times: FlagTimes
    labels: tuple[str, ...]
    """[K] the family of each kernel's model: the row of the table that it counts in."""
    kernel: Int64[np.ndarray, "R"]
    """[R] the kernel of each time, ascending."""
    setting: Int64[np.ndarray, "R"]
    """[R] the number of its setting."""
    seconds: Float64[np.ndarray, "R"]

    def rows(self, which: np.ndarray) -> np.ndarray:
        """Return the times of some kernels, in the order that they have."""
        return np.flatnonzero(np.isin(self.kernel, which))


Judgement = dict[str, float]
"""Time lost by the choices of one method (APE): by label, and `TOTALS`."""
Fold = tuple[np.ndarray, np.ndarray]
"""Kernels to learn from, and those to test on."""
Scores = np.ndarray | None
"""[r] of the tested times, smaller for faster; None: a random choice."""


@dataclass(frozen=True)
class Row:
    """One number of the page."""

    run: str
    """Of the data, the split and the training."""
    split: str
    method: str
    measure: str
    """A label, whose APE it is, or one of `TOTALS`."""
    value: float


def load(source: str) -> Ranked:
    """Return the kernels of a data set that were timed under settings of flags."""
    data = load_kernel_data(source)
    times = flag_times(data)
    labels = tuple(zoo_entry(data.models[k]).family for k in times.number.tolist())
    kernel, setting = np.nonzero(times.known)
    return Ranked(times, labels, kernel, setting, times.seconds[kernel, setting])


def kendall(
    predicted: Float64[np.ndarray, "R"],
    seconds: Float64[np.ndarray, "R"],
    kernel: Int[np.ndarray, "R"],
) -> float:
    """Return Kendall's tau-b within a kernel, the mean over kernels where it is defined."""
    from scipy.stats import kendalltau  # imports for half a second

    taus = []
    for rows in groups_of(kernel):
        if len(rows) > 1:
            found: object = kendalltau(predicted[rows], seconds[rows])
            tau = float(found.statistic)  # pyright: ignore[reportAttributeAccessIssue]
            if np.isfinite(tau):
                taus.append(tau)
    return float(np.mean(taus)) if taus else float("nan")


def splits(labels: Sequence[str], seed: int) -> dict[str, list[Fold]]:
    """Return both splits in folds: at random, and by label, `HELD_OUT` being the first; each kernel
    is tested once."""
    order = np.random.default_rng(seed).permutation(len(labels))
    parts = [np.sort(part) for part in np.array_split(order, FOLDS)]
    return {
        "at random": [(np.setdiff1d(order, part), part) for part in parts],
        "by model": [by_model_split(labels, part) for part in label_folds(labels, seed)],
    }


def label_folds(labels: Sequence[str], seed: int) -> list[tuple[str, ...]]:
    """Return labels in folds: those held out, and the others at random; none is empty."""
    known = set(labels)
    others = sorted(known - set(HELD_OUT))
    drawn = np.random.default_rng(seed).permutation(len(others))
    parts = [[others[i] for i in part] for part in np.array_split(drawn, FOLDS - 1)]
    folds = [sorted(known & set(HELD_OUT)), *parts]
    return [tuple(fold) for fold in folds if fold]


def compare(method: str, known: Ranked, folds: Sequence[Fold], options: KernelRanks) -> Judgement:
    """Return the time lost by the choices of a method on all folds."""
    scores, spent, at_random = np.full(len(known.seconds), np.nan), 0.0, False
    for train, test in folds:
        found, took = timed(
            lambda fold=(train, test): (
                networks(method, known, *fold, options)
                if method in LEARNED
                else METHODS[method](known, *fold)
            )
        )
        spent += took
        if found is None:
            at_random = True
        else:
            scores[known.rows(test)] = found
    return judge(known, None if at_random else scores, spent)


def networks(
    method: str, known: Ranked, train: np.ndarray, test: np.ndarray, options: KernelRanks
) -> Scores:
    """Return the scores of ranking networks."""
    loss, most = LEARNED[method]
    config = RankTrainConfig(loss=loss, most=most, updates=options.updates)
    ranks = FlagRanks.fit(known.times.take(train), config, options.members, print)
    tested = known.times.take(test)
    return ranks.order(tested.kernels)[tested.known]


def judge(known: Ranked, scores: Scores, spent: float) -> Judgement:
    """Return what choices by scores lose."""
    seconds, kernel = known.seconds, known.kernel

    def lost(r: np.ndarray) -> float:
        if scores is None:
            return random_ape(seconds[r], kernel[r])
        return ape(scores[r], seconds[r], kernel[r])

    tau = float("nan") if scores is None else kendall(scores, seconds, kernel)
    labels = [known.labels[k] for k in kernel.tolist()]
    totals = (lost(np.arange(len(seconds))), tau, spent)
    return {**by_model(labels, lost), **dict(zip(TOTALS, totals, strict=True))}


def _best_setting(known: Ranked, train: np.ndarray, test: np.ndarray) -> Scores:
    rows = known.rows(train)
    total = np.bincount(known.setting[rows], relative_logs(known)[rows])
    mean = total / np.maximum(np.bincount(known.setting[rows]), 1)
    return mean[known.setting[known.rows(test)]]


def _grown(known: Ranked, logs: np.ndarray, train: np.ndarray, test: np.ndarray) -> np.ndarray:
    kernels = known.times.kernels
    vocabulary = vocabulary_of(kernels.take(train).graph.op_type)
    summed = summed_features(kernel_features(kernels, vocabulary), len(vocabulary))
    settings = np.eye(known.times.seconds.shape[1], dtype=np.float32)
    wide = np.concatenate([summed[known.kernel], settings[known.setting]], axis=1)
    rows = known.rows(train)
    trees = BoostedTrees.fit(SummedKernels(wide[rows], np.exp(logs[rows])))
    return trees.predict(wide[known.rows(test)])


def relative_logs(known: Ranked) -> np.ndarray:
    """Return [R] logs of the seconds less their mean over the kernel."""
    logs, kernel = np.log(known.seconds), known.kernel
    return logs - (np.bincount(kernel, logs) / np.bincount(kernel))[kernel]


METHODS: dict[str, Callable[[Ranked, np.ndarray, np.ndarray], Scores]] = {
    "random": lambda known, train, test: None,
    "default": lambda known, train, test: (known.setting[known.rows(test)] > 0) * 1.0,
    "best setting": _best_setting,
    "trees": lambda known, *fold: _grown(known, np.log(known.seconds), *fold),
    "trees, relative": lambda known, *fold: _grown(known, relative_logs(known), *fold),
}
"""All but the networks: from the kernels to learn from and those to test on, to scores."""


def section(rows: Sequence[Row], folds: Sequence[Fold]) -> str:
    """Return the table of a split: APE, with a column a method; rows of labels that are held out,
    or of all where none is."""
    methods = grouped(rows, lambda row: row.method)
    columns = {name: {row.measure: row.value for row in own} for name, own in methods.items()}
    labels = [name for name in next(iter(columns.values())) if name not in TOTALS]
    shown = [label for label in labels if label in HELD_OUT] or labels
    judged = sum(len(test) for _, test in folds)
    return (
        f"\n## {rows[0].split.capitalize()}: {len(folds[0][0])} kernels learned from in the first "
        f"fold, {judged} judged in all\n\n{error_table(columns, shown, TOTALS)}"
    )
