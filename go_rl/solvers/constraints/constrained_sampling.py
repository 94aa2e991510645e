"""SAMPLE under constraints of the user's own: the plain search of `tree_search`, in Python.

Chronological backtracking over a `DomainStore`. Complete, and hundreds of times slower than
`RingSolver`, which knows the built-in rules only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Float64, Int16, Int64

from go_rl.core import Means, Problem, Status
from go_rl.core.bitset import ONE
from go_rl.solvers.constraints.custom_constraint import CustomConstraint
from go_rl.solvers.constraints.domain_store import DomainStore
from go_rl.solvers.draws.independent_draw import log_prob_within
from go_rl.solvers.ring_solver import log_prob_rows
from go_rl.solvers.samples import CODE, Samples, no_samples
from go_rl.solvers.tree_search import draw

MAX_FAILURES = 2_000
"""Contradictions after which a sample is given up."""


@dataclass
class _Level:
    """One drawn block of the search."""

    block: int
    chip: int
    domain: np.int64
    """The chips that were possible when it was drawn."""
    depth: int
    """Decisions of the store before it."""


def sample_with_constraints(
    problem: Problem,
    constraints: Sequence[CustomConstraint],
    log_probs: Float[np.ndarray, "*B N k"] | None = None,
    batch: int = 1,
    seed: int = 0,
) -> Samples:
    """SAMPLE legal partitions that also satisfy the user's constraints.

    Args:
        constraints: called after every propagation; see `CustomConstraint` for an example.
        log_probs: [N, chips] or [B, N, chips]; None: uniform. -inf where never wanted.
        batch: samples to draw when ``log_probs`` has no batch axis.
        seed: the same seed gives the same samples.

    Returns:
        Samples whose status is ``infeasible`` where none exists (proved) and ``gave-up`` after
        `MAX_FAILURES` contradictions, or where only another choice of copied nodes could help.

    Raises:
        SolverError: shapes do not fit, or a constraint names a node or chip that does not exist.
    """
    store = DomainStore(problem, constraints)
    rows = log_prob_rows(problem, log_probs, batch)
    batch = max(batch, len(rows))
    leader = store.instance.leader
    found = no_samples(batch, problem.graph.num_nodes, len(leader), Status.GAVE_UP)
    details = []
    for i in range(batch):
        store.reset()
        random = np.random.SeedSequence([seed, i]).generate_state(1, np.uint64)
        verdict, levels = sample_with(store, rows[i % len(rows)], random, MAX_FAILURES)
        found.status[i] = CODE[verdict]
        if verdict.ok:
            chips = found.device[i] = store.assignment()
            mask = found.mask[i] = _masks(store, chips, levels)
            own = rows[i % len(rows)][leader]
            found.means[i] = Means.TREE
            found.log_prob[i] = log_prob_within(own, mask[leader], chips[leader])
        else:
            details.append(store.clash)
    return replace(found, detail=details[0] if len(details) == batch else "")


def sample_with(
    store: DomainStore,
    log_probs: Float64[np.ndarray, "N chips"],
    random: np.ndarray,
    max_failures: int,
) -> tuple[Status, Sequence[_Level]]:
    """Extend a store to a complete partition, blocks in topological order.

    Each block is drawn from its row of [N, chips] ``log_probs`` renormalised over its domain with
    ``random`` [1] uint64. On failure the store is back where it began.
    """
    leader, begin = store.instance.leader, store.depth
    levels: list[_Level] = []
    failures, at = 0, 0
    while store.feasible and at < len(leader):
        node = int(leader[at])
        domain = store.domain(node)
        if domain & (domain - 1) == 0:
            at += 1
            continue
        word = np.uint64(domain).astype(np.int64)
        chip = int(draw(log_probs[node], int(word), random))
        levels.append(_Level(at, chip, word, store.depth))
        if store.set(node, chip):
            continue
        while True:
            failures += 1
            level = levels.pop() if levels else None
            _undo_to(store, begin if level is None or failures > max_failures else level.depth)
            if level is None:
                return _exhausted(store), ()
            if failures > max_failures:
                return Status.GAVE_UP, ()
            at = level.block
            if store.remove(int(leader[at]), level.chip):
                break
    return (Status.OK, levels) if store.feasible else (Status.INFEASIBLE, ())


def _exhausted(store: DomainStore) -> Status:
    """Copied nodes could have been fillers of their own: then nothing is proved."""
    return Status.GAVE_UP if store.instance.replicated.any() else Status.INFEASIBLE


def _undo_to(store: DomainStore, depth: int) -> None:
    while store.depth > depth:
        store.undo()


def _masks(
    store: DomainStore, device: Int16[np.ndarray, "N"], levels: Sequence[_Level]
) -> Int64[np.ndarray, "N"]:
    """[N] the domain of each drawn node, one bit for all others."""
    mask = ONE << device.astype(np.int64)
    for level in levels:
        mask[store.instance.leader[level.block]] = level.domain
    return mask
