"""`HeldWeights`: the weights that a device keeps for the nodes it runs, array by array.

Dimension letters: ``N`` nodes, ``A`` tied arrays, ``R`` pairs of a node and a tied array it reads.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float64, Int32, Int64


@dataclass(frozen=True, eq=False)
class HeldWeights:
    """Bytes of weights by node and by tied array. A device keeps one copy of each tied array that
    any of its nodes reads, and all own bytes of its nodes."""

    own: Float64[np.ndarray, "N"]
    """[N] bytes of arrays that no other node reads."""
    offsets: Int64[np.ndarray, "N+1"]
    """[N + 1] rows of `array`."""
    array: Int32[np.ndarray, "R"]
    """[R] tied arrays that each node reads."""
    tied: Float64[np.ndarray, "A"]
    """[A] bytes of each tied array."""

    @cached_property
    def reader(self) -> Int64[np.ndarray, "R"]:
        """[R] node of each entry of `array`."""
        return np.repeat(np.arange(len(self.own)), np.diff(self.offsets))

    @cached_property
    def first_reader(self) -> tuple[Int32[np.ndarray, "P"], Int64[np.ndarray, "P"]]:
        """Tied arrays that any node reads, ascending, and the first node that reads each."""
        arrays, first = np.unique(self.array, return_index=True)
        return arrays, self.reader[first]

    @cached_property
    def rounded_up(self) -> HeldWeights:
        """Return the weights in whole bytes, as an allocator counts them."""
        return replace(self, own=np.ceil(self.own), tied=np.ceil(self.tied))

    def arrays_of(self, here: Bool[np.ndarray, "N"]) -> Int32[np.ndarray, "P"]:
        """Return the tied arrays that marked nodes read, ascending."""
        return np.unique(self.array[here[self.reader]])

    def total(self, here: Bool[np.ndarray, "N"]) -> float:
        """Return the bytes that a device keeps which runs the marked nodes."""
        return float(self.own[here].sum() + self.tied[self.arrays_of(here)].sum())


def held_weights(
    weight_bytes: Float64[np.ndarray, "N"],
    tied_node: Int32[np.ndarray, "R"],
    tied_array: Int32[np.ndarray, "R"],
    tied_bytes: Float64[np.ndarray, "A"],
) -> HeldWeights:
    """Return the weights of nodes, some of which read tied arrays.

    Args:
        weight_bytes: [N] bytes of all arrays that a node reads; 0: it holds none, whatever it
            reads (weights that are streamed).
        tied_node: [R] nodes that read a tied array, ascending.
        tied_array: [R] the array.
        tied_bytes: [A] bytes of each tied array.
    """
    held = weight_bytes[tied_node] > 0
    node, array = tied_node[held], tied_array[held]
    shared = np.bincount(node, tied_bytes[array], minlength=len(weight_bytes))
    offsets = np.zeros(len(weight_bytes) + 1, np.int64)
    np.cumsum(np.bincount(node, minlength=len(weight_bytes)), out=offsets[1:])
    own = np.where(shared > 0, np.maximum(weight_bytes - shared, 0.0), weight_bytes)
    return HeldWeights(own, offsets, array, tied_bytes)
