"""The best legal plan of a tiny ring problem, among all homes and all copies that the rules allow.

Values are computed for all plans at once; the checker then says which of the cheapest is legal.
"""

from itertools import product

import numpy as np
from reference.ring_rules import cone

from go_rl.core import FREE, Problem
from go_rl.core.problem import REPLICATE_SHARE
from go_rl.verify.rules import legal

MOST_PLANS = 60_000


def optimum(problem: Problem) -> float | None:
    """T_max of the best plan that the checker accepts; inf without one, None for too many plans.

    Live tensors are not counted: this is the optimum over plans whose weights fit.
    """
    choices = [_choices(problem, n) for n in range(problem.graph.num_nodes)]
    if np.prod([float(len(c)) for c in choices]) > MOST_PLANS:
        return None
    which = np.array(list(product(*(range(len(c)) for c in choices))))
    home = np.stack(
        [np.array([c[0] for c in choices[n]])[which[:, n]] for n in range(len(choices))], 1
    )
    present = np.stack(
        [np.array([c[1] for c in choices[n]])[which[:, n]] for n in range(len(choices))], 1
    )
    value = values(problem, home, present)
    for i in np.argsort(value, kind="stable"):
        if not np.isfinite(value[i]):
            return float("inf")
        copies = {
            n: tuple(c for c in np.flatnonzero(present[i, n]).tolist() if c != home[i, n])
            for n in range(len(choices))
        }
        if not legal(problem, home[i], {n: c for n, c in copies.items() if c}):
            return float(value[i])
    return float("inf")


def values(problem: Problem, home: np.ndarray, present: np.ndarray) -> np.ndarray:
    """[P] T_max of homes [P, N] and presences [P, N, k]; inf for backward flow, gaps, split
    classes and moved pins."""
    graph, links, chips = problem.graph, problem.hardware.links, problem.hardware.num_devices
    seconds = problem.seconds[problem.device_kind].T
    worst = (present * np.where(present, seconds, 0.0)).sum(axis=1).max(axis=1)
    used = np.stack([(home == c).any(axis=1) for c in range(chips)], axis=1)
    bad = (used[:, 1:] & ~used[:, :-1]).any(axis=1)
    bad |= problem.all_chips & ~used.all(axis=1)
    for n, chip in problem.fixed.items():
        bad |= home[:, n] != chip
    for a, b in product(range(graph.num_nodes), repeat=2):
        if graph.colocation[a] != FREE and graph.colocation[a] == graph.colocation[b]:
            bad |= home[:, a] != home[:, b]
    traffic = np.zeros((len(home), chips))
    above = np.arange(chips)
    for u, output in set(zip(graph.senders.tolist(), graph.edge_output.tolist(), strict=True)):
        edges = np.flatnonzero((graph.senders == u) & (graph.edge_output == output))
        needed = present[:, graph.receivers[edges]].any(axis=1) & ~present[:, u]
        bad |= (needed & (above < home[:, u, None])).any(axis=1)
        last = np.where(needed, above, -1).max(axis=1)
        crossed = (above >= home[:, u, None]) & (above < last[:, None])
        traffic += crossed * problem.edge_bytes[edges].max()
    busy = np.where(traffic > 0, traffic / links.bandwidth + links.latency_seconds, 0.0)
    return np.where(bad, np.inf, np.maximum(worst, busy.max(axis=1)))


def _choices(problem: Problem, node: int) -> list[tuple[int, np.ndarray]]:
    """(home, presence [k]) of a node: alone, or with any copies where those are allowed."""
    chips = problem.hardware.num_devices
    sets = product((False, True), repeat=chips)
    every = [np.array(s) for s in sets] if copyable(problem, node) else list(np.eye(chips) > 0)
    return [(c, s) for c in range(chips) for s in every if s[c]]


def copyable(problem: Problem, node: int) -> bool:
    """Cheap with all its ancestors, and alone in its class."""
    graph = problem.graph
    colour = graph.colocation[node]
    if not problem.rules.replicate or (colour != FREE and (graph.colocation == colour).sum() > 1):
        return False
    work = problem.work
    total = work[np.isfinite(work)].sum()
    return bool(sum(work[n] for n in cone(problem, node)) <= REPLICATE_SHARE * total)
