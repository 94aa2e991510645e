"""`MeanOfProcessors`: seconds of programs on a processor that trees did not learn."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from go_rl.costs.programs.learn.code_inputs import with_code
from go_rl.costs.programs.learn.code_trees import ProgramTrees
from go_rl.costs.programs.learn.examples import ProgramInputs
from go_rl.costs.programs.learn.predictor import ProgramPredictions, ProgramPredictor


@dataclass(frozen=True, eq=False)
class MeanOfProcessors:
    """Trees that are asked for a processor of which nothing was learned. A program's seconds are
    the geometric mean of those on all processors learned; its interval reaches from the lowest
    bound on any of them to the highest; and every program counts as unlike."""

    trees: ProgramTrees
    """Trees that name the processors learned (`ProgramTrees.devices`)."""

    def interval(self, inputs: ProgramInputs) -> ProgramPredictions:
        """Return predictions, bounds and flags; the spread is the deviation of the logarithms over
        the processors."""
        inputs = with_code(inputs)  # described once, however many processors there are
        each = [self.trees.interval(_on(inputs, device)) for device in self.trees.devices]
        logs = np.log([found.seconds for found in each])
        return ProgramPredictions(
            seconds=np.exp(logs.mean(axis=0)),
            low=np.min([found.low for found in each], axis=0),
            high=np.max([found.high for found in each], axis=0),
            spread=logs.std(axis=0),
            unlike=np.ones(inputs.num_programs, np.bool_),
        )

    def knows(self, leaves: int) -> bool:
        """Return whether programs of so many leaves can be predicted."""
        return self.trees.knows(leaves)


def for_device(
    predictor: ProgramPredictor | ProgramTrees, device: str
) -> ProgramPredictor | ProgramTrees | MeanOfProcessors:
    """Return what prices programs on a processor: the predictor itself, unless it is trees that
    name the processors learned and this one is none of them. CDMPP's networks read the processor's
    figures instead of its name."""
    if isinstance(predictor, ProgramTrees) and predictor.devices:
        return predictor if device in predictor.devices else MeanOfProcessors(predictor)
    return predictor


def _on(inputs: ProgramInputs, device: str) -> ProgramInputs:
    """The programs as if measured on a processor; the figures of their own stay."""
    return replace(inputs, targets=tuple(replace(each, device=device) for each in inputs.targets))
