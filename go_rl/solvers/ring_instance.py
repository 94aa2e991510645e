"""`RingInstance`: a ring problem reduced to blocks, ready for the kernels.

Nodes that must share a chip (colocation classes, and whatever a cycle through them ties together)
become one block. Replicated nodes leave the problem: their weights turn into weight groups of the
blocks that consume them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Int32, Int64
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from go_rl.core import FREE, Objective, Problem, ProblemError
from go_rl.simulate.bitset import ALL
from go_rl.simulate.ring.replication import replicated_nodes
from go_rl.solvers.graphs.condensation import sorted_rows, topological_numbers
from go_rl.solvers.graphs.heads_tails import counts_after, counts_before, sums_after, sums_before
from go_rl.solvers.graphs.intermediate_nodes import intermediate_triples
from go_rl.solvers.network import Network

REPLICATED = -1
"""`RingInstance.block_of`: the node is copied and belongs to no block."""


@dataclass(frozen=True, eq=False)
class RingInstance:
    """A ring problem at the level of ``M`` blocks."""

    problem: Problem
    replicated: Bool[np.ndarray, "N"]
    """[N] nodes copied to each consumer's chip."""
    block_of: Int32[np.ndarray, "N"]
    """[N] block of each node, or `REPLICATED`."""
    leader: Int32[np.ndarray, "M"]
    """[M] first node of each block: its row of the policy decides for all."""
    conflict: str
    """Why no plan can exist, when that is plain before any search; else empty."""
    net: Network

    @property
    def num_blocks(self) -> int:
        """M."""
        return len(self.leader)

    def members(self, block: int) -> Int64[np.ndarray, "members"]:
        """Return the nodes of a block."""
        return np.flatnonzero(self.block_of == block)


def ring_instance(
    problem: Problem, replicated: Bool[np.ndarray, "N"] | None = None
) -> RingInstance:
    """Reduce a ring problem.

    Args:
        problem: a problem with the ring's objective.
        replicated: [N] nodes to copy; None: those of `replicated_nodes`.

    Raises:
        ProblemError: the objective is not the ring's.
    """
    if problem.objective is not Objective.RING:
        raise ProblemError(f"the ring solver cannot work on objective {problem.objective}")
    graph = problem.graph
    replicated = replicated_nodes(problem) if replicated is None else replicated
    block_of, leader = _blocks(problem, replicated)
    blocks, chips = len(leader), problem.hardware.num_chips
    ends = np.stack([block_of[graph.senders], block_of[graph.receivers]])
    ends = ends[:, (ends[0] != ends[1]) & (ends >= 0).all(axis=0)]
    ends = np.unique(ends, axis=1)
    pred_ptr, pred = sorted_rows(ends[1], ends[0], blocks)
    succ_ptr, succ = sorted_rows(ends[0], ends[1], blocks)
    weight, group_ptr, group, group_bytes = _weights(problem, replicated, block_of, blocks)
    capacity = np.array([min(c.memory_bytes, 2**62) for c in problem.hardware.chips], np.int64)
    rows = (pred_ptr, pred), (succ_ptr, succ)
    start, conflict = _start(problem, block_of, leader, *rows, weight, no_skip=True)
    if problem.all_chips and blocks < chips and not replicated.any():
        conflict = _too_few(problem, block_of, leader)
    if problem.rules.triangle and problem.memory and not conflict:
        conflict = _squeezed(problem, leader, (pred_ptr, pred), (succ_ptr, succ), weight)
    triples = (
        intermediate_triples(pred_ptr, pred, succ_ptr, succ)
        if problem.rules.triangle
        else np.zeros((0, 3), np.int32)
    )
    triple_ptr, triple_of = sorted_rows(
        triples.T.reshape(-1), np.tile(np.arange(len(triples), dtype=np.int32), 3), blocks
    )
    return RingInstance(
        problem=problem,
        replicated=replicated,
        block_of=block_of,
        leader=leader,
        conflict=conflict,
        net=Network(
            chips=chips,
            pred_ptr=pred_ptr,
            pred=pred,
            succ_ptr=succ_ptr,
            succ=succ,
            triple=triples.astype(np.int64),
            triple_ptr=triple_ptr,
            triple_of=triple_of,
            weight=weight,
            heavy=np.argsort(-weight, kind="stable")[: np.count_nonzero(weight)],
            group_ptr=group_ptr,
            group=group,
            group_bytes=group_bytes,
            capacity=capacity,
            start=start,
            after=counts_after(succ_ptr, succ),
            triangle=problem.rules.triangle,
            all_chips=problem.all_chips,
            memory=problem.memory,
            spare=0,
        ),
    )


def without_copied(instance: RingInstance) -> RingInstance:
    """Return what is left when the copied nodes and all that they need are struck out.

    They might also stay at home and fill chips, so no-skip goes with them. Every legal plan of the
    problem, whatever it copies, is a solution: when there is none, the problem has no plan.
    """
    net = instance.net
    start, conflict = _start(
        instance.problem,
        instance.block_of,
        instance.leader,
        (net.pred_ptr, net.pred),
        (net.succ_ptr, net.succ),
        net.weight,
        no_skip=False,
    )
    return replace(
        instance,
        conflict=conflict,
        net=replace(
            net,
            start=start,
            spare=net.chips,
            all_chips=False,
            group_bytes=np.zeros_like(net.group_bytes),
        ),
    )


def _blocks(
    problem: Problem, replicated: np.ndarray
) -> tuple[Int32[np.ndarray, "N"], Int32[np.ndarray, "M"]]:
    """Number the blocks in topological order."""
    graph = problem.graph
    nodes = graph.num_nodes
    if not problem.has_colocation:
        block_of = np.where(replicated, REPLICATED, np.cumsum(~replicated) - 1).astype(np.int32)
        return block_of, np.flatnonzero(~replicated).astype(np.int32)
    tied_u, tied_v = _colocation_ring(graph.colocation)
    rows = np.concatenate([graph.senders, tied_u])
    columns = np.concatenate([graph.receivers, tied_v])
    matrix = coo_matrix((np.ones(len(rows)), (rows, columns)), (nodes, nodes))
    _, component = connected_components(matrix, directed=True, connection="strong")
    return _number_components(graph.senders, graph.receivers, component, replicated)


def _colocation_ring(colocation: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edges that tie the members of each class into a cycle, so that they form one component."""
    members = np.flatnonzero(colocation != FREE)
    members = members[np.argsort(colocation[members], kind="stable")]
    classes = colocation[members]
    first = np.r_[True, classes[1:] != classes[:-1]] if members.size else np.zeros(0, bool)
    starts = np.flatnonzero(first)
    following = np.r_[members[1:], members[:1]]
    last = np.r_[starts[1:] - 1, len(members) - 1] if members.size else np.zeros(0, np.int64)
    following[last] = members[starts]
    return members, following


def _number_components(
    senders: np.ndarray, receivers: np.ndarray, component: np.ndarray, replicated: np.ndarray
) -> tuple[Int32[np.ndarray, "N"], Int32[np.ndarray, "M"]]:
    """Number the components topologically; those that a replicated node leads get no number."""
    in_order = np.argsort(topological_numbers(senders, receivers, component))
    first = np.full(len(in_order), len(component))
    np.minimum.at(first, component, np.arange(len(component)))
    kept = in_order[~replicated[first[in_order]]]
    number = np.full(len(in_order), REPLICATED, np.int32)
    number[kept] = np.arange(len(kept))
    return number[component], first[kept].astype(np.int32)


def _weights(
    problem: Problem, replicated: np.ndarray, block_of: np.ndarray, blocks: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Own weights and weight groups of the blocks, in bytes rounded up."""
    graph = problem.graph
    size = np.ceil(problem.weight_bytes).astype(np.int64)
    own = (graph.weight_group == FREE) & ~replicated
    weight = np.zeros(blocks, np.int64)
    np.add.at(weight, block_of[own], size[own])
    tied = np.flatnonzero((graph.weight_group != FREE) & (size > 0))
    home = tied[~replicated[tied]]
    pairs = set(zip(block_of[home].tolist(), graph.weight_group[home].tolist(), strict=True))
    groups = int(graph.weight_group.max(initial=FREE)) + 1
    sizes = np.zeros(groups, np.int64)
    np.maximum.at(sizes, graph.weight_group[tied], size[tied])
    copies = np.flatnonzero(replicated & (size > 0))
    for extra, node in enumerate(copies, start=groups):
        shared = int(graph.weight_group[node])
        needed = extra if shared == FREE else shared
        pairs |= {(b, needed) for b in _consumer_blocks(problem, replicated, block_of, int(node))}
    pairs_array = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    group_ptr, group = sorted_rows(pairs_array[:, 0], pairs_array[:, 1], blocks)
    return weight, group_ptr, group, np.concatenate([sizes, size[copies]])


def _consumer_blocks(
    problem: Problem, replicated: np.ndarray, block_of: np.ndarray, node: int
) -> set[int]:
    """Blocks whose chip must hold a copy of a replicated node."""
    offsets, edges = problem.graph.successors
    stack, seen, found = [int(node)], {int(node)}, set()
    while stack:
        v = stack.pop()
        for e in edges[offsets[v] : offsets[v + 1]]:
            w = int(problem.graph.receivers[e])
            if not replicated[w]:
                found.add(int(block_of[w]))
            elif w not in seen:
                seen.add(w)
                stack.append(w)
    return found


def _start(
    problem: Problem,
    block_of: np.ndarray,
    leader: np.ndarray,
    preds: tuple[np.ndarray, np.ndarray],
    succs: tuple[np.ndarray, np.ndarray],
    weight: np.ndarray,
    no_skip: bool,
) -> tuple[Int64[np.ndarray, "M"], str]:
    """Initial domains from pins, from no-skip and, with memory, from the weights before and after
    each block."""
    chips = problem.hardware.num_chips
    everywhere = ALL if chips == 64 else (np.int64(1) << np.int64(chips)) - np.int64(1)
    start = np.full(len(leader), everywhere, np.int64)
    conflict = ""
    kept = np.flatnonzero(block_of >= 0)
    for c, kind in enumerate(problem.device_kind):
        out = block_of[kept[~np.isfinite(problem.seconds[kind, kept])]]
        start[out] &= ~(np.int64(1) << np.int64(c))
        if (start == 0).any() and not conflict:
            name = problem.graph.names[leader[int(np.flatnonzero(start == 0)[0])]]
            conflict = f"rule supported: no chip can run node {name!r}"
    for node, chip in problem.fixed.items():
        block = block_of[node]
        if block == REPLICATED:
            continue
        start[block] &= np.int64(1) << np.int64(chip)
        if start[block] == 0:
            conflict = (
                f"rule colocation: node {problem.graph.names[node]!r} is fixed to chip {chip}, "
                "and a node that must share its chip is fixed to another"
            )
    reach = len(leader) - counts_after(*succs)
    room_above = len(leader) - counts_before(*preds)
    for c in range(chips if no_skip else 0):
        out = reach < c
        if problem.all_chips:
            out = out | (room_above < chips - 1 - c)
        start[out] &= ~(np.int64(1) << np.int64(c))
    if (start == 0).any() and not conflict:
        name = problem.graph.names[int(leader[start == 0][0])]
        conflict = f"rule no-skip: too few nodes can fill the chips before and after node {name!r}"
    if problem.memory and weight.any():
        room = np.array([c.memory_bytes for c in problem.hardware.chips])
        before = sums_before(*preds, weight.astype(np.float64))
        after = sums_after(*succs, weight.astype(np.float64))
        for c in range(chips):
            fits = (before <= room[: c + 1].sum()) & (after <= room[c:].sum())
            start[~(fits & (weight <= room[c]))] &= ~(np.int64(1) << np.int64(c))
        if (start == 0).any() and not conflict:
            node = int(leader[start == 0][0])
            conflict = _no_room(problem, weight, int(block_of[node]), node)
    return start, conflict


def _no_room(problem: Problem, weight: np.ndarray, block: int, node: int) -> str:
    name, total = problem.graph.names[node], sum(c.memory_bytes for c in problem.hardware.chips)
    if weight.sum() > total:
        return (
            f"rule memory: all weights together are {weight.sum() / 1e6:.1f} MB, the chips of "
            f"{problem.hardware.name!r} hold {total / 1e6:.1f} MB"
        )
    return (
        f"rule memory: no chip can take node {name!r} with {weight[block] / 1e6:.1f} MB of weights "
        f"and all that must come before and after it ({weight.sum() / 1e6:.1f} MB in all, "
        f"{total / 1e6:.1f} MB of memory)"
    )


def _squeezed(
    problem: Problem,
    leader: np.ndarray,
    preds: tuple[np.ndarray, np.ndarray],
    succs: tuple[np.ndarray, np.ndarray],
    weight: np.ndarray,
) -> str:
    """An edge whose ends and all between them have more weights than two chips hold, in words."""
    room = 2 * max(c.memory_bytes for c in problem.hardware.chips)
    ends = np.repeat(np.arange(len(leader)), np.diff(succs[0]))
    if weight.sum() <= room or not ends.size:
        return ""
    own = weight.astype(np.float64)
    # |between| >= |after u| + |before v| - |all|
    between = sums_after(*succs, own)[ends] + sums_before(*preds, own)[succs[1]] - own.sum()
    worst = int(between.argmax())
    if between[worst] <= room:
        return ""
    u, v = (problem.graph.names[leader[b]] for b in (ends[worst], succs[1][worst]))
    return (
        f"rules triangle and memory: the edge {u!r} -> {v!r} ties all nodes between its ends to "
        f"two chips; their weights are at least {between[worst] / 1e6:.1f} MB, two chips hold "
        f"{room / 1e6:.1f} MB (the default rules lift this)"
    )


def _too_few(problem: Problem, block_of: np.ndarray, leader: np.ndarray) -> str:
    sizes = np.bincount(block_of[block_of >= 0])
    largest = int(sizes.argmax())
    names = [repr(problem.graph.names[n]) for n in np.flatnonzero(block_of == largest)[:3]]
    return (
        f"rule no-skip: colocation and acyclicity leave {len(leader)} blocks for "
        f"{problem.hardware.num_chips} chips; the largest ties {sizes[largest]} nodes together "
        f"({', '.join(names)}, ...)"
    )
