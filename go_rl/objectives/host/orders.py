"""Linear orders of blocks for the interval DP: several topological orders of the graph."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int32
from numba import njit

from go_rl.core import Problem
from go_rl.objectives.host.hypergraph import Contraction


def block_orders(
    problem: Problem, contraction: Contraction, seed: int, count: int
) -> list[Int32[np.ndarray, "B"]]:
    """Return up to ``count`` distinct orders [B] of the blocks, best guesses first.

    Given, depth-first, reverse depth-first and breadth-first order, then depth-first with random
    ties. A training graph is ordered by its forward pass: a backward node takes the place of the
    earliest forward node that it reads from, directly or through other backward nodes.
    """
    graph = problem.graph
    rng = np.random.default_rng(seed)
    forward = np.arange(graph.num_nodes, dtype=np.int64)
    orders: dict[bytes, Int32[np.ndarray, "B"]] = {}
    for attempt in range(3 * count):
        if attempt == 0:
            position = forward
        else:
            position = _position(problem, attempt, rng)
        order = _block_order(problem, contraction, position.astype(np.float64))
        orders.setdefault(order.tobytes(), order)
        if len(orders) >= count:
            break
    return list(orders.values())


def _position(problem: Problem, attempt: int, rng: np.random.Generator) -> np.ndarray:
    graph = problem.graph
    out, into = graph.successors, graph.predecessors
    forward = (out[0], graph.receivers[out[1]])
    backward = (into[0], graph.senders[into[1]])
    nodes = graph.num_nodes
    tie = np.arange(nodes) if attempt <= 2 else rng.permutation(nodes)
    if attempt == 3:
        return longest_depth(graph.senders, graph.receivers, nodes) * nodes + np.arange(nodes)
    if attempt % 2 == 1:
        return depth_first(*forward, backward[0], tie)
    return nodes - 1 - depth_first(*backward, forward[0], tie)


def _block_order(
    problem: Problem, contraction: Contraction, position: Float64[np.ndarray, "N"]
) -> Int32[np.ndarray, "B"]:
    graph, block = problem.graph, contraction.block
    mirrored = mirror_backward(position, graph.is_backward, graph.senders, graph.receivers)
    key = np.full(int(block.max()) + 1, np.inf)
    np.minimum.at(key, block, np.where(graph.is_backward, np.inf, mirrored))
    orphan = np.full(len(key), np.inf)
    np.minimum.at(orphan, block, mirrored)
    key = np.where(np.isinf(key), orphan, key)
    return np.argsort(key, kind="stable").astype(np.int32)


@njit(cache=True)
@no_type_check
def mirror_backward(position, is_backward, senders, receivers):
    """Positions [N] with each backward node at the least position among what it reads."""
    result = position.copy()
    for n in range(position.shape[0]):
        if is_backward[n]:
            result[n] = np.inf
    for e in range(senders.shape[0]):
        if is_backward[receivers[e]]:
            result[receivers[e]] = min(result[receivers[e]], result[senders[e]])
    for n in range(position.shape[0]):
        if np.isinf(result[n]):
            result[n] = position[n]
    return result


@njit(cache=True)
@no_type_check
def depth_first(offsets, targets, source_offsets, tie):
    """Place [N] of each node in a topological order that follows one branch to its end.

    ``offsets, targets`` are the rows of outgoing edges, ``source_offsets`` counts incoming ones,
    ``tie`` [N] ranks nodes that are ready at once.
    """
    nodes = tie.shape[0]
    waiting = np.empty(nodes, np.int64)
    for n in range(nodes):
        waiting[n] = source_offsets[n + 1] - source_offsets[n]
    place, placed = np.empty(nodes, np.int64), 0
    stack, top = np.empty(nodes, np.int64), 0
    roots = np.argsort(tie)
    for r in range(nodes - 1, -1, -1):
        if waiting[roots[r]] == 0:
            stack[top] = roots[r]
            top += 1
    while top > 0:
        top -= 1
        n = stack[top]
        place[n] = placed
        placed += 1
        first = top
        for i in range(offsets[n], offsets[n + 1]):
            t = targets[i]
            waiting[t] -= 1
            if waiting[t] == 0:
                stack[top] = t
                top += 1
        for i in range(first + 1, top):
            j = i
            while j > first and tie[stack[j - 1]] < tie[stack[j]]:
                stack[j - 1], stack[j] = stack[j], stack[j - 1]
                j -= 1
    return place


@njit(cache=True)
@no_type_check
def longest_depth(senders, receivers, nodes):
    """Edges [N] on the longest path to each node; edges sorted by sender."""
    depth = np.zeros(nodes, np.int64)
    for e in range(senders.shape[0]):
        depth[receivers[e]] = max(depth[receivers[e]], depth[senders[e]] + 1)
    return depth
