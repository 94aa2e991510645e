"""State while an ONNX model is completed: types, constants, settings and findings."""

from __future__ import annotations

from collections import ChainMap
from dataclasses import dataclass, field

import numpy as np
import onnx

from go_rl.core.errors import ReadError


class MissingShapeError(ReadError):
    """A shape is absent from the file and inference was not allowed."""


@dataclass(frozen=True)
class Scope:
    """State at one point of the traversal; subgraphs see their outer scope."""

    types: ChainMap[str, onnx.TypeProto] = field(default_factory=lambda: ChainMap())
    """Static types by tensor name."""
    constants: ChainMap[str, np.ndarray] = field(default_factory=lambda: ChainMap())
    """Small constant arrays by tensor name."""

    def child(self) -> Scope:
        """Return a scope for a subgraph."""
        return Scope(self.types.new_child(), self.constants.new_child())


@dataclass(frozen=True)
class Completion:
    """Settings and findings of one completion."""

    opsets: dict[str, int]
    """Opset version by domain."""
    trips: dict[str, int]
    """Counts that the user gave, by name of the node: trips of a `Loop`, words of a text."""
    infer: bool
    """Whether ONNX's C++ inference may be called."""
    unknown_as_bytes: bool
    """Guess the sizes of results that cannot be inferred."""
    trip_count: int | None = None
    """Trips of every loop that depends on data and is not in `trips`."""
    notes: list[str] = field(default_factory=list)
    """Sentences about approximations."""
    guessed: dict[str, str] = field(default_factory=dict)
    """Results whose sizes are guessed, with the operator type of what produces them."""
    uncertain: set[str] = field(default_factory=set)
    """Results whose sizes are guessed or rest on a guess."""


@dataclass(frozen=True)
class FileFacts:
    """Facts about tensors in one graph of the file."""

    types: dict[str, onnx.TypeProto]
    """Declared types by name, static or not."""
    readers: dict[str, list[onnx.NodeProto]]
    """Nodes by the names they read; empty unless sizes may be guessed."""
