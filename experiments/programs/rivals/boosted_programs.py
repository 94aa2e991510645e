"""Boosted trees on summed features: by XGBoost (Chen and Guestrin 2016), the cost model of AutoTVM
and Ansor, and by LightGBM.

Needs the optional extras: ``pip install 'go_rl[tuning,trees]'``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.costs.programs.learn.code_inputs import summed_program_features
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs
from go_rl.costs.trees.boosted import BoostedConfig, BoostedTrees, SummedKernels
from go_rl.costs.trees.candidate_ranks import import_xgboost

XGBOOST = "XGBoost"
TREE_RIVALS = (XGBOOST, "LightGBM")
LEARNING_RATE = 0.05
OPTIONS = {
    "objective": "reg:squarederror", "tree_method": "hist", "max_depth": 6, "eta": LEARNING_RATE,
    "subsample": 0.8, "colsample_bytree": 0.6, "nthread": 1, "verbosity": 0,
}  # fmt: skip
"""Of XGBoost."""
Rows = tuple[Float32[np.ndarray, "P F"], Float64[np.ndarray, "P"]]
"""Features, NaN where unknown, and what is learned of them."""


@dataclass(frozen=True, eq=False)
class TreeRival:
    """Trees that learned the logarithm of the seconds."""

    seconds_of: Callable[[Float32[np.ndarray, "P F"]], Float64[np.ndarray, "P"]]
    """From `summed_program_features` to seconds."""

    def predict(self, inputs: ProgramInputs) -> Float64[np.ndarray, "P"]:
        """Return [P] seconds of programs."""
        return self.seconds_of(summed_program_features(inputs))


def tree_rival(name: str, trees: int, seed: int = 0) -> Callable[[ProgramExamples], TreeRival]:
    """Return what fits one of `TREE_RIVALS` to examples."""

    def xgboost(examples: ProgramExamples) -> TreeRival:
        rows = summed_program_features(examples.inputs), np.log(examples.seconds)
        booster, _ = grow_trees(rows, trees, seed)
        return TreeRival(
            lambda features: np.exp(np.asarray(booster.inplace_predict(features), np.float64))
        )

    def lightgbm(examples: ProgramExamples) -> TreeRival:
        rows = SummedKernels(summed_program_features(examples.inputs), examples.seconds)
        config = BoostedConfig(trees=trees, learning_rate=LEARNING_RATE, seed=seed)
        return TreeRival(BoostedTrees.fit(rows, config).predict)

    return xgboost if name == XGBOOST else lightgbm


def grow_trees(
    rows: Rows, trees: int, seed: int, watched: Mapping[str, Rows] | None = None
) -> tuple[Any, dict[str, list[float]]]:
    """Return XGBoost's booster, and its error (RMSE) on watched rows behind each tree.

    Raises:
        MissingDependencyError: XGBoost is not installed.
    """
    xgboost = import_xgboost()
    data = {
        name: xgboost.DMatrix(x, label=y, nthread=1)
        for name, (x, y) in {"": rows, **(watched or {})}.items()
    }
    judges = [(each, name) for name, each in data.items() if name]
    found: dict[str, Any] = {}
    booster = xgboost.train(
        {**OPTIONS, "seed": seed}, data[""], trees, evals=judges, evals_result=found,
        verbose_eval=False,
    )  # fmt: skip
    return booster, {name: list(errors["rmse"]) for name, errors in found.items()}
