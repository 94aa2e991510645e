"""`LightgbmPrograms`: boosted trees on summed features, by LightGBM."""

from __future__ import annotations

from go_rl.costs.programs.learn.examples import ProgramExamples
from go_rl.costs.programs.learn.program_trees import ProgramTrees
from go_rl.costs.programs.learn.rivals.summed_features import summed_program_features
from go_rl.costs.trees.boosted import BoostedConfig, BoostedTrees, SummedKernels

CONFIG = BoostedConfig(trees=600, learning_rate=0.05)


class LightgbmPrograms(ProgramTrees):
    """Trees on the sums of the leaf vectors."""

    features = staticmethod(summed_program_features)

    @classmethod
    def fit(
        cls, examples: ProgramExamples, config: BoostedConfig | None = None
    ) -> LightgbmPrograms:
        """Return trees that learned from examples; see `Predictor`."""
        rows = SummedKernels(cls.features(examples.inputs), examples.seconds)
        return cls(BoostedTrees.fit(rows, config or CONFIG))
