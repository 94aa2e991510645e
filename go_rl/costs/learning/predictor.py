"""`Predictor`: what every learner of seconds, ranks or corrections has in common."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Generic, Literal, TypeVar

import numpy as np
from jaxtyping import Float64

from go_rl.core import TrainingError

Examples = TypeVar("Examples")
Inputs = TypeVar("Inputs")
Unit = Literal["seconds", "score", "log ratio"]


class Predictor(ABC, Generic[Examples, Inputs]):
    """Abstract: what was learned from examples. `fit` and `load` make one, so that each can
    predict; to construct one that learned nothing is a `TrainingError`.

    An *example* is an input and what was measured of it: ``Examples`` holds many of both,
    ``Inputs`` holds ``R`` inputs alone.
    """

    what: ClassVar[str]
    """Kind of the file in words, for messages: ``kernel cost weights``."""
    unit: ClassVar[Unit]
    """Unit of predictions. ``seconds``: of one run; ``score``: of two candidates of one kernel, the
    smaller is faster; ``log ratio``: natural logarithm of measured over predicted seconds."""

    @classmethod
    @abstractmethod
    def fit(cls, examples: Examples) -> Predictor[Examples, Inputs]:
        """Return what is learned from examples; the same ones give the same. Subclasses add
        options, all of which have defaults.

        Raises:
            TrainingError: there are too few examples, or learning failed.
            MissingDependencyError: a library is not installed.
        """

    @abstractmethod
    def predict(self, inputs: Inputs) -> Float64[np.ndarray, "R"]:
        """Return [R] predictions, in `unit`; none of no inputs."""

    @abstractmethod
    def save(self, path: Path) -> None:
        """Write a file from which `load` makes an equal predictor; a reader never sees half of it.

        Raises:
            CheckpointError: the file cannot be written.
        """

    @classmethod
    @abstractmethod
    def load(cls, source: str | Path) -> Predictor[Examples, Inputs]:
        """Read what `save` wrote, by path or by the name of a file that ships.

        Raises:
            CheckpointError: there is no such file, it is damaged, or of another kind or version.
            MissingDependencyError: a library is not installed.
        """

    @classmethod
    def check_fitted(cls, learned: bool) -> None:
        """Raise a `TrainingError` unless something was learned."""
        if not learned:
            raise TrainingError(f"{cls.what}: nothing is learned yet; call fit or load")
