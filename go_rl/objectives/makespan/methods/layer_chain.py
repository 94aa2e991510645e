"""`LayerChain`: the layers of a network one after the other, and cuts of them by work."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int64

from go_rl.graphs.cutting.layers import in_layers, layers
from go_rl.objectives.makespan.choices import NOWHERE
from go_rl.objectives.makespan.workspace import MakespanWorkspace


@dataclass(frozen=True, eq=False)
class LayerChain:
    """``L`` layers in the order of the network."""

    layer: Int64[np.ndarray, "N"]
    """[N] layer of each node, 0 to L - 1."""
    known: Bool[np.ndarray, "N"]
    """[N] nodes that certainly belong to their layer."""
    work: Float64[np.ndarray, "L"]
    """[L] seconds on the fastest device."""

    def cut(self, share: Float64[np.ndarray, "D"]) -> Int64[np.ndarray, "L"]:
        """Return [L] devices: consecutive layers, of which each device has its share of the work,
        as far as whole layers allow."""
        middle = (np.cumsum(self.work) - 0.5 * self.work) / max(float(self.work.sum()), 1e-300)
        ends = np.cumsum(share)[:-1] / share.sum()
        return np.searchsorted(ends, middle, side="right").astype(np.int64)

    def nodes(self, device: Int64[np.ndarray, "L"]) -> Int64[np.ndarray, "N"]:
        """Return [N] devices of nodes from [L] of layers; `NOWHERE` where no layer is known."""
        return np.where(self.known, device[self.layer], NOWHERE)


def layer_chain(workspace: MakespanWorkspace) -> LayerChain:
    """Return the layers by the scopes in nodes' names, or by the weights that nodes read; a graph
    with neither has a layer a node, of its forward nodes alone."""
    graph = workspace.problem.graph
    layer, known = layers(graph), in_layers(graph)
    if len(set(layer.tolist())) < 2:
        layer, known = np.arange(graph.num_nodes), ~graph.is_backward
    seconds = workspace.problem.seconds.min(axis=0)
    costs = known & np.isfinite(seconds) & ~graph.is_fed
    work = np.bincount(layer[costs], seconds[costs], int(layer.max(initial=0)) + 1).astype(float)
    return LayerChain(layer, known, work)
