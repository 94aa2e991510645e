"""Boosted trees that rank the candidates of one operator, learned while it is tuned (XGBoost).

The cost model of AutoTVM (Chen et al., "Learning to Optimize Tensor Programs", NeurIPS 2018,
section 3). Needs XGBoost, an optional extra: ``pip install 'go_rl[tuning]'``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.core import CheckpointError, TrainingError
from go_rl.core.config_checks import COUNT, PART, Range, check_ranges
from go_rl.core.files.strict_json import read_json
from go_rl.core.files.whole_file import write_text, writing
from go_rl.core.installed import optional_library
from go_rl.core.printable import reason
from go_rl.costs.learning.predictor import Predictor

TreeLoss = Literal["regression", "rank"]
FORMAT = "go_rl-candidate-ranks"


@dataclass(frozen=True)
class CandidateRanksConfig:
    """Configuration of growing the trees."""

    loss: TreeLoss = "regression"
    """``regression``: the squared error of the speed relative to the fastest candidate; ``rank``:
    the logistic loss of pairs."""
    trees: int = 60
    depth: int = 6
    learning_rate: float = 0.2
    column_share: float = 0.5
    """Share of the features that a tree sees."""
    bins: int = 64
    """Thresholds of a feature, at most."""
    pairs: int = 8
    """Pairs of a candidate with others, drawn for each tree of ``rank``."""
    seed: int = 0
    """Random seed."""

    def __post_init__(self) -> None:
        check_ranges(
            self, "candidate ranks", TrainingError, trees=COUNT, depth=COUNT, pairs=COUNT,
            bins=Range(2), learning_rate=PART, column_share=PART,
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class MeasuredCandidates:
    """``S`` candidates of one operator that were measured."""

    features: Float32[np.ndarray, "S K"]
    """[S, K] inputs of a cost model (`go_rl.tuning.loop.nouns.CandidateSpace`)."""
    seconds: Float64[np.ndarray, "S"]
    """[S] of one run; infinite for one that failed, which counts as infinitely slow."""

    @property
    def speed(self) -> Float64[np.ndarray, "S"]:
        """[S] relative to the fastest: seconds of the fastest over seconds, in [0, 1]."""
        return self.seconds.min() / self.seconds


@dataclass(frozen=True, eq=False)
class CandidateRanks(Predictor[MeasuredCandidates, Float32[np.ndarray, "S K"]]):
    """Trees that score the candidates of one operator: the smallest score is the fastest."""

    booster: Any
    """XGBoost's; None: nothing."""

    what = "candidate ranks"
    unit = "score"

    def __post_init__(self) -> None:
        self.check_fitted(self.booster is not None)

    @classmethod
    def fit(
        cls, examples: MeasuredCandidates, config: CandidateRanksConfig | None = None
    ) -> CandidateRanks:
        """Return trees that learned which of the candidates are fast.

        Raises:
            MissingDependencyError: XGBoost is not installed.
            TrainingError: no candidate has a time.
        """
        if not np.isfinite(examples.seconds).any():
            raise TrainingError(f"{cls.what}: no candidate has a time")
        xgboost, config = import_xgboost(), config or CandidateRanksConfig()
        rows = xgboost.DMatrix(examples.features, label=examples.speed, nthread=1)
        if config.loss == "rank":
            rows.set_info(qid=np.zeros(len(examples.seconds), np.int32))
        return cls(xgboost.train(_options(config), rows, num_boost_round=config.trees))

    def predict(self, inputs: Float32[np.ndarray, "S K"]) -> Float64[np.ndarray, "S"]:
        """Return [S] scores of candidates by their features: minus the relative speed, or what
        orders like it."""
        if not len(inputs):
            return np.zeros(0)
        return -np.asarray(self.booster.inplace_predict(inputs), np.float64)

    def save(self, path: Path) -> None:
        """Write the trees to a file, as JSON."""
        save_booster(self.booster, path, FORMAT)

    @classmethod
    def load(cls, source: str | Path) -> CandidateRanks:
        """Read a saved file; none ship with the package."""
        return cls(load_booster(source, FORMAT, cls.what))


def _options(config: CandidateRanksConfig) -> dict[str, Any]:
    shared = {
        "max_depth": config.depth, "eta": config.learning_rate, "tree_method": "hist",
        "max_bin": config.bins, "colsample_bytree": config.column_share, "nthread": 1,
        "seed": config.seed, "verbosity": 0,
    }  # fmt: skip
    if config.loss == "regression":
        return {**shared, "objective": "reg:squarederror"}
    return {
        **shared, "objective": "rank:pairwise", "lambdarank_pair_method": "mean",
        "lambdarank_num_pair_per_sample": config.pairs,
    }  # fmt: skip


def import_xgboost() -> Any:
    """Return the library.

    Raises:
        MissingDependencyError: it is not installed.
    """
    return optional_library(
        "xgboost", "boosted trees of programs need XGBoost: pip install 'go_rl[tuning]'"
    )


def save_booster(booster: Any, path: Path, kind: str) -> None:
    """Write a booster; a reader never sees half of it.

    Args:
        booster: XGBoost's.
        path: of the file.
        kind: the format, which `load_booster` asks for.

    Raises:
        CheckpointError: the file cannot be written.
    """
    model = json.loads(booster.save_raw("json").decode())
    with writing(path, CheckpointError):
        write_text(path, json.dumps({"format": kind, "model": model}))


def load_booster(source: str | Path, kind: str, what: str) -> Any:
    """Return the booster that `save_booster` wrote.

    Args:
        source: path of the file.
        kind: the format.
        what: the predictor in words, for messages.

    Raises:
        CheckpointError: there is no such file, it is damaged, or of another format.
        MissingDependencyError: XGBoost is not installed.
    """
    xgboost = import_xgboost()
    try:
        document = read_json(source)
        if not isinstance(document, dict) or document.get("format") != kind:
            raise ValueError(f"the format is not {kind}")
        booster = xgboost.Booster({"nthread": 1})
        booster.load_model(bytearray(json.dumps(document["model"]).encode()))
    except (OSError, KeyError, ValueError, xgboost.core.XGBoostError) as error:
        raise CheckpointError(f"{source}: is no file of {what} ({reason(error)})") from error
    return booster
