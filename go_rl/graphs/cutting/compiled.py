"""`CompiledNetwork`: a network as XLA compiles it for a CPU: kernels, what they compute again, and
convolutions that go to a library in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, Int64

from go_rl.core import OpGraph, OpKind
from go_rl.graphs.cutting.fusion import NO_FUSION, Fuser
from go_rl.graphs.cutting.kernel_set import KernelSet, cut_kernels
from go_rl.graphs.cutting.opcode_names import opcode
from go_rl.graphs.cutting.recomputed import recomputed_kernels


@dataclass(frozen=True, eq=False)
class CompiledNetwork:
    """``K`` kernels."""

    kernels: KernelSet
    """Kernels (K), none of which computes what another does."""
    nodes: tuple[tuple[int, ...], ...]
    """[K] nodes of each, ascending."""
    again: KernelSet | None
    """A: what kernels compute again (`go_rl.graphs.cutting.recomputed`); None: nothing."""
    again_in: Int64[np.ndarray, "A"]
    """[A] the kernel that does."""
    chains: tuple[tuple[int, ...], ...]
    """Kernels that are called in one piece (`go_rl.graphs.cutting.compiled`), ascending."""


def compiled_network(graph: OpGraph, fused: bool = True) -> CompiledNetwork:
    """Return a network as XLA compiles it.

    Args:
        graph: of a network, in topological order.
        fused: whether all that may share a kernel does, from the results backwards; else each
            operator is a kernel, and nothing is computed again.
    """
    leader = default_leaders(graph, fused)
    kernels, leaders = cut_kernels(graph, leader)
    nodes = tuple(tuple(np.flatnonzero(leader == each).tolist()) for each in leaders.tolist())
    if not fused:
        return CompiledNetwork(kernels, nodes, None, np.zeros(0, np.int64), ())
    again, owners = recomputed_kernels(graph, leader)
    chains = (np.searchsorted(leaders, chain_kernels(c, leader)) for c in library_chains(graph))
    return CompiledNetwork(
        kernels, nodes, again, np.searchsorted(leaders, owners),
        tuple(tuple(each.tolist()) for each in chains),
    )  # fmt: skip


def default_leaders(graph: OpGraph, fused: bool = True) -> Int64[np.ndarray, "N"]:
    """Return [N] nodes with equal numbers share a kernel, see `compiled_network`."""
    priority = np.full((1, graph.num_nodes), 1 if fused else NO_FUSION, np.int64)
    return Fuser(graph).leaders(priority, np.zeros_like(priority))[0]


def chain_kernel(
    graph: OpGraph, leader: Int[np.ndarray, "N"], chain: LibraryChain
) -> tuple[KernelSet, tuple[int, ...], str]:
    """Return the kernels that a chain takes the place of, the nodes of all of them, and the hash of
    a kernel that computes what they do.

    Args:
        graph: of a network.
        leader: [N] of its kernels.
        chain: of the graph.
    """
    replaced: Sequence[int] = chain_kernels(chain, leader)
    inside = np.isin(leader, replaced)
    kernels, leaders = cut_kernels(graph, leader)
    one, all_leaders = cut_kernels(graph, np.where(inside, replaced[0], leader))
    hash_ = one.hashes[int(np.searchsorted(all_leaders, replaced[0]))]
    parts = kernels.take(np.searchsorted(leaders, replaced))
    return parts, tuple(np.flatnonzero(inside).tolist()), hash_


TAKEN = (OpKind.CONVOLUTION, OpKind.ELEMENTWISE, OpKind.MOVEMENT)
"""Kinds that a sum takes in."""
SUMS = ("reduce_sum", "reduce_max", "reduce_min")
"""Operators that end a piece; no sum over windows does."""
MOST = 64
"""Operators of one piece."""
FEWEST = 2
"""Convolutions that make a piece of its own."""


@dataclass(frozen=True)
class LibraryChain:
    """Some convolutions, what lies between them, and the sum at their end."""

    nodes: tuple[int, ...]
    """Nodes of the chain, ascending."""
    convolutions: tuple[int, ...]
    """Convolutions of the nodes, ascending."""


def library_chains(graph: OpGraph, most: int | None = None) -> list[LibraryChain]:
    """Return the chains of a network, by their sums.

    Args:
        graph: in topological order.
        most: convolutions, the last ones, of each chain; None: as many as there are.
    """
    readers: list[list[int]] = [[] for _ in range(graph.num_nodes)]
    for sender, receiver in zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True):
        readers[sender].append(receiver)
    reading = sorted(set(graph.receivers.tolist()))
    sums = [node for node in reading if opcode(graph.op_type[node]) in SUMS]
    found = [_chain(graph, end, readers, most) for end in sums]
    return [each for each in found if len(each.convolutions) >= FEWEST]


def chain_kernels(chain: LibraryChain, leader: Int[np.ndarray, "N"]) -> tuple[int, ...]:
    """Return the leaders of the kernels that a chain takes the place of, ascending.

    Args:
        chain: of a graph.
        leader: [N] of the graph's nodes.
    """
    return tuple(sorted({int(leader[node]) for node in chain.nodes}))


def _chain(graph: OpGraph, end: int, readers: list[list[int]], most: int | None) -> LibraryChain:
    taken, convolutions = {end}, []
    for node in range(end - 1, -1, -1):
        if len(taken) == MOST or not _leads_only(graph, node, readers[node], taken):
            continue
        if graph.kind[node] == OpKind.CONVOLUTION:
            if len(convolutions) == most:
                continue
            convolutions.append(node)
        taken.add(node)
    return LibraryChain(tuple(sorted(taken)), tuple(sorted(convolutions)))


def _leads_only(graph: OpGraph, node: int, readers: list[int], taken: set[int]) -> bool:
    """Whether a node may be taken, and all its readers are."""
    able = int(graph.kind[node]) in map(int, TAKEN) and not graph.is_fed[node]
    return able and bool(readers) and not graph.is_output[node] and taken.issuperset(readers)
