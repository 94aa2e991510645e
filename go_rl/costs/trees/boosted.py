"""Boosted trees on summed features, a rival of the learned cost model (LightGBM, Ke et al. 2017).

Needs LightGBM, an optional extra: ``pip install 'go_rl[trees]'``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.core import CheckpointError
from go_rl.core.files.whole_file import write_text, writing
from go_rl.core.installed import optional_library
from go_rl.core.printable import reason
from go_rl.costs.kernels.features import KernelFeatures
from go_rl.costs.learning.predictor import Predictor


@dataclass(frozen=True)
class BoostedConfig:
    """Configuration of growing the trees."""

    trees: int = 2000
    """Trees at the learning rate below; more change little."""
    leaves: int = 31
    learning_rate: float = 0.03
    least_rows: int = 8
    """Least rows in a leaf."""
    row_share: float = 0.8
    column_share: float = 0.6
    """Share of the kernels and features that a tree sees."""
    ridge: float | None = None
    """Penalty on the coefficients of a linear model in each leaf, of the features on the way to
    it; None: a leaf holds one number."""
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
class SummedKernels:
    """``K`` measured kernels."""

    features: Float32[np.ndarray, "K S"]
    """[K, S] `summed_features`."""
    seconds: Float64[np.ndarray, "K"]
    weight: Float64[np.ndarray, "K"] | None = None
    """[K] how much the squared error of each counts; None: all alike."""


@dataclass(frozen=True, eq=False)
class BoostedTrees(Predictor[SummedKernels, Float32[np.ndarray, "K S"]]):
    """Trees that predict the log of the seconds."""

    booster: Any
    """LightGBM's; None: nothing."""

    what = "boosted trees"
    unit = "seconds"

    def __post_init__(self) -> None:
        self.check_fitted(self.booster is not None)

    @classmethod
    def fit(cls, examples: SummedKernels, config: BoostedConfig | None = None) -> BoostedTrees:
        """Return trees that learned the log of measured seconds."""
        return cls(_grown(examples, config or BoostedConfig(), None))

    def continued(self, examples: SummedKernels, config: BoostedConfig) -> BoostedTrees:
        """Return these trees and further ones, which learned what these miss on other examples."""
        return BoostedTrees(_grown(examples, config, self.booster))

    def predict(self, inputs: Float32[np.ndarray, "K S"]) -> Float64[np.ndarray, "K"]:
        """Return [K] seconds of `summed_features`."""
        if not len(inputs):
            return np.zeros(0)  # which LightGBM refuses
        return np.exp(np.asarray(self.booster.predict(inputs), np.float64))

    @property
    def text(self) -> str:
        """The trees in LightGBM's own words."""
        return self.booster.model_to_string()

    @classmethod
    def from_text(cls, text: str) -> BoostedTrees:
        """Return the trees of a `text`.

        Raises:
            ValueError: it is none.
        """
        lightgbm = _lightgbm()
        try:
            return cls(lightgbm.Booster(model_str=text))
        except lightgbm.basic.LightGBMError as error:
            raise ValueError(error) from error

    def save(self, path: Path) -> None:
        """Write the trees to a file, in LightGBM's own text."""
        with writing(path, CheckpointError):
            write_text(path, self.text)

    @classmethod
    def load(cls, source: str | Path) -> BoostedTrees:
        """Read a saved file; none ship with the package."""
        try:
            return cls.from_text(Path(source).read_text())
        except (OSError, ValueError) as error:
            raise CheckpointError(
                f"{source}: is no file of {cls.what} ({reason(error)})"
            ) from error


def _grown(examples: SummedKernels, config: BoostedConfig, start: Any) -> Any:
    """LightGBM's trees, behind those of ``start`` if there are any."""
    lightgbm = _lightgbm()
    options = {
        "objective": "l2", "num_leaves": config.leaves, "learning_rate": config.learning_rate,
        "min_data_in_leaf": config.least_rows, "bagging_fraction": config.row_share,
        "bagging_freq": 1, "feature_fraction": config.column_share, "seed": config.seed,
        "deterministic": True, "force_row_wise": True, "verbosity": -1,
    }  # fmt: skip
    if config.ridge is not None:
        options |= {"linear_tree": True, "linear_lambda": config.ridge}
    target = np.log(examples.seconds)
    data = lightgbm.Dataset(
        examples.features, target, weight=examples.weight, params={"verbosity": -1}
    )
    return lightgbm.train(options, data, num_boost_round=config.trees, init_model=start)


def _lightgbm() -> Any:
    return optional_library("lightgbm", "boosted trees need LightGBM: pip install 'go_rl[trees]'")
