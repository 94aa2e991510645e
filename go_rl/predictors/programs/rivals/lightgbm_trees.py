"""`LightgbmPrograms`: boosted trees on summed features, by LightGBM."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from go_rl.predictors.boosted import BoostedConfig, BoostedTrees, SummedKernels
from go_rl.predictors.predictor import Predictor
from go_rl.predictors.programs.examples import ProgramExamples, ProgramInputs
from go_rl.predictors.programs.rivals.summed_features import summed_program_features

CONFIG = BoostedConfig(trees=600, learning_rate=0.05)


@dataclass(frozen=True, eq=False)
class LightgbmPrograms(Predictor[ProgramExamples, ProgramInputs]):
    """Trees that learned the logarithm of the seconds."""

    trees: BoostedTrees | None

    what = BoostedTrees.what
    unit = "seconds"

    def __post_init__(self) -> None:
        self.check_fitted(self.trees is not None)

    @classmethod
    def fit(
        cls, examples: ProgramExamples, config: BoostedConfig | None = None
    ) -> LightgbmPrograms:
        """Return trees that learned from examples; see `Predictor`."""
        rows = SummedKernels(summed_program_features(examples.inputs), examples.seconds)
        return cls(BoostedTrees.fit(rows, config or CONFIG))

    def predict(self, inputs: ProgramInputs) -> Float64[np.ndarray, "P"]:
        """See `Predictor`."""
        return self._trees.predict(summed_program_features(inputs))

    def save(self, path: Path) -> None:
        """See `Predictor`; LightGBM's own text."""
        self._trees.save(path)

    @classmethod
    def load(cls, source: str | Path) -> LightgbmPrograms:
        """See `Predictor`; none ship."""
        return cls(BoostedTrees.load(source))

    @property
    def _trees(self) -> BoostedTrees:
        assert self.trees is not None  # `check_fitted`
        return self.trees
