"""Longest paths through a graph whose nodes are in topological order."""

from __future__ import annotations

from typing import no_type_check

import numpy as np
from numba import njit


@njit(cache=True, nogil=True)
@no_type_check
def longest_tails(nodes, senders, receivers, seconds, between):
    """Return [N] seconds of the longest path from the start of each node to the end of the last.

    Args:
        nodes: N; every edge goes from a lower to a higher one.
        senders: [E] in any order.
        receivers: [E].
        seconds: [N] of each node.
        between: [E] seconds between the end of the sender and the start of the receiver.
    """
    edges = len(senders)
    head, after = np.full(nodes, -1), np.full(edges, -1)
    for e in range(edges):
        after[e], head[senders[e]] = head[senders[e]], e
    tail = np.zeros(nodes)
    for i in range(nodes):
        n = nodes - 1 - i
        longest = 0.0
        e = head[n]
        while e >= 0:
            longest = max(longest, between[e] + tail[receivers[e]])
            e = after[e]
        tail[n] = seconds[n] + longest
    return tail
