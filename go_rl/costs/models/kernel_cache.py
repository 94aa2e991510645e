"""Shared by cost models of kernels as graphs: cutting kernels, and a cache of their prices."""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float64, Int64, UInt64

from go_rl.core import NO_DIM, Device, HardwareError, OpGraph, OpKind, ProblemError
from go_rl.core.graph.op_kind import IS_FREE
from go_rl.costs.models.cost_model import Kernels
from go_rl.graphs.cutting.kernel_set import KernelSet, cut_kernels

KernelSeconds = Callable[[KernelSet], Float64[np.ndarray, "K"]]


class KernelCache:
    """Seconds by the canonical hash of kernels, so that equal ones are priced once; and hashes by
    the nodes that share a kernel, so that each is cut once."""

    def __init__(self) -> None:
        self._known: dict[str, float] = {}
        self._graphs: WeakKeyDictionary[OpGraph, _Cut] = WeakKeyDictionary()

    def seconds(self, kernels: Kernels, price: KernelSeconds) -> Float64[np.ndarray, "K"]:
        """Return [K] seconds; ``price`` is asked for the distinct kernels that are new."""
        cut = self._graphs.setdefault(kernels.graph, _Cut(kernels.graph.num_nodes))
        new, found = cut.new(kernels)
        if new is not None:
            first = {h: k for k, h in enumerate(new.hashes) if h not in self._known}
            if first:
                asked = new.take(np.array(sorted(first.values()), np.int64))
                self._known |= dict(zip(asked.hashes, price(asked).tolist(), strict=True))
        cut.known |= found
        return np.array([0.0 if h is None else self._known[h] for h in cut.hashes(kernels)])

    def hashes(self, kernels: Kernels) -> list[str | None]:
        """Return [K] hashes of kernels that were priced; None: costs nothing."""
        return self._graphs[kernels.graph].hashes(kernels)


class _Cut:
    """The kernels of a graph that were cut: their hashes, by which nodes they have."""

    def __init__(self, num_nodes: int) -> None:
        words = np.random.default_rng(0).integers(0, 2**64, (num_nodes, 2), np.uint64)
        self._words: UInt64[np.ndarray, "N 2"] = words
        """[N, 2] random; a kernel is identified by the sum of its nodes' words."""
        self.known: dict[bytes, str | None] = {}
        """Hashes of kernels that were priced; None: preloaded, and costs nothing."""

    def new(self, kernels: Kernels) -> tuple[KernelSet | None, dict[bytes, str | None]]:
        """Return the kernels that are not known yet, and what is to be known of them."""
        leader, which, keys = self._told(kernels)
        new = {int(w): key for w, key in zip(which, keys, strict=True) if key not in self.known}
        if not new:
            return None, {}
        cut, leaders = cut_kernels(kernels.graph, leader)
        asked = np.flatnonzero(np.isin(leaders, list(new)))
        found: dict[bytes, str | None] = dict.fromkeys(new.values())
        if not asked.size:
            return None, found
        taken = cut.take(asked)
        of = [new[node] for node in leaders[asked].tolist()]
        return taken, found | dict(zip(of, taken.hashes, strict=True))

    def hashes(self, kernels: Kernels) -> list[str | None]:
        """Return [K] hashes of kernels that were priced; None: costs nothing."""
        free = IS_FREE[kernels.kind].tolist()
        keys = self._told(kernels)[2]
        return [None if f else self.known[key] for f, key in zip(free, keys, strict=True)]

    def _told(
        self, kernels: Kernels
    ) -> tuple[Int64[np.ndarray, "N"], Int64[np.ndarray, "K"], list[bytes]]:
        """[N] leaders, [K] which of them are asked for, and the identities of their kernels."""
        leader, which = kernels.leaders, kernels.asked
        sums = np.zeros_like(self._words)
        np.add.at(sums, leader, self._words)
        return leader, which, sums[which].view("V16").ravel().tolist()


def with_streaming(
    seconds: Float64[np.ndarray, "K"], kernels: Kernels, device: Device
) -> Float64[np.ndarray, "K"]:
    """Return [K] seconds on a device that fetches weights from the host meanwhile: what kernels
    take whose weights lie in its memory, or the fetching where that takes longer."""
    streamed = kernels.streamed_bytes / device.host_bandwidth
    return np.where(streamed > 0, np.maximum(seconds, streamed + device.launch_seconds), seconds)


def check_target(model: str, target: str, device: Device) -> None:
    """Raise a `HardwareError` for a device on which a model's kernels were not measured."""
    if device.kind != target:
        raise HardwareError(
            f"the {model} cost model knows devices of kind {target!r}, where its kernels were "
            f"measured, not {device.kind!r}; take the hardware {target}, or --cost analytical"
        )


def check_shapes(model: str, graph: OpGraph) -> None:
    """Raise a `ProblemError` for a graph whose operators are known by their seconds only."""
    if graph.seconds and not graph.has_flops:
        raise ProblemError(
            f"cost model {model} predicts operators from their shapes and FLOP, and graph "
            f"{graph.name!r} brings only a profile of their seconds: take --cost profiled"
        )
    sized = (graph.output_bytes > np.maximum(graph.output_itemsize, 8.0)).any()
    if sized and (graph.output_shape == NO_DIM).all():
        raise ProblemError(
            f"cost model {model} predicts operators from their shapes, and the operators of graph "
            f"{graph.name!r} have none: take --cost analytical"
        )


def kernel_work(kernels: KernelSet) -> Kernels:
    """Return FLOP, traffic and kind of each kernel, as `go_rl.costs.models.fused.FusedPrices` has
    them.

    A kernel reads its operands and weights once (of a table the rows that it looks up) and writes
    its results; its kind is that of the operator with most FLOP.
    """
    graph, kernel, count = kernels.graph, kernels.kernel, kernels.num_kernels
    operand = graph.kind == OpKind.INPUT
    moved = graph.output_bytes * (operand | graph.is_output) + graph.weight_bytes_read
    order = np.argsort(np.where(operand, -1.0, graph.flops), kind="stable")
    kind = np.full(count, int(OpKind.OTHER), np.int8)
    kind[kernel[order]] = graph.kind[order]
    return Kernels(
        graph=graph,
        kind=kind,
        flops=np.bincount(kernel, graph.flops, count),
        bytes_accessed=np.bincount(kernel, moved, count),
        streamed_bytes=np.zeros(count),
    )
