"""`CostModel`: seconds for a batch of kernels on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float64, Int8, Int64

from go_rl.core import Device, OpGraph


@dataclass(frozen=True, eq=False)
class Kernels:
    """A batch of ``K`` kernels in one hardware's number format."""

    graph: OpGraph
    """The graph that the kernels were cut from."""
    kind: Int8[np.ndarray, "K"]
    """[K] `OpKind` values."""
    flops: Float64[np.ndarray, "K"]
    """[K] FLOP of each kernel."""
    bytes_accessed: Float64[np.ndarray, "K"]
    """[K] bytes read and written in the device's own memory."""
    streamed_bytes: Float64[np.ndarray, "K"]
    """[K] weights that arrive from the host while the kernel runs."""
    leader: Int64[np.ndarray, "N"] | None = None
    """[N] nodes of the graph with equal numbers are one kernel; None: each node is its own."""
    which: Int64[np.ndarray, "K"] | None = None
    """[K] the number in ``leader`` of each kernel; None: kernel i is node i."""
    element_type: Int8[np.ndarray, "K"] | None = None
    """[K] `OpGraph.product_type` of the operator that gives the kind; None: all compute in float32,
    or in the hardware's number format."""

    @property
    def leaders(self) -> Int64[np.ndarray, "N"]:
        """[N] ``leader``; without one, each node itself."""
        return np.arange(self.graph.num_nodes) if self.leader is None else self.leader

    @property
    def asked(self) -> Int64[np.ndarray, "K"]:
        """[K] ``which``; without it, all nodes."""
        return np.arange(self.graph.num_nodes) if self.which is None else self.which


@runtime_checkable
class CostModel(Protocol):
    """Prices kernels; analytical, profiled, learned and measured models all implement it."""

    @property
    def name(self) -> str:
        """Name in plans and tables."""
        ...

    def seconds(self, kernels: Kernels, device: Device) -> Float64[np.ndarray, "K"]:
        """Return [K] seconds an iteration; inf marks a kernel that the device cannot run."""
        ...


@runtime_checkable
class GraphCostModel(CostModel, Protocol):
    """A cost model of kernels as graphs, with notes on the reliability of its prices."""

    def notes(self, kernels: Kernels, device: Device) -> tuple[str, ...]:
        """Return sentences about kernels that were priced; see `Problem.notes`."""
        ...
