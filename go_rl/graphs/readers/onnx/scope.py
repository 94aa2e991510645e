"""State while an ONNX model is completed: types, constants, settings and findings."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

import numpy as np
import onnx

from go_rl.core.errors import ReadError

Shape = tuple[int, ...]


class MissingShapeError(ReadError):
    """A shape is absent from the file and inference was not allowed."""


@dataclass(frozen=True)
class Scope:
    """State at one point of the traversal; subgraphs see their outer scope."""

    types: ChainMap[str, onnx.TypeProto] = field(default_factory=lambda: ChainMap())
    """Static types by tensor name."""
    constants: ChainMap[str, np.ndarray] = field(default_factory=lambda: ChainMap())
    """Small constant arrays by tensor name."""
    stored: ChainMap[str, None] = field(default_factory=lambda: ChainMap())
    """Names of the arrays that the file holds, whether their data is at hand or not."""
    sequences: ChainMap[str, tuple[Shape, ...]] = field(default_factory=lambda: ChainMap())
    """Shapes of the elements of each sequence whose number of elements is known."""
    producers: ChainMap[str, onnx.NodeProto] = field(default_factory=lambda: ChainMap())
    """Nodes by the names of their results."""
    failures: ChainMap[str, str] = field(default_factory=lambda: ChainMap())
    """Reason why a value is not known, by tensor name, where that is not for want of another
    value."""

    def child(self) -> Scope:
        """Return a scope for a subgraph."""
        return Scope(*(getattr(self, f.name).new_child() for f in fields(self)))


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
    trust_file: bool = True
    """Believe the shapes that the file states; not where the user sized its inputs, for an exporter
    states the shapes of the inputs that it tried."""
    trip_count: int | None = None
    """Trips of every loop whose count is not known and that is not in `trips`."""
    notes: list[str] = field(default_factory=list)
    """Sentences about approximations."""
    guessed: dict[str, str] = field(default_factory=dict)
    """Results whose sizes are guessed, with the operator type of what produces them."""
    uncertain: set[str] = field(default_factory=set)
    """Results whose sizes are guessed or rest on a guess."""

    def trial(self, **changes: bool) -> Completion:
        """Return the same settings with findings of its own, for a subgraph that may not stay."""
        return replace(self, notes=[], guessed={}, uncertain=set(self.uncertain), **changes)

    def keep(self, trial: Completion) -> None:
        """Take over the findings of a `trial`."""
        self.notes.extend(trial.notes)
        self.guessed.update(trial.guessed)
        self.uncertain.update(trial.uncertain)


@dataclass(frozen=True)
class FileFacts:
    """Facts about tensors in one graph of the file."""

    types: dict[str, onnx.TypeProto]
    """Declared types by name, static or not."""
    readers: dict[str, list[onnx.NodeProto]]
    """Nodes by the names they read; empty unless sizes may be guessed."""


CompleteGraph = Callable[[onnx.GraphProto, Scope, Completion, str], None]
"""Completes a subgraph in place."""


def subgraphs(node: onnx.NodeProto) -> dict[str, onnx.GraphProto]:
    """Return the graphs that a node holds, by attribute."""
    return {a.name: a.g for a in node.attribute if a.HasField("g")}
