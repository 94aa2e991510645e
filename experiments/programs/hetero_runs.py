"""Cells of ``hetero_transfer``: pruned against full data, and the tuner."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from experiments.experiment import timed
from experiments.programs.cdmpp.runs import Metrics, Runs
from experiments.programs.program_rivals import Predict, split_rows
from experiments.programs.pruning import PruneRules, prune
from experiments.programs.rivals.boosted_programs import (
    TREE_RIVALS,
    grow_trees,
    tree_rival,
)
from experiments.programs.rivals.summed_mlp import SummedMlp
from go_rl.costs.learning.metrics import pair_accuracy, r_squared, rmse, top_k
from go_rl.costs.programs.learn.code_inputs import summed_program_features
from go_rl.costs.programs.learn.examples import ProgramExamples
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner, relative_throughput
from go_rl.costs.programs.learn.transfer.tuner_training import TunerRun
from go_rl.costs.trees.boosted import BoostedConfig, BoostedTrees, SummedKernels

MODELS = ("XGBoost", "MLP", "LightGBM")
DATA = ("full", "pruned")
RANDOM = "random"
"""Control of pruning: as few rows, drawn."""
TREES = 400
MLP_EPOCHS, MLP_BATCH = 60, 128
MARKS = (20, 50, 100, 200)
"""Epochs, or trees, behind which errors are noted."""
SCORED = (1, 2, 4, 8)
"""Programs scored at once."""
ADAPTED = 0.1
"""Share of a target's training tasks whose programs fine-tune the tuner."""


def learned_rows(runs: Runs, rows: np.ndarray, data: str, rules: PruneRules) -> np.ndarray:
    """Return rows that are learned from: all, those that pruning leaves, or as few drawn ones."""
    if data == "full":
        return rows
    if data == RANDOM:
        count = round((1 - rules.share) * len(rows))
        return np.sort(np.random.default_rng(len(rows)).permutation(rows)[:count])
    return rows[prune(runs.examples.take(rows), rules).rows]


def pruned_cell(
    runs: Runs, model: str, split: str, data: str, seed: int, rules: PruneRules
) -> Metrics:
    """Return size, seconds of training and metrics on the unpruned test rows of one model."""
    train, test, _ = split_rows(split, runs, seed)
    rows = learned_rows(runs, train, data, rules)
    examples = runs.examples.take(rows)
    fit = _fit(model, examples, seed)
    fit() if model == "MLP" and seed == 0 and data == "full" else None  # compiles
    predict, taken = timed(fit, time.process_time)
    tested = runs.examples.take(test)
    found = predict(tested.inputs)
    return {
        "rows": float(len(rows)), "bytes": float(examples.inputs.asts.vectors.nbytes),
        "train_seconds": taken, **order_metrics(found, tested),
    }  # fmt: skip


def _fit(model: str, examples: ProgramExamples, seed: int) -> Callable[[], Predict]:
    if model in TREE_RIVALS:
        return lambda: tree_rival(model, TREES, seed)(examples).predict
    updates = max(MLP_EPOCHS * len(examples.seconds) // MLP_BATCH, 1)
    run = replace(SummedMlp.run_defaults, updates=updates, batch=MLP_BATCH, seed=seed)
    return lambda: SummedMlp.fit(examples, run).predict


def order_metrics(found: np.ndarray, examples: ProgramExamples) -> Metrics:
    """Return PCA, top-1 and top-5 of seconds or scores, within tasks on targets."""
    _, group = relative_throughput(examples)
    return {
        "pca": pair_accuracy(found, examples.seconds, group),
        "top_1": top_k(found, examples.seconds, group, 1),
        "top_5": top_k(found, examples.seconds, group, 5),
    }


def pair_count(runs: Runs, split: str) -> int:
    """Return the pairs of test rows, of one task on one target, whose order a model predicts."""
    _, test, _ = split_rows(split, runs, 0)
    size = np.bincount(relative_throughput(runs.examples)[1][test])
    return int((size * (size - 1) // 2).sum())


def convergence_cell(
    runs: Runs, who: str, data: str, rules: PruneRules, batch: int, most: int
) -> Metrics:
    """Return RMSE of relative throughput behind each of `MARKS`, on rows learned from, at most so
    many before they are pruned, and on the unpruned test rows, split ``within_task``."""
    rows, test, _ = split_rows("within_task", runs, 0)
    rows = np.sort(np.random.default_rng(0).permutation(rows)[:most])
    rows = learned_rows(runs, rows, data, rules)
    known = _Converging(runs, {"train": rows, "test": test})
    of_rivals = {"XGBoost": known.xgboost, "LightGBM": known.lightgbm, "MLP": known.mlp}
    make = of_rivals.get(who, partial(known.tuner, batch, "rank" if "rank" in who else "rmse"))
    found, taken = timed(make, time.process_time)
    return {**found, "seconds": taken, "rows": float(len(rows))}


@dataclass(frozen=True, eq=False)
class _Converging:
    """Learners of relative throughput, with their errors behind each of `MARKS`."""

    runs: Runs
    parts: Mapping[str, np.ndarray]
    """Rows learned from (``train``), and those that judge (``test``)."""

    @cached_property
    def y(self) -> np.ndarray:
        """[P] relative throughput."""
        return relative_throughput(self.runs.examples)[0]

    @cached_property
    def x(self) -> np.ndarray:
        """[P, F] summed features."""
        return summed_program_features(self.runs.examples.inputs)

    def errors(self, mark: int, predict: Callable[[np.ndarray], np.ndarray]) -> Metrics:
        """RMSE of predictions of rows."""
        return {f"{n} {mark}": rmse(predict(some), self.y[some]) for n, some in self.parts.items()}

    def xgboost(self) -> Metrics:
        """Errors of XGBoost's trees."""
        watched = {name: (self.x[some], self.y[some]) for name, some in self.parts.items()}
        _, errors = grow_trees(watched["train"], MARKS[-1], 0, watched)
        return {f"{name} {m}": errors[name][m - 1] for name in watched for m in MARKS}

    def lightgbm(self) -> Metrics:
        """Errors of LightGBM's trees, which learn the logarithm of what they are given."""
        rows = SummedKernels(self.x[self.parts["train"]], np.exp(self.y[self.parts["train"]]))
        config = BoostedConfig(trees=MARKS[-1], learning_rate=0.05)
        booster, found = BoostedTrees.fit(rows, config).booster, Metrics()
        for m in MARKS:
            found |= self.errors(
                m, lambda some, m=m: np.asarray(booster.predict(self.x[some], num_iteration=m))
            )
        return found

    def mlp(self) -> Metrics:
        """Errors of perceptrons, one trained for each mark."""
        examples, rows = replace(self.runs.examples, seconds=np.exp(self.y)), self.parts["train"]
        found: Metrics = {}
        for mark in MARKS:
            updates = max(mark * len(rows) // MLP_BATCH, 1)
            run = replace(SummedMlp.run_defaults, updates=updates, batch=MLP_BATCH)
            learned = SummedMlp.fit(examples.take(rows), run)
            found |= self.errors(
                mark, lambda some, one=learned: np.log(one.predict(examples.inputs.take(some)))
            )
        return found

    def tuner(self, batch: int, loss: str) -> Metrics:
        """Errors of the tuner, whose optimiser starts anew behind each mark."""
        found: Metrics = {}
        rows, examples = self.parts["train"], self.runs.examples
        tuner: TransferTuner | None = None
        for before, mark in zip((0, *MARKS[:-1]), MARKS, strict=True):
            part = TunerRun(batch=batch, loss=loss, epochs=mark - before, seed=mark)
            if tuner is None:
                tuner = TransferTuner.fit(examples.take(rows), part, throughput=self.y[rows])
            else:
                tuner = tuner.trained_on(examples.take(rows), part, self.y[rows])
            for name, some in self.parts.items():
                out = tuner.throughput(examples.inputs.take(some))
                order = order_metrics(-out, examples.take(some))
                found |= {f"{name} {key} {mark}": value for key, value in order.items()}
                found[f"{name} {mark}"] = rmse(out, self.y[some])
                found[f"{name} r2 {mark}"] = r_squared(out, self.y[some])
        return found


def transfer_cell(runs: Runs, data: str, rules: PruneRules, epochs: int, batch: int) -> Metrics:
    """Return metrics on the held-out processor of a tuner that learned the other one, without and
    with fine-tuning on a few tasks there, of one that learned those tasks alone, and the
    milliseconds of scoring."""
    train, test, split = split_rows("by_device", runs, 0)
    rows = learned_rows(runs, train, data, rules)
    run = TunerRun(epochs=epochs, batch=batch)
    tuner = TransferTuner.fit(runs.examples.take(rows), run)
    tasks = np.unique(runs.examples.inputs.task[split.adapt])
    some = np.random.default_rng(0).permutation(tasks)[: max(int(ADAPTED * len(tasks)), 1)]
    few = split.adapt[np.isin(runs.examples.inputs.task[split.adapt], some)]
    tuned, taken = timed(lambda: tuner.fine_tuned(runs.examples.take(few)), time.process_time)
    found: Metrics = {"tuning_seconds": taken, "few": float(len(few))}
    alone = TransferTuner.fit(runs.examples.take(few), run)
    tested = runs.examples.take(test)
    truth = relative_throughput(tested)[0]
    for name, each in (("without", tuner), ("with", tuned), ("alone", alone)):
        out = each.throughput(tested.inputs)
        errors = {**order_metrics(-out, tested), "rmse": rmse(out, truth)}
        found |= {f"{name} {key}": value for key, value in errors.items()}
    for size in SCORED:
        inputs = tested.inputs.take(np.arange(size))
        tuner.predict(inputs)  # compiles
        seconds = [timed(lambda some=inputs: tuner.predict(some))[1] for _ in range(10)]
        found[f"ms {size}"] = 1e3 * float(np.mean(seconds))
    return {**found, "rows": float(len(rows))}
