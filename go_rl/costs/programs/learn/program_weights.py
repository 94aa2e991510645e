"""`load_program_weights`: the one reader of all predictors of tensor programs, by what a file says
it is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64

from go_rl.core import CheckpointError, TrainingError
from go_rl.core.files.paths import user_cache
from go_rl.core.files.shipped import shipped_or_given
from go_rl.core.hardware.processor import own_target
from go_rl.costs.learning.predictor import Predictor
from go_rl.costs.programs.learn.code_trees import (
    CodeTrees,
    MachineTrees,
    ProgramTrees,
    devices_told,
)
from go_rl.costs.programs.learn.examples import ProgramExamples, ProgramInputs
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner
from go_rl.costs.programs.learn.weights_file import KIND, SHIPPED
from go_rl.runtime.array_file import read_parameters
from go_rl.runtime.saved_model import FORMAT

LoadedPrograms = ProgramPredictor | ProgramTrees | TransferTuner
KINDS: Mapping[str, type[ProgramPredictor] | type[ProgramTrees] | type[TransferTuner]]
KINDS = MappingProxyType({
    KIND.format: ProgramPredictor, CodeTrees.format: CodeTrees, MachineTrees.format: MachineTrees,
    TransferTuner.format: TransferTuner,
})  # fmt: skip
"""Predictors by the format of their files."""
WHAT, ENDING = "weights of tensor programs", ".npz"


@runtime_checkable
class FineTunable(Protocol):
    """Predictor that learns further from measured programs."""

    @property
    def unit(self) -> str:
        """Unit of predictions; see `Predictor`."""
        ...

    def knows(self, leaves: int) -> bool:
        """Return whether programs of this many leaves can be predicted."""
        ...

    def predict(self, inputs: ProgramInputs) -> Float64[np.ndarray, "P"]:
        """Return [P] seconds or scores: the smallest is the fastest."""
        ...

    def fine_tuned(self, examples: ProgramExamples) -> Predictor[ProgramExamples, ProgramInputs]:
        """Return what learned from these examples, too."""
        ...


def this_machine_weights() -> Path:
    """Return where ``go-rl calibrate --programs`` writes, and where ``predict --by programs`` and
    ``tune programs --guide`` read by default: in the user's cache folder, by processor."""
    return user_cache() / f"programs-{own_target()}.npz"


def shipped_devices(name: str) -> tuple[str, ...]:
    """Return the processors that trees learned which ship under a name; no library is needed.

    Raises:
        CheckpointError: no weights of this name ship.
    """
    path = shipped_or_given(name, SHIPPED, ENDING, WHAT, CheckpointError)
    return devices_told(read_parameters(path)[0])


def load_program_weights(source: str | Path) -> LoadedPrograms:
    """Read weights of ``go-rl train programs`` or ``go-rl calibrate --programs``, of any kind.

    Args:
        source: path, or the name of weights that ship.

    Raises:
        CheckpointError: there is no such file, it is damaged, of another version, or of something
            else.
        MissingDependencyError: it holds trees, and LightGBM is not installed.
    """
    path = shipped_or_given(source, SHIPPED, ENDING, WHAT, CheckpointError)
    named = str(read_parameters(path)[0].get(FORMAT))
    if named not in KINDS:
        raise CheckpointError(
            f"{path}: holds no {WHAT} but {named!r}; give a file of go-rl train programs or of "
            "go-rl calibrate --programs"
        )
    found = KINDS[named].load(path)
    assert isinstance(found, LoadedPrograms)
    return found


def predictor_of_seconds(source: str | Path) -> ProgramPredictor | ProgramTrees:
    """Read weights that predict seconds (`load_program_weights`).

    Raises:
        TrainingError: they rank the programs of one operator, and know no seconds.
    """
    found = load_program_weights(source)
    if isinstance(found, TransferTuner):
        raise TrainingError(
            f"{source}: weights of the transfer tuner rank programs of one operator and know no "
            "seconds; give weights of the models cdmpp, cdmpp-code, code-trees or machine-trees"
        )
    return found
