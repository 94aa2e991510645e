"""`ProgramTrees`: boosted trees on one row of features of a program, by LightGBM."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Float64

from go_rl.costs.learning.predictor import Predictor
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs
from go_rl.costs.trees.boosted import BoostedTrees


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
        """See `Predictor`."""
        return self._trees.predict(self.features(inputs))

    def save(self, path: Path) -> None:
        """See `Predictor`; LightGBM's own text."""
        self._trees.save(path)

    @classmethod
    def load(cls, source: str | Path) -> ProgramTrees:
        """See `Predictor`; none ship."""
        return cls(BoostedTrees.load(source))

    @property
    def _trees(self) -> BoostedTrees:
        assert self.trees is not None  # `check_fitted`
        return self.trees
