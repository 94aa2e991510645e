"""Topological orders of the blocks of a latency problem."""

from __future__ import annotations

import numpy as np
from jaxtyping import Int32

from go_rl.objectives.host.latency_blocks import LatencyBlocks
from go_rl.objectives.host.orders import depth_first, longest_depth


def latency_orders(blocks: LatencyBlocks, seed: int, count: int) -> list[Int32[np.ndarray, "B"]]:
    """Return up to ``count`` distinct topological orders [B] of the blocks."""
    total = blocks.contraction.hypergraph.size.shape[0]
    senders, receivers = blocks.edges
    forward = _rows(senders, receivers, total)
    backward = _rows(receivers, senders, total)
    rng = np.random.default_rng(seed)
    given = np.arange(total)
    depth = longest_depth(senders, receivers, total)
    orders: dict[bytes, Int32[np.ndarray, "B"]] = {}
    for attempt in range(3 * count):
        tie = given if attempt < 3 else rng.permutation(total)
        if attempt == 0:
            place = given
        elif attempt == 3:
            place = depth * total + given
        elif attempt % 2:
            place = depth_first(*forward, backward[0], tie)
        else:
            place = -depth_first(*backward, forward[0], tie)
        order = np.argsort(place, kind="stable").astype(np.int32)
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
