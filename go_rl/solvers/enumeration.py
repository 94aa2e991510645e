"""Every legal partition of a small ring problem, by python-constraint: what proves that there is no
plan, says which rule forbids it, and which legal partition is nearest to a user's split.

One variable a node, one constraint a rule. It shares nothing with the ring solver but the choice of
the nodes that are copied.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import combinations, islice
from math import log10

import constraint
import numpy as np
from jaxtyping import Bool, Int16

from go_rl.core import FREE, Objective, Problem, SolverError
from go_rl.solvers.replication import place_copies, replicated_nodes

MANY = 100_000
"""Partitions after which `all_partitions` stops by default."""
LARGEST = 300_000
"""Assignments of a problem that are tried at most."""
RULES = ("fixed", "acyclic", "colocation", "no-skip", "triangle", "memory")
"""Rules that a partition obeys."""


@dataclass(frozen=True)
class Explanation:
    """Legal partitions of a problem beside a user's split."""

    partitions: int
    """Number of legal partitions."""
    moves: dict[int, int]
    """Chip of each node that another chip must hold in the legal partition nearest to the split
    (fewest nodes moved); empty where the split is legal, or nothing is."""
    blamed: tuple[str, ...]
    """Rules of which each, left out alone, would allow a partition; empty where some are legal."""


def explain_partition(problem: Problem, device: Int16[np.ndarray, "N"]) -> Explanation:
    """Return what is legal beside a split of a small ring problem, all partitions tried.

    Args:
        problem: of objective ring.
        device: [N] chip of each node.

    Raises:
        SolverError: the objective is not the ring's, or there are too many assignments to try.
    """
    found = all_partitions(problem, LARGEST)
    if found:
        nearest = min(found, key=lambda chips: (_moved(chips, device), chips))
        rows = np.flatnonzero(np.asarray(nearest) != device)
        return Explanation(len(found), {int(n): nearest[n] for n in rows}, ())
    able = (rule for rule in RULES if all_partitions(problem, 1, without=(rule,)))
    return Explanation(0, {}, tuple(able))


def _moved(chips: tuple[int, ...], device: Int16[np.ndarray, "N"]) -> int:
    return int((np.asarray(chips) != device).sum())


def all_partitions(
    problem: Problem, limit: int = MANY, without: Collection[str] = ()
) -> set[tuple[int, ...]]:
    """Return legal partitions of a small ring problem, each the chip of every node.

    Under the replicating rules the copied nodes (`replicated_nodes`) sit wherever their consumers
    do and are listed with the lowest of these chips.

    Args:
        problem: of objective ring.
        limit: stop after this many.
        without: rules among `RULES` that are left out.

    Raises:
        SolverError: the objective is not the ring's, or there are too many assignments to try.
    """
    if problem.objective is not Objective.RING:
        raise SolverError(
            f"partitions of a ring can be enumerated, not plans for objective {problem.objective}"
        )
    copied = replicated_nodes(problem)
    nodes, chips = np.flatnonzero(~copied).tolist(), range(problem.hardware.num_devices)
    pins = {} if "fixed" in without else problem.fixed
    domains = {node: [pins[node]] if node in pins else list(chips) for node in nodes}
    digits = sum(log10(len(domain)) for domain in domains.values())
    if digits > log10(LARGEST):
        raise SolverError(
            f"graph {problem.graph.name!r}: some 10^{digits:.0f} assignments of {len(nodes)} nodes "
            f"to {len(chips)} chips are too many to try; at most {LARGEST:,}"
        )
    model = constraint.Problem()
    for node, domain in domains.items():
        model.addVariable(node, domain)
    for function, over in _constraints(problem, copied, nodes, without):
        model.addConstraint(function, over)
    found = islice(model.getSolutionIter(), limit)
    return {tuple(_homes(problem, copied, solution)[0].tolist()) for solution in found}


def _constraints(
    problem: Problem, copied: Bool[np.ndarray, "N"], nodes: list[int], without: Collection[str]
) -> list[tuple[Callable[..., bool], list[int]]]:
    """Each rule as a function of the chips of some nodes."""
    edges, found = _edges(problem, copied), []
    if "acyclic" not in without:
        found += [(operator.le, [u, v]) for u, v in edges]
    if "colocation" not in without:
        found += [(operator.eq, [u, v]) for u, v in _classmates(problem)]
    if "no-skip" not in without:
        found.append((lambda *chips: _no_skip(problem, set(chips)), nodes))
    if problem.rules.triangle and "triangle" not in without:
        found.append(
            (lambda *chips: _no_triangle(dict(zip(nodes, chips, strict=True)), edges), nodes)
        )
    if problem.memory and "memory" not in without:
        found.append((lambda *chips: _fits(problem, copied, nodes, chips), nodes))
    return found


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
    count = problem.hardware.num_devices if problem.all_chips else max(used) + 1
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
        for c, chip in enumerate(problem.hardware.devices)
    )


def _homes(
    problem: Problem, copied: Bool[np.ndarray, "N"], solution: dict[int, int]
) -> tuple[np.ndarray, np.ndarray]:
    """[N] homes and [N] sets of chips of a solution."""
    device = np.zeros(problem.graph.num_nodes, np.int16)
    device[list(solution)] = list(solution.values())
    return place_copies(problem, copied, device)
