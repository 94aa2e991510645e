"""Seconds of fused kernels: one launch, summed arithmetic, and only the traffic that remains."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64, Int64

from go_rl.core import Device, ProblemError
from go_rl.costs.models.cost_model import CostModel, GraphCostModel, Kernels
from go_rl.costs.models.profiled import Profiled
from go_rl.graphs.cutting.tensor_readings import TensorReadings


@dataclass(frozen=True, eq=False)
class FusedPrices:
    """`KernelPrices` by a `CostModel` that prices any kernel from its FLOP and bytes.

    A fused kernel reads each outside tensor once and writes only what leaves it; its kind is that
    of the node with most FLOP. It never costs more than its nodes one after the other, unless a
    cost model of kernels as graphs (`GraphCostModel`) predicts so.
    """

    nodes: Kernels
    """The unfused nodes."""
    base: Float64[np.ndarray, "K N"]
    """[K, N] their seconds on each device kind."""
    edge_bytes: Float64[np.ndarray, "E"]
    """[E] bytes that travel on each edge, in the hardware's number format."""
    model: CostModel
    devices: tuple[Device, ...]
    """Devices, one of each device kind."""

    def seconds(self, leader: Int64[np.ndarray, "N"]) -> Float64[np.ndarray, "K N"]:
        """Return [K, N] seconds on each device kind of the kernel of each leader; ``leader`` [N] is
        the lowest node of each node's kernel.

        Raises:
            ProblemError: nodes are fused, and the cost model knows single nodes only.
        """
        alone = np.bincount(leader, minlength=len(leader))
        fused = np.flatnonzero(alone > 1)
        if not fused.size:
            return self.base
        if isinstance(self.model, Profiled):
            raise ProblemError(
                f"graph {self.nodes.graph.name!r} brings measured seconds of single operators; "
                "fused kernels need a cost model that prices them: leave out the decision fusion"
            )
        heaviest = self._heaviest(leader)[fused]
        kernels = Kernels(
            graph=self.nodes.graph,
            kind=self.nodes.kind[heaviest],
            element_type=None
            if self.nodes.element_type is None
            else self.nodes.element_type[heaviest],
            flops=np.bincount(leader, self.nodes.flops, len(leader))[fused],
            bytes_accessed=self._bytes(leader)[fused],
            streamed_bytes=np.bincount(leader, self.nodes.streamed_bytes, len(leader))[fused],
            leader=leader,
            which=fused,
        )
        table = np.where(alone == 1, self.base, 0.0)
        able = np.isfinite(self.base)
        for row, device in enumerate(self.devices):
            table[row, fused] = self.model.seconds(kernels, device)
            if not self._is_of_graphs:
                apart = np.bincount(leader, np.where(able[row], self.base[row], 0.0), len(leader))
                table[row, fused] = np.minimum(table[row, fused], apart[fused])
        for row in np.flatnonzero(~able.all(axis=1)):
            table[row, leader[~able[row]]] = np.inf
        return table

    @cached_property
    def _is_of_graphs(self) -> bool:
        return isinstance(self.model, GraphCostModel)

    @cached_property
    def _by_flops(self) -> Int64[np.ndarray, "N"]:
        """[N] nodes by rising FLOP."""
        return np.argsort(self.nodes.flops, kind="stable")

    def _heaviest(self, leader: Int64[np.ndarray, "N"]) -> Int64[np.ndarray, "N"]:
        """[N] the node with most FLOP in each leader's kernel."""
        found = np.arange(len(leader))
        found[leader[self._by_flops]] = self._by_flops
        return found

    def _bytes(self, leader: Int64[np.ndarray, "N"]) -> Float64[np.ndarray, "N"]:
        """[N] bytes that the kernel of each leader reads and writes."""
        total = np.bincount(leader, self.nodes.bytes_accessed, len(leader))
        return np.maximum(total - self.readings.saved(leader, self.edge_bytes), 0.0)

    @cached_property
    def readings(self) -> TensorReadings:
        """Which edges carry the same tensor."""
        return TensorReadings(self.nodes.graph)
