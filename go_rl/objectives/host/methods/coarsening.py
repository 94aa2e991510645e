"""Random coarsening of a max-load hypergraph inside the devices of a given assignment.

Blocks on one device that share costly nets are merged pair by pair, so that a coarse level moves
whole groups; the assignment stays representable at every level (iterated multilevel search,
Karypis et al., "Multilevel hypergraph partitioning", 1999).
"""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from jaxtyping import Int16, Int32
from numba import njit

from go_rl.objectives.host.hypergraph import Hypergraph, contract

STOP_RATIO = 0.95
"""A level that keeps more than this share of its blocks ends the coarsening."""
LEAST_BLOCKS_A_DEVICE = 3
"""The coarsest level has at least this many blocks a device."""
WIDE_NET = 256
"""Nets with more pins say nothing about which blocks belong together."""

Level = tuple[Hypergraph, Int32[np.ndarray, "_"]]
"""A coarser hypergraph, and the cluster [B] of each block of the one below."""


def coarsen(
    hypergraph: Hypergraph,
    device: Int16[np.ndarray, "B"],
    rng: np.random.Generator,
    depth: float = 1.0,
) -> list[Level]:
    """Return the levels above ``hypergraph``, finest first; clusters never join two devices.

    ``depth`` from 0 (no level) to 1 (as coarse as possible) is linear in the logarithm of blocks.
    """
    levels: list[Level] = []
    least = LEAST_BLOCKS_A_DEVICE * hypergraph.allowed.shape[1]
    target = len(device) * (least / len(device)) ** depth
    while len(device) > max(least, target):
        cluster = match_blocks(hypergraph, device, rng.permutation(len(device)), rng)
        clusters = int(cluster.max()) + 1
        if clusters > STOP_RATIO * len(device):
            break
        hypergraph = contract(hypergraph, cluster)
        device = carry_up(device, cluster)
        levels.append((hypergraph, cluster))
    return levels


def carry_up(
    device: Int16[np.ndarray, "B"], cluster: Int32[np.ndarray, "B"]
) -> Int16[np.ndarray, "C"]:
    """Return the device [C] of each cluster of ``cluster`` [B], whose blocks share it."""
    coarse = np.empty(int(cluster.max()) + 1, np.int16)
    coarse[cluster] = device
    return coarse


@njit(cache=True, nogil=True)
@no_type_check
def match_blocks(hypergraph, device, order, rng):
    """Cluster [B] of a random heavy matching: partners share a device and may sit on the same
    devices; the one with the most net seconds per pin, times a random factor, is chosen. Blocks
    are matched in the random ``order`` [B], drawn by the caller: Numba compiles NumPy's
    permutation for seconds.

    State, over ``B`` blocks:

    - ``partner`` [B]: the matched block, b itself where b stays single, or -1;
    - ``score`` [B]: net seconds per pin shared with the current block;
    - ``met`` [B]: blocks with a score, the first ``found`` valid.
    """
    blocks = device.shape[0]
    partner = np.full(blocks, -1, np.int32)
    score = np.zeros(blocks)
    met = np.empty(blocks, np.int32)
    # Score the free blocks that share a net with b: each net gives seconds / (pins - 1).
    for b in order:
        if partner[b] >= 0:
            continue
        found = 0
        for i in range(hypergraph.block_offsets[b], hypergraph.block_offsets[b + 1]):
            m = hypergraph.nets[i]
            first, last = hypergraph.pin_offsets[m], hypergraph.pin_offsets[m + 1]
            if last - first > WIDE_NET:
                continue
            for j in range(first, last):
                c = hypergraph.pins[j]
                if c == b or partner[c] >= 0 or device[c] != device[b]:
                    continue
                if score[c] == 0.0:
                    met[found] = c
                    found += 1
                score[c] += hypergraph.net_seconds[m] / (last - first - 1)
        # Choose the partner, and clear the scores for the next block.
        best, most = -1, 0.0
        for i in range(found):
            c = met[i]
            shaken = score[c] * rng.random()
            if shaken > most and (hypergraph.allowed[c] == hypergraph.allowed[b]).all():
                best, most = c, shaken
            score[c] = 0.0
        partner[b] = b if best < 0 else best
        if best >= 0:
            partner[best] = b
    # Number the pairs and the single blocks.
    cluster, clusters = np.full(blocks, -1, np.int32), 0
    for b in range(blocks):
        if cluster[b] < 0:
            cluster[b] = clusters
            cluster[partner[b]] = clusters
            clusters += 1
    return cluster
