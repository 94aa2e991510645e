"""Constraints of the user's own, written in Python and called after every propagation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool

from go_rl.core import Problem, SolverError


@runtime_checkable
class DomainView(Protocol):
    """View that a constraint may read: the current domains. `DomainStore` is one."""

    @property
    def problem(self) -> Problem:
        """The problem being solved."""
        ...

    def domains(self) -> Bool[np.ndarray, "N chips"]:
        """Return [N, chips] which chips each node may still take."""
        ...

    def chips(self, node: int) -> tuple[int, ...]:
        """Return the chips a node may still take, ascending; one of them: it is placed."""
        ...


@runtime_checkable
class CustomConstraint(Protocol):
    """A rule of the user's own.

    `prune` is called whenever the built-in rules have come to rest, until it removes nothing more.
    It must be sound (remove only what no plan that the user accepts has) and must notice a broken
    rule at the latest when every node is placed, by removing a chip that some node is on.

    At most three convolutions on a chip, and two nodes that must not share one::

        graph = problem.graph
        convolutions = np.flatnonzero(graph.kind == OpKind.CONVOLUTION)
        rules = [AtMostPerChip(convolutions, 3), DifferentChips(0, graph.num_nodes - 1)]
        samples = sample_with_constraints(problem, rules, batch=8, seed=1)

    The second one in full::

        class DifferentChips:
            def __init__(self, first, second):
                self.first, self.second = first, second

            def prune(self, view):
                for one, other in ((self.first, self.second), (self.second, self.first)):
                    if len(chips := view.chips(one)) == 1:
                        yield other, chips[0]
    """

    def prune(self, view: DomainView) -> Iterable[tuple[int, int]]:
        """Return pairs (node, chip): the node cannot be on the chip."""
        ...


@dataclass(frozen=True, eq=False)
class AtMostPerChip:
    """No chip takes more than ``limit`` of the given nodes."""

    nodes: Sequence[int] | np.ndarray
    """Node indices, each once."""
    limit: int
    """Most of them on one chip, >= 0."""

    def __post_init__(self) -> None:
        if self.limit < 0:
            raise SolverError(f"AtMostPerChip: limit must be >= 0, not {self.limit}")

    def prune(self, view: DomainView) -> Iterable[tuple[int, int]]:
        """Full chips are taken from the nodes not yet placed; an overfull one from all."""
        nodes = np.asarray(self.nodes, np.int64)
        domains = view.domains()[nodes]
        placed = domains.sum(axis=1) == 1
        count = domains[placed].sum(axis=0)
        for chip in np.flatnonzero(count >= self.limit).tolist():
            rest = domains[:, chip] if count[chip] > self.limit else domains[:, chip] & ~placed
            yield from ((n, chip) for n in nodes[rest].tolist())


@dataclass(frozen=True)
class DifferentChips:
    """Two nodes must not share a chip."""

    first: int
    second: int

    def __post_init__(self) -> None:
        if self.first == self.second:
            raise SolverError(f"DifferentChips: node {self.first} is named twice")

    def prune(self, view: DomainView) -> Iterable[tuple[int, int]]:
        """The chip of the one that is placed is taken from the other."""
        for one, other in ((self.first, self.second), (self.second, self.first)):
            if len(chips := view.chips(one)) == 1:
                yield other, chips[0]
