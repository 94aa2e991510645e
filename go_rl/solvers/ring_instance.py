"""`RingInstance`: a ring problem reduced to blocks, ready for compiled code.

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
from go_rl.core.graph.condensation import sorted_rows, topological_numbers
from go_rl.core.graph.heads_tails import counts_after
from go_rl.core.graph.intermediate_nodes import intermediate_triples
from go_rl.solvers.initial_domains import REPLICATED, Blocks, initial_domains, squeezed, too_few
from go_rl.solvers.network import Network
from go_rl.solvers.replication import replicated_nodes


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
    """Reason why no plan can exist, when that is plain before any search; else empty."""
    net: Network

    @property
    def num_blocks(self) -> int:
        """Number of blocks M."""
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
    replicated = replicated_nodes(problem) if replicated is None else replicated
    block_of, leader = _blocks(problem, replicated)
    weight, groups = _weights(problem, replicated, block_of, len(leader))
    graph = problem.graph
    ends = np.stack([block_of[graph.senders], block_of[graph.receivers]])
    ends = ends[:, (ends[0] != ends[1]) & (ends >= 0).all(axis=0)]
    ends = np.unique(ends, axis=1)
    preds = sorted_rows(ends[1], ends[0], len(leader))
    succs = sorted_rows(ends[0], ends[1], len(leader))
    blocks = Blocks(problem, block_of, leader, preds, succs, weight)
    start, conflict = initial_domains(blocks, no_skip=True)
    if problem.all_chips and len(leader) < problem.hardware.num_devices and not replicated.any():
        conflict = too_few(blocks)
    if problem.rules.triangle and problem.memory and not conflict:
        conflict = squeezed(blocks)
    net = _network(blocks, start, groups)
    return RingInstance(problem, replicated, block_of, leader, conflict, net)


def _network(
    blocks: Blocks, start: Int64[np.ndarray, "M"], groups: tuple[np.ndarray, np.ndarray, np.ndarray]
) -> Network:
    problem, weight = blocks.problem, blocks.weight
    group_ptr, group, group_bytes = groups
    triples = np.zeros((0, 3), np.int32)
    if problem.rules.triangle:
        triples = intermediate_triples(*blocks.preds, *blocks.succs)
    number = np.tile(np.arange(len(triples), dtype=np.int32), 3)
    triple_ptr, triple_of = sorted_rows(triples.T.reshape(-1), number, len(weight))
    memory = [min(c.memory_bytes, 2**62) for c in problem.hardware.devices]
    return Network(
        chips=problem.hardware.num_devices,
        pred_ptr=blocks.preds[0],
        pred=blocks.preds[1],
        succ_ptr=blocks.succs[0],
        succ=blocks.succs[1],
        triple=triples.astype(np.int64),
        triple_ptr=triple_ptr,
        triple_of=triple_of,
        weight=weight,
        heavy=np.argsort(-weight, kind="stable")[: np.count_nonzero(weight)],
        group_ptr=group_ptr,
        group=group,
        group_bytes=group_bytes,
        capacity=np.array(memory, np.int64),
        start=start,
        after=counts_after(*blocks.succs),
        triangle=problem.rules.triangle,
        all_chips=problem.all_chips,
        memory=problem.memory,
        spare=0,
    )


def without_copied(instance: RingInstance) -> RingInstance:
    """Return what is left when the copied nodes and all that they need are struck out.

    They might also stay at home and fill chips, so no-skip goes with them. Every legal plan of the
    problem, whatever it copies, is a solution: when there is none, the problem has no plan.
    """
    net = instance.net
    preds, succs = (net.pred_ptr, net.pred), (net.succ_ptr, net.succ)
    blocks = Blocks(instance.problem, instance.block_of, instance.leader, preds, succs, net.weight)
    start, conflict = initial_domains(blocks, no_skip=False)
    no_bytes = np.zeros_like(net.group_bytes)
    free = replace(net, start=start, spare=net.chips, all_chips=False, group_bytes=no_bytes)
    return replace(instance, conflict=conflict, net=free)


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
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Bytes of weights, rounded up: of each block's own, and of what blocks share (offsets,
    numbers, bytes of each): the tied arrays, then the own weights of copied nodes."""
    held = problem.held_weights.rounded_up
    own, copies = held.own.astype(np.int64), np.flatnonzero(replicated & (held.own > 0))
    weight = np.zeros(blocks, np.int64)
    np.add.at(weight, block_of[~replicated], own[~replicated])
    home = ~replicated[held.reader]
    pairs = set(zip(block_of[held.reader[home]].tolist(), held.array[home].tolist(), strict=True))
    copied = held.reader[~home].tolist(), held.array[~home].tolist()
    extra = copies.tolist(), range(len(held.tied), len(held.tied) + len(copies))
    for nodes, shared in (copied, extra):
        for node, needed in zip(nodes, shared, strict=True):
            pairs |= {(b, needed) for b in consumer_blocks(problem, block_of, node)}
    pairs_array = np.array(sorted(pairs), np.int64).reshape(-1, 2)
    group_ptr, group = sorted_rows(pairs_array[:, 0], pairs_array[:, 1], blocks)
    sizes = np.concatenate([held.tied.astype(np.int64), own[copies]])
    return weight, (group_ptr, group, sizes)


def consumer_blocks(problem: Problem, block_of: Int32[np.ndarray, "N"], node: int) -> set[int]:
    """Return the blocks that read a copied node, directly or through other copied nodes: their
    chips must hold a copy."""
    offsets, edges = problem.graph.successors
    stack, seen, found = [node], {node}, set()
    while stack:
        v = stack.pop()
        for w in problem.graph.receivers[edges[offsets[v] : offsets[v + 1]]].tolist():
            if block_of[w] != REPLICATED:
                found.add(int(block_of[w]))
            elif w not in seen:
                seen.add(w)
                stack.append(w)
    return found
