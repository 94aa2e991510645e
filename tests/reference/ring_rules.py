"""The rules of the ring in plain Python: every legal partition of a small problem, one by one.

Independent of solvers and checker. Nodes are tried in topological order; a copied node (under the
replicating rules) is wherever a consumer is, and its home is the lowest of these chips.
"""

from collections.abc import Iterator, Sequence

import numpy as np
from reference.held import weights_held

from go_rl.core import FREE, Problem

Partition = tuple[int, ...]


def partitions(problem: Problem, copied: frozenset[int] = frozenset()) -> Iterator[Partition]:
    """Yield the chip of every node for each legal partition."""
    graph = problem.graph
    edges = list(zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True))
    chips = range(problem.hardware.num_devices)
    placed: list[int] = []

    def extend() -> Iterator[Partition]:
        node = len(placed)
        if node == graph.num_nodes:
            present = presences(placed, edges, copied)
            home = tuple(min(p) for p in present)
            if is_legal(problem, edges, home, present, copied):
                yield home
            return
        before = [placed[u] for u, v in edges if v == node and u not in copied]
        for chip in [0] if node in copied else chips[max(before, default=0) :]:
            placed.append(chip)
            yield from extend()
            placed.pop()

    return extend()


def presences(
    home: list[int], edges: list[tuple[int, int]], copied: frozenset[int]
) -> list[frozenset[int]]:
    """The chips where each node is; a copied node without consumers stays on chip 0."""
    present = [frozenset({chip}) for chip in home]
    for node in sorted(copied, reverse=True):
        readers = [present[v] for u, v in edges if u == node]
        present[node] = frozenset().union(*readers) if readers else frozenset({0})
    return present


def is_legal(
    problem: Problem,
    edges: list[tuple[int, int]],
    home: Partition,
    present: list[frozenset[int]],
    copied: frozenset[int],
) -> bool:
    """All rules but acyclicity, which the enumeration sees to."""
    needs = {(home[u], home[v]) for u, v in edges if u not in copied and home[u] != home[v]}
    return (
        all(home[n] == chip for n, chip in problem.fixed.items())
        and classes_together(problem, home)
        and no_chip_skipped(problem, {home[n] for n in range(len(home)) if n not in copied})
        and (problem.rules.relay or no_triangle(needs))
        and (not problem.memory or weights_fit(problem, present))
    )


def classes_together(problem: Problem, home: Sequence[int]) -> bool:
    chip_of: dict[int, int] = {}
    classes = problem.graph.colocation.tolist()
    return all(
        c == FREE or chip_of.setdefault(c, home[n]) == home[n] for n, c in enumerate(classes)
    )


def no_chip_skipped(problem: Problem, used: set[int]) -> bool:
    last = problem.hardware.num_devices - 1 if problem.all_chips else max(used)
    return used == set(range(last + 1))


def no_triangle(direct: set[tuple[int, int]]) -> bool:
    """No direct (a, c) beside a longer path a -> ... -> c."""
    return not any(longer_path(direct, a, c) for a, c in direct)


def longer_path(direct: set[tuple[int, int]], a: int, c: int) -> bool:
    """Whether a path of two steps or more joins chip a to c."""
    front = {b for x, b in direct if x == a and b != c}
    while front:
        onward = {b for x, b in direct if x in front}
        if c in onward:
            return True
        front = onward - front
    return False


def cone(problem: Problem, node: int) -> set[int]:
    """A node and all its ancestors."""
    found, graph = {node}, problem.graph
    edges = zip(graph.senders.tolist(), graph.receivers.tolist(), strict=True)
    for u, v in sorted(edges, reverse=True):  # nodes are in topological order
        if v in found:
            found.add(u)
    return found


def weights_fit(problem: Problem, present: list[frozenset[int]]) -> bool:
    """Own weights of all present nodes, tied ones once a chip, fit."""
    return all(
        weights_held(problem, [n for n, on in enumerate(present) if c in on]) <= chip.memory_bytes
        for c, chip in enumerate(problem.hardware.devices)
    )


def copied_by(replicated: np.ndarray) -> frozenset[int]:
    """The set of nodes in a boolean [N]."""
    return frozenset(np.flatnonzero(replicated).tolist())
