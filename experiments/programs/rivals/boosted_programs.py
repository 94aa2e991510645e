"""Boosted trees on summed features: `XgboostPrograms` by XGBoost (Chen and Guestrin 2016), the cost
model of AutoTVM and Ansor, and `LightgbmPrograms` by LightGBM.

Needs the optional extras: ``pip install 'go_rl[tuning,trees]'``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.core import TrainingError
from go_rl.costs.learning.predictor import Predictor
from go_rl.costs.programs.learn.code_inputs import SUMMED_NAMES, summed_program_features
from go_rl.costs.programs.learn.code_trees import ProgramTrees
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs
from go_rl.costs.trees.boosted import BoostedConfig, BoostedTrees, SummedKernels
from go_rl.costs.trees.candidate_ranks import import_xgboost, load_booster, save_booster

FORMAT = "go_rl-programs-xgboost"


@dataclass(frozen=True)
class XgboostConfig:
    """How the trees grow."""

    trees: int = 600
    depth: int = 6
    learning_rate: float = 0.05
    row_share: float = 0.8
    column_share: float = 0.6
    """Share of the programs and features that a tree sees."""
    threads: int = 1
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        for name in ("trees", "depth", "threads"):
            if getattr(self, name) < 1:
                raise TrainingError(f"XGBoost: {name} must be >= 1, not {getattr(self, name)}")
        for name in ("learning_rate", "row_share", "column_share"):
            if not 0 < getattr(self, name) <= 1:
                raise TrainingError(f"XGBoost: {name} must be above 0, at most 1")

    def options(self) -> dict[str, Any]:
        """Return the configuration in XGBoost's words."""
        return {
            "objective": "reg:squarederror", "tree_method": "hist", "max_depth": self.depth,
            "eta": self.learning_rate, "subsample": self.row_share, "nthread": self.threads,
            "colsample_bytree": self.column_share, "seed": self.seed, "verbosity": 0,
        }  # fmt: skip


def grow_trees(
    features: Float32[np.ndarray, "P F"],
    targets: Float64[np.ndarray, "P"],
    config: XgboostConfig,
    watched: dict[str, tuple[np.ndarray, np.ndarray]] | None = None,
) -> tuple[Any, dict[str, list[float]]]:
    """Return XGBoost's booster, and its error (RMSE) on watched rows behind each tree.

    Args:
        features: [P, F] NaN where unknown.
        targets: [P] what is learned, by squared error.
        config: of the trees.
        watched: features and targets by name.

    Raises:
        MissingDependencyError: XGBoost is not installed.
    """
    xgboost = import_xgboost()
    rows = xgboost.DMatrix(features, label=targets, nthread=config.threads)
    judges = [
        (xgboost.DMatrix(x, label=y, nthread=config.threads), name)
        for name, (x, y) in (watched or {}).items()
    ]
    found: dict[str, Any] = {}
    booster = xgboost.train(
        config.options(), rows, config.trees, evals=judges, evals_result=found, verbose_eval=False
    )
    return booster, {name: list(errors["rmse"]) for name, errors in found.items()}


@dataclass(frozen=True, eq=False)
class XgboostPrograms(Predictor[ProgramExamples, ProgramInputs]):
    """Trees that learned the logarithm of the seconds."""

    booster: Any
    """XGBoost's; None: nothing."""

    what = "XGBoost's trees of programs"
    unit = "seconds"

    def __post_init__(self) -> None:
        self.check_fitted(self.booster is not None)

    @classmethod
    def fit(cls, examples: ProgramExamples, config: XgboostConfig | None = None) -> XgboostPrograms:
        """Return trees that learned from examples; see `Predictor`."""
        features = summed_program_features(examples.inputs)
        return cls(grow_trees(features, np.log(examples.seconds), config or XgboostConfig())[0])

    def predict(self, inputs: ProgramInputs) -> Float64[np.ndarray, "P"]:
        """See `Predictor`."""
        return self.seconds_of(summed_program_features(inputs))

    def seconds_of(self, features: Float32[np.ndarray, "P F"]) -> Float64[np.ndarray, "P"]:
        """Return [P] seconds of programs by `summed_program_features`."""
        if not len(features):
            return np.zeros(0)
        return np.exp(np.asarray(self.booster.inplace_predict(features), np.float64))

    def save(self, path: Path) -> None:
        """See `Predictor`; JSON."""
        save_booster(self.booster, path, FORMAT)

    @classmethod
    def load(cls, source: str | Path) -> XgboostPrograms:
        """See `Predictor`; none ship."""
        return cls(load_booster(source, FORMAT, cls.what))


class LightgbmPrograms(ProgramTrees):
    """Trees on the sums of the leaf vectors."""

    features = staticmethod(summed_program_features)
    format, names = "go_rl-programs-lightgbm", SUMMED_NAMES

    @classmethod
    def fit(
        cls, examples: ProgramExamples, config: BoostedConfig | None = None
    ) -> LightgbmPrograms:
        """Return trees that learned from examples; see `Predictor`."""
        rows = SummedKernels(cls.features(examples.inputs), examples.seconds)
        config = config or BoostedConfig(trees=600, learning_rate=0.05)
        return cls(BoostedTrees.fit(rows, config))

    def seconds_of(self, features: Float32[np.ndarray, "P F"]) -> Float64[np.ndarray, "P"]:
        """See `XgboostPrograms.seconds_of`."""
        assert self.trees is not None
        return self.trees.predict(features)


XGBOOST = "XGBoost"
TREE_RIVALS = (XGBOOST, "LightGBM")


def tree_rival(
    name: str, trees: int, seed: int = 0
) -> Callable[[ProgramExamples], XgboostPrograms | LightgbmPrograms]:
    """Return what fits one of `TREE_RIVALS` to examples."""
    if name == XGBOOST:
        return partial(XgboostPrograms.fit, config=XgboostConfig(trees, seed=seed))
    config = BoostedConfig(trees=trees, learning_rate=0.05, seed=seed)
    return partial(LightgbmPrograms.fit, config=config)
