"""`TunableNetwork`: a network that TVM can compile, and its operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np


@dataclass(frozen=True)
class ModelInput:
    """Operand of a network."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    """Element type by NumPy's name."""

    def random(self, rng: np.random.Generator) -> np.ndarray:
        """Return a random operand; whole numbers are 0 or 1, which any table of words, masks and
        segments has."""
        dtype = np.dtype(self.dtype)
        if np.issubdtype(dtype, np.floating):
            return rng.standard_normal(self.shape).astype(dtype)
        return rng.integers(0, 2, self.shape).astype(dtype)


@dataclass(frozen=True)
class Rival:
    """Another implementation of a network, which a worker loads from files and times beside it."""

    name: str
    """Name for people, such as ``ONNX Runtime``."""
    kind: Literal["onnx", "stablehlo"]
    """Format of the file."""
    path: str
    """Path of the model; ``main`` of StableHLO takes all arguments."""
    weights: str = ""
    """File of arrays, by the position of the argument that they are; "": there are none."""


@runtime_checkable
class TunableNetwork(Protocol):
    """A network with its weights, of fixed shapes."""

    @property
    def name(self) -> str:
        """Name for people."""
        ...

    @property
    def inputs(self) -> tuple[ModelInput, ...]:
        """Operands that the compiled network is called with, in order."""
        ...

    def relax(self) -> Any:
        """Return a module of TVM's Relax whose function ``main`` has weights as constants.

        Raises:
            MissingDependencyError: TVM is not installed.
            TuningError: an operator cannot be translated; it is named.
        """
        ...

    def unfixed_shape(self) -> str:
        """Return where a shape is first not fixed, for a message: an input or the result of a node;
        "": nowhere that is known."""
        ...

    def rivals(self, folder: Path) -> tuple[list[Rival], list[str]]:
        """Write other implementations into a folder; returns those that can be timed here, and a
        sentence for each that cannot."""
        ...

    def results(self, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Return what the network computes, by another implementation than TVM's."""
        ...
