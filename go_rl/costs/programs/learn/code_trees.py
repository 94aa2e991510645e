"""`CodeTrees`: boosted trees on what the compiler makes of a program, for the least relative error.

Needs LightGBM, an optional extra: ``pip install 'go_rl[trees]'``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Float64, Int64

from go_rl.core import TrainingError
from go_rl.costs.learning.metrics import mape
from go_rl.costs.learning.predictor import Predictor
from go_rl.costs.learning.splits import by_task
from go_rl.costs.programs.learn.code_inputs import code_tree_features
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs
from go_rl.costs.trees.boosted import BoostedConfig, BoostedTrees, SummedKernels

CONFIG = BoostedConfig(trees=600, learning_rate=0.05, column_share=0.2)
FACTORS = np.exp(np.linspace(-0.5, 0.1, 61))
"""Factors by which predictions may be multiplied."""


@dataclass(frozen=True, eq=False)
class ProgramTrees(Predictor[ProgramExamples, ProgramInputs]):
    """Trees that learned the logarithm of the seconds. A kind of them says what `features` are, and
    how it is fitted."""

    trees: BoostedTrees | None

    what = BoostedTrees.what
    unit = "seconds"

    def __post_init__(self) -> None:
        self.check_fitted(self.trees is not None)

    @staticmethod
    @abstractmethod
    def features(inputs: ProgramInputs) -> Float32[np.ndarray, "P F"]:
        """Return one row for each program."""

    def predict(self, inputs: ProgramInputs) -> Float64[np.ndarray, "P"]:
        """Return [P] predictions."""
        return self._trees.predict(self.features(inputs))

    def save(self, path: Path) -> None:
        """Write the trees to a file, in LightGBM's own text."""
        self._trees.save(path)

    @classmethod
    def load(cls, source: str | Path) -> ProgramTrees:
        """Read a saved file; none ship with the package."""
        return cls(BoostedTrees.load(source))

    @property
    def _trees(self) -> BoostedTrees:
        assert self.trees is not None  # `check_fitted`
        return self.trees


class CodeTrees(ProgramTrees):
    """Trees that learned the logarithm of the seconds times a factor.

    The mean of logarithms is a median of seconds; the least mean *percentage* error wants less, as
    a program predicted too slow by a factor counts more than one predicted too fast by it. The
    factor is the best one on a fifth of the tasks, by trees that learned the others.
    """

    features = staticmethod(code_tree_features)

    @classmethod
    def fit(
        cls, examples: ProgramExamples, config: BoostedConfig | None = None, factor: bool = True
    ) -> CodeTrees:
        """Return trees that learned from examples; see `Predictor`.

        Args:
            examples: with loop nests.
            config: of the trees.
            factor: whether predictions are made smaller for the least percentage error.
        """
        features, config = cls.features(examples.inputs), config or CONFIG
        task = examples.inputs.task
        by = relative_factor(features, examples.seconds, task, config) if factor else 1.0
        return cls(BoostedTrees.fit(SummedKernels(features, by * examples.seconds), config))


def relative_factor(
    features: Float32[np.ndarray, "P F"],
    seconds: Float64[np.ndarray, "P"],
    task: Int64[np.ndarray, "P"],
    config: BoostedConfig,
) -> float:
    """Return the one of `FACTORS` by which predictions for other tasks have the least MAPE; 1 where
    there are too few tasks to judge."""
    try:
        split = by_task(task, config.seed)
    except TrainingError:
        return 1.0
    judged = np.concatenate([split.validation, split.test])
    trees = BoostedTrees.fit(SummedKernels(features[split.train], seconds[split.train]), config)
    found = trees.predict(features[judged])
    return float(FACTORS[np.argmin([mape(by * found, seconds[judged]) for by in FACTORS])])
