"""`FusionSpace`: fusions of one graph to be tried, all of them legal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, cycle, islice

import numpy as np
from jaxtyping import Int64

from go_rl.core import OpGraph
from go_rl.kernels import NO_FUSION, Fuser, KernelSet, cut_kernels
from go_rl.measure.kernels.sampling import LARGEST_PRIORITY, random_priorities

SHARES = (1.0, 0.8, 0.6, 0.4, 0.2)
"""Of the producers that may join their consumers, in random fusions, by turns."""
MUTATED = (0.02, 0.1)
"""Of the producers whose priority a mutation draws again, by turns; at least one."""
TRIES = 4
"""Draws for each distinct fusion that is asked for."""


@dataclass(frozen=True)
class Part:
    """One kernel of a fusion."""

    hash: str
    nodes: tuple[int, ...]
    """Of the model's graph, ascending."""


@dataclass(frozen=True, eq=False)
class Fusion:
    """Which nodes share a kernel."""

    graph: OpGraph
    priority: Int64[np.ndarray, "N"]
    """[N] that it was made of."""
    leader: Int64[np.ndarray, "N"]
    """[N] lowest node of each node's kernel."""
    origin: str
    """How it came about, such as ``default``."""

    @cached_property
    def key(self) -> bytes:
        """Equal for equal fusions."""
        return self.leader.tobytes()

    @cached_property
    def kernels(self) -> KernelSet:
        """The kernels as small graphs, by ascending leader."""
        return cut_kernels(self.graph, self.leader)[0]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The same kernels, by hash and nodes."""
        busy = np.flatnonzero(~self.graph.is_fed)
        order = busy[np.argsort(self.leader[busy], kind="stable")]
        starts = np.flatnonzero(np.diff(self.leader[order])) + 1
        groups = np.split(order, starts) if len(order) else []
        nodes = [tuple(group.tolist()) for group in groups]
        return tuple(map(Part, self.kernels.hashes, nodes))


class FusionSpace:
    """Makes fusions of one graph."""

    def __init__(self, graph: OpGraph) -> None:
        self.graph = graph
        self._fuser = Fuser(graph)
        self._able = np.flatnonzero(self._fuser.may_fuse)

    @cached_property
    def default(self) -> Fusion:
        """All that may fuse, from the results backwards, as XLA does."""
        return self._fused(np.ones(self.graph.num_nodes, np.int64), "default")

    @cached_property
    def none(self) -> Fusion:
        """Each operator by itself."""
        return self._fused(np.full(self.graph.num_nodes, NO_FUSION, np.int64), "none")

    def pool(self, count: int, rng: np.random.Generator) -> list[Fusion]:
        """Return at most ``count`` distinct fusions: the default, none, and random ones."""
        drawn = (self._random(share, rng) for share in cycle(SHARES))
        return _distinct(chain((self.default, self.none), drawn), count)

    def mutants(
        self, parents: Sequence[Fusion], count: int, rng: np.random.Generator
    ) -> list[Fusion]:
        """Return at most ``count`` distinct fusions that differ from some parent in few
        priorities."""
        if not (parents and len(self._able)):
            return []
        shares = cycle(MUTATED)
        return _distinct((self._mutant(p, next(shares), rng) for p in cycle(parents)), count)

    def _random(self, share: float, rng: np.random.Generator) -> Fusion:
        count = self.graph.num_nodes
        return self._fused(random_priorities(count, share, rng), f"random {share:g}")

    def _mutant(self, parent: Fusion, share: float, rng: np.random.Generator) -> Fusion:
        size = max(1, round(share * len(self._able)))
        which = rng.choice(self._able, size, replace=False)
        priority = parent.priority.copy()
        fuse = rng.random(size) < 0.5
        drawn = rng.integers(NO_FUSION + 1, LARGEST_PRIORITY, size)
        priority[which] = np.where(fuse, drawn, NO_FUSION)
        return self._fused(priority, "mutant")

    def _fused(self, priority: Int64[np.ndarray, "N"], origin: str) -> Fusion:
        device = np.zeros((1, len(priority)), np.int64)
        leader = self._fuser.leaders(priority[None], device)[0]
        return Fusion(self.graph, priority, leader, origin)


def _distinct(drawn: Iterable[Fusion] | Iterator[Fusion], count: int) -> list[Fusion]:
    found: dict[bytes, Fusion] = {}
    for fusion in islice(drawn, TRIES * count):
        found.setdefault(fusion.key, fusion)
        if len(found) == count:
            break
    return list(found.values())
