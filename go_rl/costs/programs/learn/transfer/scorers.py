"""Predictors of programs as cost models of inner tuners: scores of one operator's schedules on one
target, the smallest for the fastest.

Both returned functions have the form that `go_rl.tuning`'s inner tuners take: they are called with
schedules and [S, 164] sums of their leaf vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.costs.programs.features import PackedAsts
from go_rl.costs.programs.learn.examples import ProgramInputs, target_numbers
from go_rl.costs.programs.learn.rivals.xgboost_trees import XgboostPrograms
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner
from go_rl.costs.programs.measure.data import ProgramTarget
from go_rl.costs.programs.workloads import TensorTask

Scorer = Callable[[Sequence[Any], Float32[np.ndarray, "S numbers"]], Float64[np.ndarray, "S"]]


def trees_scorer(trees: XgboostPrograms, target: ProgramTarget) -> Scorer:
    """Return scores by boosted trees: predicted seconds; schedules themselves are not looked at."""
    numbers = np.array(target_numbers(target), np.float32)

    def score(
        schedules: Sequence[Any], features: Float32[np.ndarray, "S numbers"]
    ) -> Float64[np.ndarray, "S"]:
        behind = np.broadcast_to(numbers, (len(features), len(numbers)))
        return trees.seconds_of(np.concatenate([features, behind], axis=1).astype(np.float32))

    return score


def tuner_scorer(
    tuner: TransferTuner,
    task: TensorTask,
    target: ProgramTarget,
    asts_of: Callable[[Sequence[Any]], PackedAsts],
) -> Scorer:
    """Return scores by the tuner: minus the predicted relative throughput.

    Args:
        tuner: trained, fine-tuned for the target or not.
        task: whose schedules are scored.
        target: on which.
        asts_of: compact ASTs of schedules, for the tuner reads each statement and sums do not say
            them.
    """

    def score(
        schedules: Sequence[Any], features: Float32[np.ndarray, "S numbers"]
    ) -> Float64[np.ndarray, "S"]:
        return tuner.predict(programs_of_task(asts_of(schedules), task, target))

    return score


def programs_of_task(
    asts: PackedAsts, task: TensorTask | None, target: ProgramTarget
) -> ProgramInputs:
    """Return programs of one task on one target, of which features alone are known; None: nor is
    the task."""
    zero = np.zeros(asts.num_programs, np.int64)
    return ProgramInputs(
        asts=asts, task=zero, target=zero, tasks=(task,), networks=((),), targets=(target,),
        devices=np.array([target_numbers(target)]), nest=zero, trace=zero,
    )  # fmt: skip
