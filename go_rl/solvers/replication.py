"""Replication: nodes that the replicating rule sets copy, and the chips of the copies.

A node is replicable when it costs, with all its ancestors, at most `REPLICATE_SHARE` of the whole
work. Copied nodes form a set closed under ancestors, so a copy always finds its inputs on its own
chip and constrains nobody.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Bool, Int16, Int64

from go_rl.core import FREE, OpGraph, Problem
from go_rl.core.bitset import bit, lowest
from go_rl.core.compiled_struct import compiled
from go_rl.core.problem import REPLICATE_SHARE

LARGEST_COPY = 0.05
"""Share of a chip's memory above which a node's weights are not worth copying."""


def replicated_nodes(problem: Problem) -> Bool[np.ndarray, "N"]:
    """Return [N] the nodes that the solver copies to each consumer's chip; none under strict rules.

    Members of colocation classes, pinned nodes, nodes with large weights and nodes that nobody
    reads are never copied; under the relay rule, neither is a node that takes longer to run than
    its result takes to send.
    """
    graph = problem.graph
    allowed = np.zeros(graph.num_nodes, np.bool_)
    if not problem.rules.replicate:
        return allowed
    limit = REPLICATE_SHARE * problem.work[np.isfinite(problem.work)].sum()
    smallest = min(chip.memory_bytes for chip in problem.hardware.devices)
    allowed = (problem.work <= limit) & (problem.streamed_bytes == 0) & ~shares_device(graph)
    if problem.memory:
        allowed &= problem.weight_bytes <= LARGEST_COPY * smallest
    if problem.rules.relay:
        allowed &= problem.work <= problem.output_bytes / problem.hardware.links.bandwidth
    allowed[list(problem.fixed)] = False
    allowed &= np.bincount(graph.senders, minlength=graph.num_nodes) > 0
    offsets, edges = graph.predecessors
    chosen = np.zeros(graph.num_nodes, np.bool_)
    stamp, stack = np.full((2, graph.num_nodes), -1)
    _close(offsets, graph.senders[edges], problem.work, allowed, limit, stamp, stack, chosen)
    return chosen if not chosen.all() else np.zeros_like(chosen)


def shares_device(graph: OpGraph) -> Bool[np.ndarray, "N"]:
    """Return [N] the nodes whose colocation class has several members: they are never copied."""
    classes = graph.colocation
    if (classes == FREE).all():
        return np.zeros(graph.num_nodes, np.bool_)
    _, which, sizes = np.unique(classes, return_inverse=True, return_counts=True)
    return (classes != FREE) & (sizes[which] > 1)


@compiled
@no_type_check
def _close(offsets, preds, work, allowed, limit, stamp, stack, chosen) -> None:
    """Choose the allowed nodes whose cone is allowed throughout and costs at most ``limit``.

    [N] ``stamp`` holds -1 and ``chosen`` False; ``stack`` is scratch.
    """
    nodes = len(work)
    for v in range(nodes):
        if not allowed[v]:
            continue
        chosen[v] = True
        for i in range(offsets[v], offsets[v + 1]):
            chosen[v] &= chosen[preds[i]]
        if not chosen[v]:
            continue
        cost, top = 0.0, 1
        stack[0] = v
        stamp[v] = v
        while top > 0:
            top -= 1
            w = stack[top]
            cost += work[w]
            for i in range(offsets[w], offsets[w + 1]):
                p = preds[i]
                if stamp[p] != v:
                    stamp[p] = v
                    stack[top] = p
                    top += 1
        chosen[v] = cost <= limit


@compiled
@no_type_check
def presence(offsets, receivers, replicated, device, out):
    """Write [N] the chips on which each node is present (home and copies); sets homes of copies.

    ``offsets, receivers`` are the rows of each node's consumers. A replicated node is present on
    every chip where a consumer is; its home is the lowest of them.
    """
    for v in range(len(device) - 1, -1, -1):
        out[v] = bit(device[v])
        if replicated[v]:
            need = 0 * out[v]
            for i in range(offsets[v], offsets[v + 1]):
                need |= out[receivers[i]]
            if need != 0:
                out[v] = need
                device[v] = lowest(need)


def place_copies(
    problem: Problem, replicated: Bool[np.ndarray, "N"], device: Int16[np.ndarray, "N"]
) -> tuple[Int16[np.ndarray, "N"], Int64[np.ndarray, "N"]]:
    """Return [N] homes and [N] sets of chips where each node is present."""
    offsets, edges = problem.graph.successors
    home, present = device.copy(), np.zeros(len(device), np.int64)
    presence(offsets, problem.graph.receivers[edges], replicated, home, present)
    return home, present


def replicas_of(
    device: Int16[np.ndarray, "N"], present: Int64[np.ndarray, "N"]
) -> dict[int, tuple[int, ...]]:
    """Return the plan's ``replicas``: further chips of each node that has copies."""
    ones = np.int64(1) << device.astype(np.int64)
    several = np.flatnonzero(present & ~ones)
    return {
        int(v): tuple(c for c in range(64) if (int(present[v]) >> c) & 1 and c != device[v])
        for v in several
    }
