"""A topological order from distributions over chips: their means, smoothed over edges.

Each block knows where it belongs, with some doubt; an edge says that its ends lie close together.
The likeliest positions of all blocks under both,

    minimise  sum_v (x[v] - mean[v])^2 / variance[v] + sum_(u, v) k[u, v] (x[u] - x[v])^2,

follow from Gauss-Seidel rounds along the graph and back. A list schedule of the positions is the
order. Where the means are certain, nothing is smoothed.
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Float64, Int64

from go_rl.core.compiled_struct import compiled
from go_rl.core.graph.list_order import list_order
from go_rl.solvers.network import Network

STIFFNESS = 16.0
"""Precision with which an edge ties two blocks of one neighbour each, in 1 / chips^2."""
ROUNDS = 24
"""Gauss-Seidel rounds, every second one backwards."""
LEAST_VARIANCE = 1e-9
"""Least variance, that of a distribution that is certain, in chips^2."""


def order_of(
    net: Network, mean: Float64[np.ndarray, "M"], variance: Float64[np.ndarray, "M"]
) -> Int64[np.ndarray, "M"]:
    """Return the topological order of [M] positions that are known with [M] variances."""
    place = mean.copy()
    _smooth(net, mean, variance, place)
    return list_order(net.pred_ptr, net.succ_ptr, net.succ, place)


def chip_moments(
    log_probs: Float64[np.ndarray, "M k"],
) -> tuple[Float64[np.ndarray, "M"], Float64[np.ndarray, "M"]]:
    """Return [M] mean and variance of each block's chip; of a row of -inf, those of a uniform
    distribution."""
    mean, variance = np.empty((2, len(log_probs)))
    _moments(np.ascontiguousarray(log_probs), mean, variance)
    return mean, variance


@compiled
@no_type_check
def _moments(log_probs, mean, variance) -> None:
    blocks, chips = log_probs.shape
    for v in range(blocks):
        top = -np.inf
        for c in range(chips):
            top = max(top, log_probs[v, c])
        total, first, second = 0.0, 0.0, 0.0
        for c in range(chips):
            p = np.exp(log_probs[v, c] - top) if top > -np.inf else 1.0
            total += p
            first += p * c
            second += p * c * c
        mean[v] = first / total
        variance[v] = max(second / total - mean[v] * mean[v], LEAST_VARIANCE)


@compiled
@no_type_check
def _smooth(net: Network, mean, variance, place) -> None:
    """Move [M] ``place``, which starts at the means."""
    blocks = len(mean)
    for turn in range(ROUNDS):
        for i in range(blocks):
            v = i if turn % 2 == 0 else blocks - 1 - i
            weight = 1.0 / variance[v]
            pull = weight * mean[v]
            for j in range(net.pred_ptr[v], net.pred_ptr[v + 1]):
                u = net.pred[j]
                tie = STIFFNESS / (net.succ_ptr[u + 1] - net.succ_ptr[u])
                weight += tie
                pull += tie * place[u]
            for j in range(net.succ_ptr[v], net.succ_ptr[v + 1]):
                u = net.succ[j]
                tie = STIFFNESS / (net.pred_ptr[u + 1] - net.pred_ptr[u])
                weight += tie
                pull += tie * place[u]
            place[v] = pull / weight
