"""`StageCosts`: what blocks, copies and tensors cost the chips and links of a ring.

The objective at the level of blocks, for the exact models. ``M`` blocks, ``k`` chips.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float64, Int, Int64

from go_rl.core import Problem
from go_rl.core.graph.heads_tails import sums_before
from go_rl.core.problem import REPLICATE_SHARE
from go_rl.solvers.replication import shares_device
from go_rl.solvers.ring_instance import RingInstance

ROUNDING = 1e-9
"""Relative slack between our sum of a node's ancestors and another's."""

FIRST_CHIP = -1
"""Entry of `Copies.blocks` for a copied node that nobody reads: it stays on chip 0."""


@dataclass(frozen=True, eq=False)
class Copies:
    """Replicated nodes with the same consumers: present wherever one of these blocks is."""

    blocks: tuple[int, ...]
    seconds: Float64[np.ndarray, "k"]
    """[k] their work on each chip."""


@dataclass(frozen=True)
class Tensors:
    """Results of one block with the same readers: they cross all links up to the furthest one."""

    block: int
    readers: tuple[int, ...]
    bytes: float


@dataclass(frozen=True, eq=False)
class StageCosts:
    """The objective of a ring instance."""

    seconds: Float64[np.ndarray, "k M"]
    """[k, M] work of each block on each chip; inf: the chip cannot run it."""
    copies: tuple[Copies, ...]
    tensors: tuple[Tensors, ...]
    bandwidth: float
    latency: float

    @property
    def total(self) -> float:
        """All work on the slowest chip kind, one presence of each node, seconds."""
        finite = np.where(np.isfinite(self.seconds), self.seconds, 0.0)
        return float(finite.max(axis=0).sum() + sum(c.seconds.max() for c in self.copies))

    def value(self, chip: Int[np.ndarray, "M"], traffic: bool = True) -> float:
        """T_max of [M] chips: the busiest chip or link, seconds an iteration."""
        chips = len(self.seconds)
        load = np.zeros(chips)
        np.add.at(load, chip, self.seconds[chip, np.arange(len(chip))])
        for group in self.copies:
            for c in {0 if b == FIRST_CHIP else int(chip[b]) for b in group.blocks}:
                load[c] += group.seconds[c]
        if not traffic:
            return float(load.max())
        crossing = np.zeros(chips)
        for t in self.tensors:
            crossing[chip[t.block] : max(chip[r] for r in t.readers)] += t.bytes
        busy = np.where(crossing > 0, crossing / self.bandwidth + self.latency, 0.0)
        return float(max(load.max(), busy.max()))


def stage_costs(instance: RingInstance) -> StageCosts:
    """Return the costs of an instance's blocks."""
    problem, blocks = instance.problem, instance.num_blocks
    home = ~instance.replicated
    seconds = np.zeros((len(problem.seconds), blocks))
    for kind, row in enumerate(problem.seconds):
        np.add.at(seconds[kind], instance.block_of[home], row[home])
    links = problem.hardware.links
    return StageCosts(
        seconds=seconds[problem.device_kind],
        copies=_copies(instance),
        tensors=_tensors(problem, instance.block_of),
        bandwidth=links.bandwidth,
        latency=links.latency_seconds,
    )


def holds_with_fewer_copies(instance: RingInstance) -> bool:
    """Whether a bound over plans that copy all of `replicated` holds for every plan.

    Nodes that could be copied but are kept at home may fill a chip that would be skipped. Without
    them the chips above move down one, which costs nothing when all chips are alike, no node is
    pinned and not all chips are asked for. Other nodes that a plan may copy could mend a triangle.
    """
    problem = instance.problem
    if not problem.rules.replicate:
        return True
    alike = len(set(problem.hardware.devices)) == 1
    mended = problem.rules.triangle and bool(other_copies(instance).any())
    return alike and not problem.fixed and not problem.all_chips and not mended


def weights_of_homes(instance: RingInstance) -> Int64[np.ndarray, "G"]:
    """Return [G] bytes of what blocks share, that which copied nodes need left out."""
    held, size = instance.problem.held_weights, instance.net.group_bytes.copy()
    size[len(held.tied) :] = 0
    size[held.arrays_of(instance.replicated)] = 0
    return size


def other_copies(instance: RingInstance) -> Bool[np.ndarray, "N"]:
    """Return [N] nodes outside `replicated` that a plan may copy to their readers all the same:
    cheap with all their ancestors, but with large weights, say, or pinned."""
    problem, graph = instance.problem, instance.problem.graph
    if not problem.rules.replicate:
        return np.zeros(graph.num_nodes, np.bool_)
    offsets, edges = graph.predecessors
    work = np.where(np.isfinite(problem.work), problem.work, 0.0)
    cone = sums_before(offsets.astype(np.int64), graph.senders[edges], work)
    read = np.bincount(graph.senders, minlength=graph.num_nodes) > 0
    limit = REPLICATE_SHARE * float(work.sum()) * (1 + ROUNDING)
    return (cone <= limit) & read & ~instance.replicated & ~shares_device(graph)


def _copies(instance: RingInstance) -> tuple[Copies, ...]:
    """Copied nodes with work, grouped by the blocks that need them."""
    problem = instance.problem
    offsets, edges = problem.graph.successors
    needed_by: dict[int, frozenset[int]] = {}
    groups: dict[frozenset[int], Float64[np.ndarray, "K"]] = {}
    for n in np.flatnonzero(instance.replicated)[::-1].tolist():
        readers = problem.graph.receivers[edges[offsets[n] : offsets[n + 1]]].tolist()
        sets = [needed_by.get(r, frozenset({int(instance.block_of[r])})) for r in readers]
        needed_by[n] = frozenset().union(*sets) if sets else frozenset({FIRST_CHIP})
        if problem.seconds[:, n].any():
            groups.setdefault(needed_by[n], np.zeros(len(problem.seconds)))
            groups[needed_by[n]] += problem.seconds[:, n]
    kinds = problem.device_kind
    return tuple(Copies(tuple(sorted(b)), work[kinds]) for b, work in groups.items())


def _tensors(problem: Problem, block_of: Int[np.ndarray, "N"]) -> tuple[Tensors, ...]:
    """Tensors that leave their block, with the same block and readers taken together."""
    graph = problem.graph
    readers: dict[tuple[int, int], set[int]] = {}
    size: dict[tuple[int, int], float] = {}
    edges = zip(
        graph.senders.tolist(),
        block_of[graph.receivers].tolist(),
        graph.edge_output.tolist(),
        problem.edge_bytes.tolist(),
        strict=True,
    )
    for sender, reader, output, volume in edges:
        if block_of[sender] >= 0:
            readers.setdefault((sender, output), set()).add(reader)
            size[sender, output] = max(size.get((sender, output), 0.0), volume)
    merged: dict[tuple[int, tuple[int, ...]], float] = {}
    for (sender, output), found in readers.items():
        block = int(block_of[sender])
        others = tuple(sorted(found - {block}))
        if others and size[sender, output] > 0:
            key = (block, others)
            merged[key] = merged.get(key, 0.0) + size[sender, output]
    return tuple(Tensors(block, others, volume) for (block, others), volume in merged.items())
