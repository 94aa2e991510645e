"""The ring solver's twin in python-constraint: all partitions of a small problem, plainly.

One variable a node, one constraint a rule. It shares nothing with the ring solver but the choice of
the nodes that are copied.
"""

from __future__ import annotations

import operator
from itertools import combinations, islice

import constraint
import numpy as np
from jaxtyping import Bool

from go_rl.core import FREE, Objective, Problem, SolverError
from go_rl.solvers.replication import place_copies, replicated_nodes

MANY = 100_000
"""Partitions after which `all_partitions` stops by default."""


def all_partitions(problem: Problem, limit: int = MANY) -> set[tuple[int, ...]]:
    """Return legal partitions of a small ring problem, each the chip of every node.

    Under the replicating rules the copied nodes (`replicated_nodes`) sit wherever their consumers
    do and are listed with the lowest of these chips.

    Args:
        limit: stop after this many.

    Raises:
        SolverError: the objective is not the ring's.
    """
    if problem.objective is not Objective.RING:
        raise SolverError(f"all_partitions works on objective ring, not {problem.objective}")
    copied = replicated_nodes(problem)
    nodes = np.flatnonzero(~copied).tolist()
    model = constraint.Problem()
    for node in nodes:
        pin = problem.fixed.get(node)
        model.addVariable(node, list(range(problem.hardware.num_chips)) if pin is None else [pin])
    edges = _edges(problem, copied)
    for u, v in edges:
        model.addConstraint(operator.le, [u, v])
    for u, v in _classmates(problem):
        model.addConstraint(operator.eq, [u, v])
    model.addConstraint(lambda *chips: _no_skip(problem, set(chips)), nodes)
    if problem.rules.triangle:
        model.addConstraint(
            lambda *chips: _no_triangle(dict(zip(nodes, chips, strict=True)), edges), nodes
        )
    if problem.memory:
        model.addConstraint(lambda *chips: _fits(problem, copied, nodes, chips), nodes)
    found = islice(model.getSolutionIter(), limit)
    return {tuple(_homes(problem, copied, solution)[0].tolist()) for solution in found}


def _edges(problem: Problem, copied: Bool[np.ndarray, "N"]) -> set[tuple[int, int]]:
    """Edges between nodes that are not copied; from a copied one data never leaves the chip."""
    pairs = zip(problem.graph.senders.tolist(), problem.graph.receivers.tolist(), strict=True)
    return {(u, v) for u, v in pairs if not copied[u]}


def _classmates(problem: Problem) -> list[tuple[int, int]]:
    """Pairs of nodes of one colocation class."""
    classes = problem.graph.colocation
    members = np.flatnonzero(classes != FREE).tolist()
    return [(u, v) for u, v in combinations(members, 2) if classes[u] == classes[v]]


def _no_skip(problem: Problem, used: set[int]) -> bool:
    """The used chips are 0..m; all of them with all_chips."""
    count = problem.hardware.num_chips if problem.all_chips else max(used) + 1
    return len(used) == count


def _no_triangle(chip: dict[int, int], edges: set[tuple[int, int]]) -> bool:
    """No chip edge a -> c beside a longer path from a to c: edge a -> b, then any path b ~> c."""
    joined = {(chip[u], chip[v]) for u, v in edges if chip[u] != chip[v]}
    paths = set(joined)
    for b in range(max(chip.values()) + 1):
        paths |= {(a, c) for a, x in paths if x == b for y, c in paths if y == b}
    return not any((a, b) in joined and (b, c) in paths for a, c in joined for _, b in joined)


def _fits(
    problem: Problem, copied: Bool[np.ndarray, "N"], nodes: list[int], chips: tuple[int, ...]
) -> bool:
    """Weights fit each chip, copies included, tied weights once."""
    _, present = _homes(problem, copied, dict(zip(nodes, chips, strict=True)))
    held = problem.held_weights
    return all(
        held.total((present >> c) & 1 == 1) <= chip.memory_bytes
        for c, chip in enumerate(problem.hardware.chips)
    )


def _homes(
    problem: Problem, copied: Bool[np.ndarray, "N"], solution: dict[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """[N] homes and [N] sets of chips of a solution."""
    device = np.zeros(problem.graph.num_nodes, np.int16)
    device[list(solution)] = list(solution.values())
    return place_copies(problem, copied, device)
