"""`Placed`: a plan's devices as sinks read them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Int, Int64

from go_rl.core import Hardware, OpGraph, Plan, SplitError
from go_rl.graphs.cutting.layer_blocks import (
    BEFORE,
    LayerBlocks,
    Part,
    layer_blocks,
    path_of,
    scope_path,
)
from go_rl.plans.legal import require_plan_of

BY_MODULE = ("huggingface", "gguf")
"""Forms of models whose nodes are modules themselves."""


@dataclass(frozen=True, eq=False)
class Placed:
    """A legal plan of a graph of ``N`` nodes."""

    sink: str
    """Name of the sink, for messages."""
    graph: OpGraph
    hardware: Hardware
    device: Int64[np.ndarray, "N"]
    """[N] device of each node."""
    fixed: Bool[np.ndarray, "N"]
    """[N] whether the device matters: not of inputs and constants."""
    replicas: Mapping[int, tuple[int, ...]] = field(default_factory=dict)
    """Devices that compute a node as well, for each node that has such copies."""
    model: Path | None = None
    """ONNX file that the graph was read from, whose names of operators sinks write; None: they
    write those of the graph's nodes."""

    @cached_property
    def blocks(self) -> LayerBlocks:
        """Layers of the graph.

        Raises:
            SplitError: its names state none.
        """
        found = layer_blocks(self.graph)
        if found.count == 0:
            raise self.error(
                f"counts layers, and the node names of {self.graph.name!r} state none, such as "
                f"'layers.0/...'; sinks that name nodes instead: {self.naming_nodes}"
            )
        return found

    @cached_property
    def chain(self) -> list[int]:
        """[L + 2] device of what comes before the layers, of each layer, and of what comes behind:
        that of most of its nodes; an end without nodes has that of the layer beside it."""
        at, last = self.blocks.position, self.blocks.behind
        found = [self._usual((at == i) & self.fixed) for i in range(last + 1)]
        layers = [d for d in found[1:last] if d is not None]
        ends = {BEFORE: layers[0], last: layers[-1]}
        return [ends.get(i, layers[0]) if d is None else d for i, d in enumerate(found)]

    @property
    def naming_nodes(self) -> str:
        """Sinks that name nodes of this graph, whatever their names."""
        return "json, onnx, onnxruntime, openvino" if is_from_onnx(self.graph) else "json"

    def _usual(self, inside: Bool[np.ndarray, "N"]) -> int | None:
        devices = self.device[inside]
        return int(np.bincount(devices).argmax()) if devices.size else None

    def ascending(self, chain: list[int]) -> list[int]:
        """Return devices that must be stages in their order.

        Raises:
            SplitError: they go back.
        """
        for before, after in pairwise(chain):
            if after < before:
                raise self.error(
                    f"takes stages in the order of the layers, and the plan goes from device "
                    f"{before} back to {after}"
                )
        return chain

    def module(self, node: int) -> Part:
        """Return the module that a node is, or that it is in; a node outside all is its own."""
        name = self.graph.names[node]
        if self.graph.meta.get("format") in BY_MODULE:
            return path_of(name)
        return scope_path(name) or path_of(name)

    def modules_at(self, position: int) -> list[str]:
        """Return the modules with weights at an end of the chain, in topological order; where none
        has weights, all."""
        inside = (self.blocks.position == position) & self.fixed
        weighty = inside & (self.graph.weight_bytes > 0)
        nodes = np.flatnonzero(weighty if weighty.any() else inside)
        return list(dict.fromkeys(".".join(self.module(node)) for node in nodes.tolist()))

    def error(self, sentence: str) -> SplitError:
        """Return the error that says a sentence about the sink."""
        return SplitError(f"{self.sink} {sentence}")


def is_from_onnx(graph: OpGraph) -> bool:
    """Return whether a graph was read from an ONNX file, whose operators some sinks name."""
    return graph.meta.get("format") == "onnx"


def placed(sink: str, plan: Plan, graph: OpGraph, model: Path | None = None) -> Placed:
    """Return a plan's devices for a sink; ``model`` as in `Placed`.

    Raises:
        PlanError: the plan is a failure, or of another graph.
    """
    require_plan_of(plan, graph)
    device = plan.device.astype(np.int64)
    return Placed(sink, graph, plan.described_hardware, device, ~graph.is_fed, plan.replicas, model)


def placed_devices(
    sink: str, graph: OpGraph, hardware: Hardware, device: Int[np.ndarray, "N"]
) -> Placed:
    """Return [N] devices for a sink, as `placed` does for a plan."""
    return Placed(sink, graph, hardware, device.astype(np.int64), ~graph.is_fed)
