"""A tensor while a program is walked: its type, its producer, and the stored arrays in it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from go_rl.graphs.readers.tensor import Tensor


@dataclass(frozen=True)
class TorchValue:
    """A tensor, or a view of one."""

    tensor: Tensor
    num_bytes: float
    """Bytes that are read, or sent, for the whole of it: of an expanded tensor those that exist."""
    producer: int | None = None
    """Number of the producing node; None: a weight, or a value from outside a loop's body."""
    output: int = 0
    weights: Mapping[str, Tensor] = field(default_factory=dict)
    """Stored arrays by name, when the value is a weight."""
    strides: tuple[int, ...] | None = None
    """Elements between neighbours on each axis; None: not known, taken for contiguous."""
