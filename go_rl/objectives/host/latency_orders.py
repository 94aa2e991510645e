"""Topological orders of the blocks of a latency problem."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int32

from go_rl.objectives.host.latency_blocks import LatencyBlocks
from go_rl.objectives.host.orders import edge_depth
from go_rl.solvers.graphs.depth_first import depth_first_order


def latency_orders(blocks: LatencyBlocks, seed: int, count: int) -> list[Int32[np.ndarray, "B"]]:
    """Return up to ``count`` distinct topological orders [B] of the blocks."""
    total = blocks.contraction.hypergraph.size.shape[0]
    senders, receivers = blocks.edges
    succ_ptr, succ = _rows(senders, receivers, total)
    pred_ptr, pred = _rows(receivers, senders, total)
    rng = np.random.default_rng(seed)
    given = np.arange(total, dtype=np.int32)
    orders: dict[bytes, Int32[np.ndarray, "B"]] = {}
    for attempt in range(3 * count):
        rank = (given if attempt < 3 else rng.permutation(total)).astype(np.float64)
        if attempt == 0:
            order = given
        elif attempt == 3:
            order = np.argsort(edge_depth(pred_ptr, pred), kind="stable").astype(np.int32)
        elif attempt % 2:
            order = depth_first_order(pred_ptr, succ_ptr, succ, rank)
        else:
            order = depth_first_order(succ_ptr, pred_ptr, pred, rank)[::-1].copy()
        orders.setdefault(order.tobytes(), order)
        if len(orders) >= count:
            break
    return list(orders.values())


def _rows(
    keys: Int32[np.ndarray, "X"], values: Int32[np.ndarray, "X"], rows: int
) -> tuple[Int32[np.ndarray, "R"], Int32[np.ndarray, "X"]]:
    offsets = np.zeros(rows + 1, np.int32)
    np.cumsum(np.bincount(keys, minlength=rows), out=offsets[1:])
    return offsets, values[np.argsort(keys, kind="stable")]
