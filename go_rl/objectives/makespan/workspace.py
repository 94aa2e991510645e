"""Workspace of makespan optimizers: pricer, fuser, the reference plan, a bound."""

from __future__ import annotations

from functools import cached_property, lru_cache

import numpy as np
from jaxtyping import Bool, Int, Int16, Int64

from go_rl.core import FREE, Plan, Problem, Status
from go_rl.core.decisions import Decisions, Legalized, Proposals, Scored
from go_rl.core.errors import name_difference, name_largest
from go_rl.core.evaluation import STATUS_CODES, Evaluation
from go_rl.graphs.cutting.fusion import Fuser
from go_rl.graphs.cutting.layers import layers
from go_rl.objectives.common.workspace import PlanningWorkspace
from go_rl.objectives.makespan.assignment import MakespanAssignment
from go_rl.objectives.makespan.bound import makespan_bound
from go_rl.objectives.makespan.choices import Choices, softly_placed
from go_rl.objectives.makespan.simulate.pricing import MakespanPricer

LEAST = 1e-300
"""Seconds below which logarithms are not taken."""


class MakespanWorkspace(PlanningWorkspace):
    """Pricer, fuser and reference plan of one makespan problem; parts are built when first used."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem

    @cached_property
    def pricer(self) -> MakespanPricer:
        """Seconds of plans."""
        return MakespanPricer(self.problem)

    @cached_property
    def fuser(self) -> Fuser:
        """Kernels from fusion priorities."""
        return Fuser(self.problem.graph)

    @property
    def num_nodes(self) -> int:
        """Number of nodes N."""
        return self.problem.graph.num_nodes

    @property
    def num_devices(self) -> int:
        """Number of devices D."""
        return self.problem.hardware.num_devices

    @cached_property
    def able(self) -> Bool[np.ndarray, "D N"]:
        """[D, N] whether a device can run a node."""
        return np.isfinite(self.problem.seconds)[self.problem.device_kind]

    @cached_property
    def pinned(self) -> Int16[np.ndarray, "N"]:
        """[N] device that a node must have, or `FREE`."""
        pinned = np.full(self.num_nodes, FREE, np.int16)
        pinned[list(self.problem.fixed)] = list(self.problem.fixed.values())
        colocation = self.problem.graph.colocation
        for node in np.flatnonzero((pinned != FREE) & (colocation != FREE)):
            pinned[colocation == colocation[node]] = pinned[node]
        return pinned

    @cached_property
    def class_leader(self) -> Int64[np.ndarray, "N"]:
        """[N] node that decides for each node's colocation class: the lowest, inputs and constants
        last, for nobody places these. Of a free node, itself."""
        graph, leader = self.problem.graph, np.arange(self.num_nodes)
        colocation, held = graph.colocation, np.flatnonzero(graph.colocation != FREE)
        held = held[np.argsort(graph.is_fed[held], kind="stable")]
        _, first, which = np.unique(colocation[held], return_index=True, return_inverse=True)
        leader[held] = held[first][which]
        return leader

    @cached_property
    def choices(self) -> Choices:
        """Devices allowed for each node, its colocation class and pins included."""
        leader, pinned = self.class_leader, self.pinned
        unable = np.zeros(self.able.shape, np.bool_)
        for row, able in zip(unable, self.able, strict=True):
            row[leader[~able]] = True
        devices = np.arange(self.num_devices)[:, None]
        allowed = ~unable[:, leader] & ((pinned == FREE) | (pinned == devices))
        return Choices(leader, allowed, self.problem.graph.is_fed)

    def decisions(
        self,
        device: Int[np.ndarray, "B N"],
        priority: Int[np.ndarray, "B N"] | None = None,
        fusion: Int[np.ndarray, "B N"] | None = None,
    ) -> Decisions:
        """Make proposals legal: pins and colocation hold, what is not decided is left out,
        fusion priorities become kernels.

        Args:
            device: [B, N].
            priority: [B, N] scheduling priorities, larger first.
            fusion: [B, N] fusion priorities; see `Fuser.leaders`.
        """
        decisions = self.problem.decisions
        placed = device[:, self.class_leader].astype(np.int16)
        placed = np.where(self.pinned != FREE, self.pinned, placed)
        leader = None
        if fusion is not None and "fusion" in decisions:
            leader = self.fuser.leaders(fusion, placed)
        ranked = None
        if priority is not None and "schedule" in decisions:
            ranked = priority.astype(np.int64)
        return Decisions(placed, ranked, leader)

    def on(self, device: Int16[np.ndarray, "B N"], like: Plan | None = None) -> Decisions:
        same = np.ones(device.shape, np.int64)
        order = None if like is None or like.priority is None else same * like.priority
        fused = like is None or like.fusion_group is not None
        return self.decisions(device, order, same if fused else None)

    def prepare(self) -> None:
        """Build what `legalize` needs: classes, pins, the fuser."""
        _ = self.infeasible, self.class_leader, self.pinned, self.fuser

    def legalize(self, proposals: Proposals, seed: int = 0) -> Legalized:
        """Make proposals legal through `decisions`; proposals without devices get the reference
        plan's. Nothing is drawn."""
        device = proposals.device
        if device is None:
            device = self.reference.device
        legal = self.decisions(device, proposals.priority, proposals.fusion)
        failure = self.infeasible
        status = Status.OK if failure is None else failure.status
        codes = np.full(len(legal), STATUS_CODES.index(status), np.int8)
        return Legalized(legal, codes, "" if failure is None else failure.detail)

    def assignment(self) -> MakespanAssignment:
        return MakespanAssignment(self, self.choices)

    def evaluate(self, decisions: Decisions) -> Scored:
        """Replay plans."""
        seconds, codes = self.pricer.price(decisions)
        return Scored(decisions, seconds, codes)

    def detail(self, decisions: Decisions, row: int = 0) -> Evaluation:
        """Replay one plan in full."""
        return self.pricer.evaluate(decisions, row)

    def with_copies(self, decisions: Decisions) -> Decisions:
        """Return the decisions: nothing is copied."""
        return decisions

    @property
    def target(self) -> float:
        return self.bound

    @cached_property
    def reference(self) -> Decisions:
        """The framework's own plan: one device if memory allows, else layers round-robin, softly
        placed; in topological order, nothing fused."""
        first = np.zeros((1, self.num_nodes), np.int64)
        alone = self.decisions(softly_placed(self.choices, first))
        if self.num_devices == 1 or self.evaluate(alone).ok[0]:
            return alone
        by_layer = layers(self.problem.graph) % self.num_devices
        return self.decisions(softly_placed(self.choices, by_layer[None]))

    @cached_property
    def reference_seconds(self) -> float:
        seconds = float(self.evaluate(self.reference).seconds[0])
        work = self.problem.seconds.min(axis=0)
        serial = float(work[np.isfinite(work)].sum())
        return max(seconds if np.isfinite(seconds) else serial, LEAST)

    @cached_property
    def bound(self) -> float:
        """A proven lower bound on the makespan of any plan; see `makespan_bound`."""
        return makespan_bound(self.problem, self.pricer.arrays, self.pinned)

    @cached_property
    def infeasible(self) -> Evaluation | None:
        """Evaluation that says why no placement exists, if that is easily proved, naming the node
        or the tensors; else None."""
        problem, graph = self.problem, self.problem.graph
        if (parted := self._parted_class()) is not None:
            return self.failed(Status.INFEASIBLE, parted)
        nowhere = np.flatnonzero(~self.able.any(axis=0) & ~graph.is_fed)
        if nowhere.size:
            name = graph.names[int(nowhere[0])]
            return self.failed(Status.UNSUPPORTED, f"no device can run node {name!r}")
        if (barred := self._barred_class()) is not None:
            return self.failed(Status.UNSUPPORTED, barred)
        if not problem.memory:
            return None
        room = np.array([device.memory_bytes for device in problem.hardware.devices])
        reads = np.bincount(graph.receivers, problem.edge_bytes, self.num_nodes)
        need = problem.weight_bytes.copy()
        if "fusion" not in problem.decisions:  # else operands and results may never be written
            need += np.where(graph.is_fed, 0.0, problem.output_bytes + reads)
        worst = int(np.argmax(need)) if len(need) else 0
        if len(need) and need[worst] > room.max():
            return self.failed(
                Status.INFEASIBLE,
                f"node {graph.names[worst]!r} alone needs {need[worst]:.6g} bytes (weights "
                f"{problem.weight_bytes[worst]:.6g}, results {problem.output_bytes[worst]:.6g}, "
                f"operands {reads[worst]:.6g}); the largest device has {room.max():.6g}",
            )
        weights = self._weights
        if (total := sum(size for _, size in weights)) > room.sum():
            named = [(f"the weights of {what}", size) for what, size in weights]
            return self.failed(
                Status.INFEASIBLE,
                f"the weights of {graph.name!r} take {total:.6g} bytes; all devices together have "
                f"{room.sum():.6g}; the largest: {name_largest(weights)}; "
                f"{name_difference(named, total - float(room.sum()))}",
            )
        return None

    @property
    def _weights(self) -> list[tuple[str, float]]:
        """Nodes with the bytes of their weights, tied arrays by their first reader."""
        names, held = self.problem.graph.names, self.problem.held_weights
        size, (arrays, first) = held.own.copy(), held.first_reader
        np.add.at(size, first, held.tied[arrays])
        return [(repr(names[n]), float(size[n])) for n in np.flatnonzero(size).tolist()]

    def _barred_class(self) -> str | None:
        """Say which nodes are pinned or colocated so that no device can run them, if any are."""
        graph, leader = self.problem.graph, self.class_leader
        barred = np.flatnonzero(~self.choices.allowed.any(axis=0) & ~graph.is_fed)
        if not barred.size:
            return None
        mates = np.flatnonzero((leader == leader[barred[0]]) & ~graph.is_fed)
        device = int(self.pinned[barred[0]])
        if device != FREE:
            node = int(mates[np.flatnonzero(~self.able[device, mates])[0]])
            return (
                f"node {graph.names[node]!r} ({graph.op_type[node]}) is pinned to device {device}, "
                f"a {self.problem.hardware.devices[device].kind}, which cannot run it"
            )
        some = ", ".join(f"{graph.names[n]!r} ({graph.op_type[n]})" for n in mates[:4])
        return (
            f"nodes {some} must share a device (colocation class {graph.colocation[barred[0]]}), "
            "and no device can run them all"
        )

    def _parted_class(self) -> str | None:
        """Say which pins contradict each other, if any do."""
        graph, seen = self.problem.graph, {}
        for node, device in sorted(self.problem.fixed.items()):
            label = int(graph.colocation[node])
            if label == FREE:
                continue
            first = seen.setdefault(label, node)
            if self.problem.fixed[first] != device:
                return (
                    f"nodes {graph.names[first]!r} and {graph.names[node]!r} must share a device "
                    f"(colocation class {label}) but are pinned to "
                    f"{self.problem.fixed[first]} and {device}"
                )
        return None


@lru_cache(maxsize=4)
def makespan_workspace(problem: Problem) -> MakespanWorkspace:
    """Return the workspace of a problem, shared by all optimizers that work on it."""
    return MakespanWorkspace(problem)
