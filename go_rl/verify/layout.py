"""`Layout`: the device of every node and copy of a plan, and the tensors that must be transferred.

Data that the checker's rules read. Dimension letters: ``N`` nodes, ``D`` devices, ``C`` copies,
``I`` presences (homes, then copies), ``M`` needs (an edge seen from one presence of its consumer).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int, Int64

from go_rl.core.errors import PlanError
from go_rl.core.problem import Problem


@dataclass(frozen=True, eq=False)
class Layout:
    """The plan as the rules read it."""

    problem: Problem
    home: Int64[np.ndarray, "N"]
    """[N] device of each node."""
    copy_node: Int64[np.ndarray, "C"]
    copy_chip: Int64[np.ndarray, "C"]
    """[C] each further device that holds a copy of a node."""

    @cached_property
    def node(self) -> Int64[np.ndarray, "I"]:
        """[I] node of each presence."""
        return np.concatenate([np.arange(len(self.home)), self.copy_node])

    @cached_property
    def chip(self) -> Int64[np.ndarray, "I"]:
        """[I] device of each presence."""
        return np.concatenate([self.home, self.copy_chip])

    @cached_property
    def present(self) -> Bool[np.ndarray, "N D"]:
        """[N, D] whether the device holds the node, home or copy."""
        present = np.zeros((len(self.home), self.problem.hardware.num_devices), np.bool_)
        present[self.node, self.chip] = True
        return present

    @cached_property
    def needs(self) -> tuple[Int64[np.ndarray, "M"], Int64[np.ndarray, "M"]]:
        """Edge and consumer's device of each need that no presence on that device serves.

        Needs of homes come in the order of the edges, those of copies after them.
        """
        graph = self.problem.graph
        offsets, edge_ids = graph.predecessors
        into = [edge_ids[offsets[n] : offsets[n + 1]] for n in self.copy_node.tolist()]
        edges = np.concatenate([np.arange(graph.num_edges), *into]).astype(np.int64)
        chips = np.concatenate(
            [
                self.home[graph.receivers],
                np.repeat(self.copy_chip, np.array([len(i) for i in into], np.int64)),
            ]
        )
        unserved = ~self.present[graph.senders[edges], chips]
        return edges[unserved], chips[unserved]

    @cached_property
    def direct(self) -> Bool[np.ndarray, "D D"]:
        """[D, D] whether a tensor is sent from the home chip a to a consumer's chip c > a."""
        chips = self.problem.hardware.num_devices
        edges, c = self.needs
        a = self.home[self.problem.graph.senders[edges]]
        direct = np.zeros((chips, chips), np.bool_)
        direct[a[a < c], c[a < c]] = True
        return direct

    @cached_property
    def piece(self) -> Int64[np.ndarray, "N"]:
        """[N] unit of execution: all nodes of an accelerator (its index), or a CPU node (D + n)."""
        hardware = self.problem.hardware
        cpu = np.array([c.is_cpu for c in hardware.devices])
        alone = np.arange(len(self.home)) + hardware.num_devices
        return np.where(cpu[self.home], alone, self.home)

    def weights_on(self, device: int) -> list[tuple[str, float]]:
        """Nodes with the bytes of their weights on a device; a tied array counts once, for the
        first of its readers there."""
        graph, problem = self.problem.graph, self.problem
        here = np.flatnonzero(self.present[:, device]).tolist()
        held = {node: float(problem.weight_bytes[node]) for node in here}
        seen: set[int] = set()
        for node, array in zip(graph.tied_node.tolist(), graph.tied_array.tolist(), strict=True):
            if held.get(node, 0.0) > 0 and array in seen:
                held[node] = max(held[node] - float(problem.tied_bytes[array]), 0.0)
            elif held.get(node, 0.0) > 0:
                seen.add(array)
        return [(repr(graph.names[node]), size) for node, size in held.items()]

    def resident_weights(self, device: int) -> float:
        """Bytes of weights on a device, each tied array counted once."""
        return float(sum(size for _, size in self.weights_on(device)))

    def named(self, node: int) -> str:
        """The node's id in the source file and its home."""
        return f"{self.problem.graph.names[node]!r} ({self.device(int(self.home[node]))})"

    def device(self, index: int) -> str:
        """``chip 3`` on a ring, ``device 3`` elsewhere."""
        return f"{self.problem.objective.traits.device} {index}"


def read_layout(
    problem: Problem, device: Int[np.ndarray, "N"], replicas: Mapping[int, Sequence[int]]
) -> Layout:
    """Read a plan's devices and copies; a `PlanError` when they are of another graph."""
    nodes = problem.graph.num_nodes
    if device.shape != (nodes,):
        raise PlanError(f"device has shape {device.shape}; the graph has {nodes} nodes")
    pairs = [(node, chip) for node, chips in sorted(replicas.items()) for chip in chips]
    for node, _ in pairs:
        if not 0 <= node < nodes:
            raise PlanError(f"replicas: {node} is not the index of a node; use 0..{nodes - 1}")
    copies = np.array(pairs, np.int64).reshape(-1, 2)
    return Layout(problem, device.astype(np.int64), copies[:, 0], copies[:, 1])
