"""Larger ring problems that are known to be feasible: layers of nodes with skips between them."""

import numpy as np
from reference.small_rings import ring_problem

from go_rl.core import Problem


def layered_ring(seed: int, nodes: int, chips: int, rules: str) -> Problem:
    """Layers of one to five nodes; each node reads one to three of the few layers before it, and
    some read a constant. Weights leave half of the memory free."""
    rng = np.random.default_rng(seed)
    edges, earlier, layer = [], [], []
    constants = max(1, nodes // 15)
    for n in range(constants, nodes):
        if len(layer) >= rng.integers(1, 6):
            earlier, layer = [*earlier[-8:], *layer], []
        pool = earlier[-8:]
        for u in rng.permutation(pool)[: int(rng.integers(1, 4))] if pool else []:
            edges.append((int(u), n))
        if rng.random() < 0.2:
            edges.append((int(rng.integers(constants)), n))
        layer.append(n)
    seconds = rng.uniform(0.1, 1.0, nodes)
    seconds[:constants] = 0.0
    weights = np.round(rng.uniform(0, 100, nodes))
    weights[:constants] = 1.0
    return ring_problem(
        nodes,
        edges,
        chips,
        rules,
        weights=weights.tolist(),
        memory_bytes=float(2 * weights.sum() / min(chips, 4) + 400),
        seconds=seconds.tolist(),
    )
