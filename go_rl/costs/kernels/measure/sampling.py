"""Choosing kernels of a model to be measured: distinct ones, from several random fusions."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Int64

from go_rl.core import OpGraph
from go_rl.costs.timing.config import SamplingConfig
from go_rl.graphs.cutting.fusion import NO_FUSION, Fuser
from go_rl.graphs.cutting.kernel_set import KernelSet, cut_kernels, join_kernels

LARGEST_PRIORITY = 1_000_000


@dataclass(frozen=True, eq=False)
class SampledKernels:
    """Kernels of one model."""

    kernels: KernelSet
    nodes: tuple[tuple[int, ...], ...]
    """Nodes of the model's graph that make up each kernel."""


def sample_kernels(
    graph: OpGraph, config: SamplingConfig, known: Collection[str] = ()
) -> SampledKernels | None:
    """Return distinct kernels, as many of each fusion as there are; None: no new one.

    Args:
        graph: of a model.
        config: how many, and how large.
        known: hashes of kernels that are left out.
    """
    seen = set(known)
    found: list[tuple[KernelSet, list[tuple[int, ...]]]] = []
    for i, share in enumerate(config.fusions):
        rng = np.random.default_rng((config.seed, i))
        priority = random_priorities(graph.num_nodes, share, rng)
        leader = Fuser(graph).leaders(priority[None], np.zeros_like(priority)[None])[0]
        kernels, leaders = cut_kernels(graph, leader)
        quota = _quota(config, i, sum(len(nodes) for _, nodes in found))
        which = _chosen(kernels, config, seen, quota, rng)
        if len(which):
            members = [tuple(np.flatnonzero(leader == leaders[k]).tolist()) for k in which]
            found.append((kernels.take(which), members))
            seen.update(kernels.hashes[k] for k in which)
    if not found:
        return None
    nodes = tuple(nodes for _, members in found for nodes in members)
    return SampledKernels(join_kernels([kernels for kernels, _ in found]), nodes)


def _quota(config: SamplingConfig, turn: int, taken: int) -> int:
    """Quota of one fusion: the rest, shared by the fusions to come."""
    return -(-(config.kernels - taken) // (len(config.fusions) - turn))


def random_priorities(count: int, share: float, rng: np.random.Generator) -> Int64[np.ndarray, "N"]:
    """Return [count] priorities for `Fuser`: a share of the nodes joins its consumers, in random
    order."""
    priority = rng.integers(NO_FUSION + 1, LARGEST_PRIORITY, count)
    priority[rng.random(count) >= share] = NO_FUSION
    return priority


def _chosen(
    kernels: KernelSet,
    config: SamplingConfig,
    seen: Collection[str],
    count: int,
    rng: np.random.Generator,
) -> Int64[np.ndarray, "J"]:
    """Kernels that are small enough, distinct and not seen, ascending."""
    hashes = kernels.hashes
    first = dict(zip(reversed(hashes), range(kernels.num_kernels - 1, -1, -1), strict=True))
    small = _small(kernels, config)
    able = [k for hash_, k in first.items() if small[k] and hash_ not in seen]
    return np.sort(rng.permutation(np.array(able, np.int64))[:count])


def _small(kernels: KernelSet, config: SamplingConfig) -> Bool[np.ndarray, "K"]:
    graph, count = kernels.graph, kernels.num_kernels
    flops = np.bincount(kernels.kernel, graph.flops, count)
    size = np.bincount(kernels.kernel, graph.output_bytes + graph.weight_bytes, count)
    return (flops <= config.most_flops) & (size <= config.most_bytes)
