"""Boosted trees on summed features, a rival of the learned cost model (LightGBM, Ke et al. 2017).

Needs LightGBM, an optional extra: ``pip install 'go_rl[trees]'``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.core import MissingDependencyError
from go_rl.predictors.kernels.features import KernelFeatures


@dataclass(frozen=True)
class BoostedConfig:
    """How the trees grow."""

    trees: int = 2000
    """With the learning rate below; more change little."""
    leaves: int = 31
    learning_rate: float = 0.03
    least_rows: int = 8
    """Kernels in a leaf."""
    row_share: float = 0.8
    column_share: float = 0.6
    """Share of the kernels and features that a tree sees."""
    seed: int = 0


def summed_features(features: KernelFeatures, opcodes: int) -> Float32[np.ndarray, "K S"]:
    """Return [K, S] features of each kernel, the sums of its nodes' and counts of its opcodes.

    Args:
        features: of the kernels.
        opcodes: numbers of opcodes, the unknown one aside.
    """
    count = features.num_kernels
    owner = np.repeat(np.arange(count), np.diff(features.first_node))
    sums = np.zeros((count, features.nodes.shape[1]), np.float32)
    np.add.at(sums, owner, features.nodes)
    codes = np.zeros((count, opcodes + 1), np.float32)
    np.add.at(codes, (owner, features.opcode), 1.0)
    return np.concatenate([features.whole, sums, codes], axis=1)


@dataclass(frozen=True, eq=False)
class BoostedTrees:
    """Trees that predict the log of the seconds."""

    booster: Any

    def seconds(self, summed: Float32[np.ndarray, "K S"]) -> Float64[np.ndarray, "K"]:
        """Return [K] predicted seconds of `summed_features`."""
        return np.exp(np.asarray(self.booster.predict(summed), np.float64))


def train_boosted(
    summed: Float32[np.ndarray, "K S"],
    seconds: Float64[np.ndarray, "K"],
    config: BoostedConfig | None = None,
) -> BoostedTrees:
    """Return trees that learned the log of measured seconds.

    Raises:
        MissingDependencyError: LightGBM is not installed.
    """
    try:
        import lightgbm
    except ImportError as error:
        raise MissingDependencyError(
            "boosted trees need LightGBM: pip install 'go_rl[trees]'"
        ) from error
    config = config or BoostedConfig()
    options = {
        "objective": "l2", "num_leaves": config.leaves, "learning_rate": config.learning_rate,
        "min_data_in_leaf": config.least_rows, "bagging_fraction": config.row_share,
        "bagging_freq": 1, "feature_fraction": config.column_share, "seed": config.seed,
        "deterministic": True, "force_row_wise": True, "verbosity": -1,
    }  # fmt: skip
    data = lightgbm.Dataset(summed, np.log(seconds), params={"verbosity": -1})
    return BoostedTrees(lightgbm.train(options, data, num_boost_round=config.trees))
