"""`TensorReadings`: which edges of a graph carry the same tensor, and who reads it first."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import no_type_check

import numpy as np
from jaxtyping import Bool, Int64

from go_rl.core import OpGraph
from go_rl.core.compiled_struct import compiled

NOTHING = -1
"""Last tensor of a reader that has read none."""


@dataclass(frozen=True, eq=False)
class TensorReadings:
    """Edges of a graph by the tensor that they carry; a kernel reads a tensor once, however many of
    its nodes do."""

    graph: OpGraph

    @cached_property
    def tensor(self) -> Int64[np.ndarray, "E"]:
        """[E] number of the tensor that each edge carries."""
        outputs = int(self.graph.edge_output.max(initial=0)) + 1
        key = self.graph.senders.astype(np.int64) * outputs + self.graph.edge_output
        return np.unique(key, return_inverse=True)[1].astype(np.int64)

    @property
    def num_tensors(self) -> int:
        """Number of tensors that are read."""
        return int(self._by_tensor.size and self.tensor[self._by_tensor[-1]] + 1)

    @cached_property
    def first(self) -> Bool[np.ndarray, "E"]:
        """[E] the first edge of each tensor."""
        return ~self.again(np.zeros(len(self.tensor), np.int64))

    def again(self, reader: Int64[np.ndarray, "E"]) -> Bool[np.ndarray, "E"]:
        """Return [E] edges whose tensor an earlier edge brings to the same reader.

        Args:
            reader: [E] number of who reads at the end of each edge, such as its kernel's leader.
        """
        last = np.full(int(reader.max(initial=0)) + 1, NOTHING, np.int64)
        found = np.empty(len(reader), np.bool_)
        _again(self._by_tensor, self.tensor, reader, last, found)
        return found

    @cached_property
    def _by_tensor(self) -> Int64[np.ndarray, "E"]:
        """[E] edges, those of each tensor in a row."""
        return np.argsort(self.tensor, kind="stable")


@compiled
@no_type_check
def _again(by_tensor, tensor, reader, last, found) -> None:
    for edge in by_tensor:
        found[edge] = last[reader[edge]] == tensor[edge]
        last[reader[edge]] = tensor[edge]
