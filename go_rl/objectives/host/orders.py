"""Linear orders of blocks for the interval DP: several topological orders of the graph."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count as count_up
from itertools import islice
from typing import no_type_check

import numpy as np
from jaxtyping import Int, Int32, Int64
from numba import njit

from go_rl.core import Problem
from go_rl.core.graph.condensation import sorted_rows
from go_rl.core.graph.depth_first import depth_first_order
from go_rl.core.graph.heads_tails import path_sums_before
from go_rl.objectives.host.hypergraph import Contraction
from go_rl.objectives.host.latency_blocks import LatencyBlocks


def block_orders(
    problem: Problem, contraction: Contraction, seed: int, count: int
) -> list[Int32[np.ndarray, "B"]]:
    """Return up to ``count`` distinct orders [B] of the blocks of a max-load problem.

    A training graph is ordered by its forward pass: a backward node takes the place of the
    earliest forward node that it reads from, directly or through other backward nodes.
    """
    graph = problem.graph
    (pred_ptr, into), (succ_ptr, out) = graph.predecessors, graph.successors
    rows = pred_ptr, graph.senders[into], succ_ptr, graph.receivers[out]
    nodes = _topological_orders(*rows, np.random.default_rng(seed))
    return _distinct((_block_order(problem, contraction, order) for order in nodes), count)


def latency_orders(blocks: LatencyBlocks, seed: int, count: int) -> list[Int32[np.ndarray, "B"]]:
    """Return up to ``count`` distinct topological orders [B] of the blocks of a latency problem."""
    (senders, receivers), total = blocks.edges, blocks.contraction.hypergraph.size.shape[0]
    rows = *sorted_rows(receivers, senders, total), *sorted_rows(senders, receivers, total)
    return _distinct(_topological_orders(*rows, np.random.default_rng(seed)), count)


def _topological_orders(
    pred_ptr: Int[np.ndarray, "rows"],
    pred: Int[np.ndarray, "edges"],
    succ_ptr: Int[np.ndarray, "rows"],
    succ: Int[np.ndarray, "edges"],
    rng: np.random.Generator,
) -> Iterator[Int32[np.ndarray, "M"]]:
    """Yield orders [M] without end, best guesses first: given, depth-first, reverse depth-first and
    breadth-first order, then both depth-first ones with random ties."""
    given = np.arange(len(pred_ptr) - 1, dtype=np.int32)
    for attempt in count_up():
        rank = (given if attempt < 3 else rng.permutation(len(given))).astype(np.float64)
        if attempt == 0:
            yield given
        elif attempt == 3:
            yield np.argsort(edge_depth(pred_ptr, pred), kind="stable").astype(np.int32)
        elif attempt % 2:
            yield depth_first_order(pred_ptr, succ_ptr, succ, rank)
        else:
            yield depth_first_order(succ_ptr, pred_ptr, pred, rank)[::-1].copy()


def _distinct(orders: Iterator[Int32[np.ndarray, "M"]], count: int) -> list[Int32[np.ndarray, "M"]]:
    found: dict[bytes, Int32[np.ndarray, "M"]] = {}
    for order in islice(orders, 3 * count):
        found.setdefault(order.tobytes(), order)
        if len(found) >= count:
            break
    return list(found.values())


def edge_depth(
    pred_ptr: Int[np.ndarray, "rows"], pred: Int[np.ndarray, "edges"]
) -> Int64[np.ndarray, "M"]:
    """Return [M] the edges on the longest path to each item."""
    return path_sums_before(pred_ptr, pred, np.ones(len(pred_ptr) - 1)).astype(np.int64) - 1


def _block_order(
    problem: Problem, contraction: Contraction, order: Int32[np.ndarray, "N"]
) -> Int32[np.ndarray, "B"]:
    graph, block = problem.graph, contraction.block
    position = np.empty(len(order))
    position[order] = np.arange(len(order))
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
