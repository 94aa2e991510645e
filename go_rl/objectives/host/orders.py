"""Linear orders of blocks for the interval DP: several topological orders of the graph."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int, Int32, Int64
from numba import njit

from go_rl.core import Problem
from go_rl.objectives.host.hypergraph import Contraction
from go_rl.solvers.graphs.depth_first import depth_first_order
from go_rl.solvers.graphs.heads_tails import path_sums_before


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
    nodes = graph.num_nodes
    rank = np.arange(nodes) if attempt <= 2 else rng.permutation(nodes)
    if attempt == 3:
        return edge_depth(into[0], graph.senders[into[1]]) * nodes + np.arange(nodes)
    tie = rank.astype(np.float64)
    if attempt % 2 == 1:
        order = depth_first_order(into[0], out[0], graph.receivers[out[1]], tie)
    else:
        order = depth_first_order(out[0], into[0], graph.senders[into[1]], tie)[::-1]
    position = np.empty(nodes, np.int64)
    position[order] = np.arange(nodes)
    return position


def edge_depth(
    pred_ptr: Int[np.ndarray, "rows"], pred: Int[np.ndarray, "edges"]
) -> Int64[np.ndarray, "M"]:
    """Return [M] the edges on the longest path to each item."""
    return path_sums_before(pred_ptr, pred, np.ones(len(pred_ptr) - 1)).astype(np.int64) - 1


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
