"""`Measuring`: a cost model that compiles and times each kernel at its first use."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

from go_rl.core import Device
from go_rl.core.graph.op_kind import FREE_KINDS
from go_rl.costs.models import Kernels
from go_rl.graphs.cutting import cut_kernels
from go_rl.runtime.records import AS_IT_COMES
from go_rl.tuning.xla.budget import TuningBudget
from go_rl.tuning.xla.fusions import Part
from go_rl.tuning.xla.kernel_timer import KernelTimer


@dataclass(frozen=True, eq=False)
class Measuring:
    """`CostModel` of one graph on the machine that it runs on.

    A kernel that cannot be timed takes for ever, and so does one that is new when the time is over:
    simulators price it as its nodes one after the other (`go_rl.costs.models.fused`).
    """

    timer: KernelTimer
    budget: TuningBudget
    """Once it is over, nothing more is measured."""
    name: str = "measuring"
    _known: dict[tuple[int, ...], float] = field(default_factory=dict, repr=False)
    """Seconds by the nodes of a kernel."""

    def seconds(self, kernels: Kernels, device: Device) -> Float64[np.ndarray, "K"]:
        """Return [K] seconds, for any device."""
        wanted = _nodes(kernels)
        new = {nodes for nodes in wanted if nodes and nodes not in self._known}
        if new:
            for part in _parts(kernels, new):
                if self.budget.over:
                    break
                (record,) = self.timer.measure_together([(part, AS_IT_COMES)])
                self._known[part.nodes] = record.seconds or float("inf")
        return np.array([self._known.get(nodes, np.inf) if nodes else 0.0 for nodes in wanted])


def _nodes(kernels: Kernels) -> list[tuple[int, ...]]:
    """[K] the nodes of each kernel asked for that take time, ascending; none: it is free."""
    inside: dict[int, list[int]] = {}
    for node, leader in _busy(kernels):
        inside.setdefault(leader, []).append(node)
    which = range(kernels.graph.num_nodes) if kernels.which is None else kernels.which.tolist()
    free = np.isin(kernels.kind, [int(kind) for kind in FREE_KINDS]).tolist()
    return [() if f else tuple(inside.get(w, ())) for w, f in zip(which, free, strict=True)]


def _busy(kernels: Kernels) -> list[tuple[int, int]]:
    """Nodes other than inputs and constants, and their leaders."""
    busy = np.flatnonzero(~kernels.graph.is_fed)
    leader = busy if kernels.leader is None else kernels.leader[busy]
    return list(zip(busy.tolist(), leader.tolist(), strict=True))


def _parts(kernels: Kernels, new: set[tuple[int, ...]]) -> list[Part]:
    """The new kernels with their hashes."""
    leader = kernels.leader
    leader = np.arange(kernels.graph.num_nodes) if leader is None else leader
    cut, leaders = cut_kernels(kernels.graph, leader)
    place = {lead: k for k, lead in enumerate(leaders.tolist())}
    nodes = sorted(new)
    taken = cut.take(np.array([place[int(leader[each[0]])] for each in nodes], np.int64))
    return [Part(hash_, each) for hash_, each in zip(taken.hashes, nodes, strict=True)]
