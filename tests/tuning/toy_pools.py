"""Small pools whose curves are known."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from go_rl.tuning.loop.nouns import Candidate, CandidateSpace, Trial, TunedOperator
from go_rl.tuning.loop.schedulers import scheduler_of
from go_rl.tuning.loop.slot_loop import tune_operators
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.loop.tuning_state import TuningState
from go_rl.tuning.pools.candidate_pool import CandidatePool, PoolSet
from go_rl.tuning.pools.replay import ReplayBackend

PEAK = 1e11


def pool(name: str, repeats: int, flops: float, seconds: Sequence[float], spent: float = 1.0):
    """A pool with one feature, the order."""
    count = len(seconds)
    return CandidatePool(
        TunedOperator(name, f"workload of {name}", repeats, flops),
        np.array(seconds, np.float32), np.full(count, spent, np.float32),
        np.arange(count, dtype=np.float32)[:, None], np.arange(count, dtype=np.uint64),
    )  # fmt: skip


def pool_set(*pools: CandidatePool) -> PoolSet:
    """The pools as a network."""
    return PoolSet("toy", "toy-target", PEAK, tuple(pools), {"made": "by hand"})


class InOrder:
    """An inner tuner that proposes a pool from its first candidate to its last."""

    def __init__(self, space: CandidateSpace, seed: int) -> None:
        self._candidates = sorted(
            space.draw(10**6, np.random.default_rng(seed)), key=lambda each: each.key
        )
        self._done = 0

    def propose(self, count: int) -> list[Candidate]:
        return self._candidates[self._done : self._done + count]

    def observe(self, trials: Sequence[Trial]) -> None:
        self._done += len(trials)


def paths_of(pools: PoolSet) -> list[list[Trial]]:
    """The trials of `InOrder` on each pool."""
    backend = ReplayBackend(pools)
    return [
        [
            backend.trial(k, candidate)
            for candidate in InOrder(backend.space(k), 0).propose(10**6)
        ]
        for k in range(len(pools.pools))
    ]  # fmt: skip


def tune(
    pools: PoolSet, name: str = "round-robin", journal: Any = None, reuse: Any = None, **config: Any
) -> TuningState:
    """Tune in that order by a scheduler, two trials at a time, until three are no better."""
    given = {"seconds": 100.0, "batch": 2, "patience": 3, "slot": 2.0, **config}
    scheduler = scheduler_of(name, paths=paths_of(pools))
    return tune_operators(
        ReplayBackend(pools), scheduler, InOrder, SlotConfig(**given), journal=journal, reuse=reuse
    )
