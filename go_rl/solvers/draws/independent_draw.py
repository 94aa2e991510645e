"""One draw of every block on its own: exact wherever it happens to be legal."""

from __future__ import annotations

from typing import no_type_check

import numpy as np

from go_rl.core.bitset import bit
from go_rl.core.compiled_struct import compiled
from go_rl.solvers.network import Network
from go_rl.solvers.tree_search import draw


@compiled
@no_type_check
def draw_independently(net: Network, domain, log_probs, random, chip) -> bool:
    """Draw [M] chips, each from its distribution renormalised over its domain.

    Returns False as soon as an edge leads to a lower chip; True says nothing of the other rules.
    """
    for v in range(len(chip)):
        chip[v] = draw(log_probs[v], domain[v], random)
        for j in range(net.pred_ptr[v], net.pred_ptr[v + 1]):
            if chip[net.pred[j]] > chip[v]:
                return False
    return True


@compiled
@no_type_check
def log_prob_within(log_probs, domain, chip) -> float:
    """Return the log-probability of [M] chips, each renormalised over its domain."""
    total = 0.0
    blocks, chips = log_probs.shape
    for v in range(blocks):
        if domain[v] & (domain[v] - 1) == 0:
            continue
        top = -np.inf
        for c in range(chips):
            if domain[v] & bit(c):
                top = max(top, log_probs[v, c])
        mass = 0.0
        for c in range(chips):
            if domain[v] & bit(c):
                mass += np.exp(log_probs[v, c] - top) if top > -np.inf else 1.0
        share = log_probs[v, chip[v]] - top if top > -np.inf else 0.0
        total += share - np.log(mass)
    return total
