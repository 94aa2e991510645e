"""Fusions worth measuring: a pool, ordered by the guide; with predictions, a search."""

from __future__ import annotations

from collections.abc import Callable, Collection

import numpy as np

from go_rl.tuning.xla.fusions import FusionSpace, GraphFusion
from go_rl.tuning.xla.guides import Guide

GENERATIONS = 3
"""Generations of mutants, each from the best by prediction of all before."""
PARENTS = 8
"""Fusions that a generation is made of."""


def propose(
    space: FusionSpace,
    guide: Guide,
    best: GraphFusion | None,
    count: int,
    rng: np.random.Generator,
    over: Callable[[], bool] = lambda: False,
) -> list[GraphFusion]:
    """Return distinct fusions, those first that the guide would measure first.

    Args:
        space: of the graph.
        guide: orders them.
        best: the best one measured so far; from the second round on, half of the pool is mutants.
        count: fusions in the pool, and in each generation of a guide that predicts.
        rng: the source of chance.
        over: says that a guide that predicts has searched long enough.
    """
    pool = space.pool(count if best is None else max(2, count // 2), rng)
    if best is not None:
        pool += space.mutants([best], count // 2, rng)
    found = _ordered(guide, pool, ())
    for _ in range(GENERATIONS if guide.predicts else 0):
        if over():
            break
        parents = [fusion for _, fusion in found[:PARENTS]]
        new = _ordered(guide, space.mutants(parents, count, rng), {f.key for _, f in found})
        found = sorted([*found, *new], key=lambda pair: pair[0])
    return [fusion for _, fusion in found]


def _ordered(
    guide: Guide, pool: list[GraphFusion], known: Collection[str]
) -> list[tuple[float, GraphFusion]]:
    """Distinct fusions that are not known, with their scores, by these."""
    new = list({f.key: f for f in pool if f.key not in known}.values())
    if not new:
        return []
    return sorted(zip(guide.fusions.order(new).tolist(), new, strict=True), key=lambda p: p[0])
