"""`FusionSpace`: fusions of one graph to be tried, all of them legal, as candidates of the
graph."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, cycle, islice

import numpy as np
from jaxtyping import Float32, Int64

from go_rl.core import OpGraph
from go_rl.costs.kernels.measure.sampling import LARGEST_PRIORITY, random_priorities
from go_rl.costs.kernels.residuals import compared_features
from go_rl.graphs.cutting.fusion import NO_FUSION, Fuser
from go_rl.graphs.cutting.kernel_set import KernelSet, cut_kernels
from go_rl.tuning.loop.nouns import Candidate

SHARES = (1.0, 0.8, 0.6, 0.4, 0.2)
"""Shares of the producers that may join their consumers, in random fusions, by turns."""
MUTATED = (0.02, 0.1)
"""Shares of the producers whose priority a mutation draws again, by turns; at least one."""
TRIES = 4
"""Draws for each distinct fusion that is asked for."""
ORIGIN, PRIORITY = "origin", "priority"
REMEMBERED = 256
"""Fusions that need not be made again of their candidates."""


@dataclass(frozen=True)
class Part:
    """Kernel of a fusion."""

    hash: str
    nodes: tuple[int, ...]
    """Nodes of the model's graph, ascending."""


@dataclass(frozen=True, eq=False)
class GraphFusion:
    """Partition of a graph's nodes into kernels."""

    graph: OpGraph
    priority: Int64[np.ndarray, "N"]
    """[N] priorities that the fusion was made of."""
    leader: Int64[np.ndarray, "N"]
    """[N] lowest node of each node's kernel."""
    origin: str
    """Origin of the fusion, such as ``default``."""

    @cached_property
    def key(self) -> str:
        """Key, equal for equal fusions."""
        return hashlib.sha256(self.leader.tobytes()).hexdigest()[:16]

    @cached_property
    def kernels(self) -> KernelSet:
        """Kernels as small graphs, by ascending leader."""
        return cut_kernels(self.graph, self.leader)[0]

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """Kernels by hash and nodes, by ascending leader."""
        busy = np.flatnonzero(~self.graph.is_fed)
        order = busy[np.argsort(self.leader[busy], kind="stable")]
        starts = np.flatnonzero(np.diff(self.leader[order])) + 1
        groups = np.split(order, starts) if len(order) else []
        nodes = [tuple(group.tolist()) for group in groups]
        return tuple(map(Part, self.kernels.hashes, nodes))


class FusionSpace:
    """Fusions of one graph (`go_rl.tuning.loop.nouns.CandidateSpace`)."""

    def __init__(self, graph: OpGraph) -> None:
        self.graph = graph
        self._fuser = Fuser(graph)
        self._able = np.flatnonzero(self._fuser.may_fuse)
        self._made: dict[str, GraphFusion] = {}

    @cached_property
    def default(self) -> GraphFusion:
        """Fusion of all that may fuse, from the results backwards, as XLA does."""
        return self._fused(np.ones(self.graph.num_nodes, np.int64), "default")

    @cached_property
    def none(self) -> GraphFusion:
        """Fusion with each operator by itself."""
        return self._fused(np.full(self.graph.num_nodes, NO_FUSION, np.int64), "none")

    def pool(self, count: int, rng: np.random.Generator) -> list[GraphFusion]:
        """Return at most ``count`` distinct fusions: the default, none, and random ones."""
        drawn = (self._random(share, rng) for share in cycle(SHARES))
        return _distinct(chain((self.default, self.none), drawn), count)

    def mutants(
        self, parents: Sequence[GraphFusion], count: int, rng: np.random.Generator
    ) -> list[GraphFusion]:
        """Return at most ``count`` distinct fusions that differ from some parent in few
        priorities."""
        if not (parents and len(self._able)):
            return []
        shares = cycle(MUTATED)
        return _distinct((self._mutant(p, next(shares), rng) for p in cycle(parents)), count)

    def write(self, fusion: GraphFusion) -> Candidate:
        """Return a fusion as a candidate."""
        if len(self._made) > REMEMBERED:
            self._made.clear()
        self._made[fusion.key] = fusion
        document = {ORIGIN: fusion.origin, PRIORITY: fusion.priority.tolist()}
        return Candidate(fusion.key, document)

    def read(self, candidate: Candidate) -> GraphFusion:
        """Return the fusion that a candidate is."""
        if candidate.key in self._made:
            return self._made[candidate.key]
        priority = np.array(candidate.document[PRIORITY], np.int64)
        return self._fused(priority, candidate.document[ORIGIN])

    def draw(self, count: int, rng: np.random.Generator) -> list[Candidate]:
        """Return up to ``count`` distinct fusions, random but for the first two."""
        return [self.write(fusion) for fusion in self.pool(count, rng)]

    def neighbour(self, candidate: Candidate, rng: np.random.Generator) -> Candidate | None:
        """Return a fusion that differs in few priorities; None: none was found."""
        drawn = self.mutants([self.read(candidate)], 2, rng)
        others = [fusion for fusion in drawn if fusion.key != candidate.key]
        return self.write(others[0]) if others else None

    def features(self, candidates: Sequence[Candidate]) -> Float32[np.ndarray, "S numbers"]:
        """Return [S, numbers] the features of their kernels, summed."""
        kernels = (self.read(candidate).kernels for candidate in candidates)
        return np.array([compared_features(each).sum(axis=0) for each in kernels], np.float32)

    def _random(self, share: float, rng: np.random.Generator) -> GraphFusion:
        count = self.graph.num_nodes
        return self._fused(random_priorities(count, share, rng), f"random {share:g}")

    def _mutant(self, parent: GraphFusion, share: float, rng: np.random.Generator) -> GraphFusion:
        size = max(1, round(share * len(self._able)))
        which = rng.choice(self._able, size, replace=False)
        priority = parent.priority.copy()
        fuse = rng.random(size) < 0.5
        drawn = rng.integers(NO_FUSION + 1, LARGEST_PRIORITY, size)
        priority[which] = np.where(fuse, drawn, NO_FUSION)
        return self._fused(priority, "mutant")

    def _fused(self, priority: Int64[np.ndarray, "N"], origin: str) -> GraphFusion:
        device = np.zeros((1, len(priority)), np.int64)
        leader = self._fuser.leaders(priority[None], device)[0]
        return GraphFusion(self.graph, priority, leader, origin)


def _distinct(
    drawn: Iterable[GraphFusion] | Iterator[GraphFusion], count: int
) -> list[GraphFusion]:
    found: dict[str, GraphFusion] = {}
    for fusion in islice(drawn, TRIES * count):
        found.setdefault(fusion.key, fusion)
        if len(found) == count:
            break
    return list(found.values())
