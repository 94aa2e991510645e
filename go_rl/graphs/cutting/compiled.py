"""`CompiledNetwork`: a network as XLA compiles it for a CPU: kernels, what they compute again, and
convolutions that go to a library in one piece."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int, Int64

from go_rl.core import OpGraph
from go_rl.graphs.cutting.fusion import NO_FUSION, Fuser
from go_rl.graphs.cutting.kernel_set import KernelSet, cut_kernels
from go_rl.graphs.cutting.library_chains import LibraryChain, chain_kernels, library_chains
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
    """Kernels that are called in one piece (`go_rl.graphs.cutting.library_chains`), ascending."""


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
