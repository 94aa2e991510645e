"""All legal cuts of one order, one by one: the twin of `CutDistribution`."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from go_rl.solvers.network import Network


def legal_cuts(net: Network, order: np.ndarray, domain: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the [M] chips of every set of cuts: within domains and memory, and under the triangle
    rule no edge passes over a chip."""
    blocks = len(order)
    for count in [net.chips] if net.all_chips else range(1, min(net.chips, blocks) + 1):
        for cuts in combinations(range(1, blocks), count - 1):
            chip = np.empty(blocks, np.int64)
            chip[order] = np.repeat(np.arange(count), np.diff([0, *cuts, blocks]))
            if all(int(domain[v]) >> int(chip[v]) & 1 for v in range(blocks)) and _holds(net, chip):
                yield chip


def _holds(net: Network, chip: np.ndarray) -> bool:
    rows = np.repeat(np.arange(len(chip)), np.diff(net.succ_ptr))
    if net.triangle and (chip[net.succ] - chip[rows] > 1).any():
        return False
    for c in range(net.chips if net.memory else 0):
        mine = np.flatnonzero(chip == c)
        groups = {g for v in mine for g in net.group[net.group_ptr[v] : net.group_ptr[v + 1]]}
        if net.weight[mine].sum() + sum(net.group_bytes[g] for g in groups) > net.capacity[c]:
            return False
    return True


def cut_log_probs(
    net: Network, order: np.ndarray, log_probs: np.ndarray, domain: np.ndarray | None = None
) -> np.ndarray:
    """The sums of [M, k] log-probabilities over the chips of every set of legal cuts."""
    everything = np.full(len(order), (1 << net.chips) - 1)
    rows = np.arange(len(order))
    every = legal_cuts(net, order, everything if domain is None else domain)
    return np.array([log_probs[rows, chip].sum() for chip in every])
