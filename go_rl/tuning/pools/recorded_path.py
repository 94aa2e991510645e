"""`RecordedPath`: an inner tuner's own path over a pool, recorded once and walked again and again.

Arms are rested: what an inner tuner proposes depends on its own trials alone, whoever schedules. So
its path is computed once, and each scheduler walks it batch by batch.
"""

from __future__ import annotations

from collections.abc import Sequence

from go_rl.tuning.loop.journal import MemoryJournal
from go_rl.tuning.loop.nouns import MakeInnerTuner, Schedule, Trial
from go_rl.tuning.loop.schedulers.round_robin import RoundRobin
from go_rl.tuning.loop.slot_loop import tune_operators
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.pools.replay import ReplayBackend
from go_rl.tuning.pools.schedule_pool import PoolSet

ALWAYS = 1e12
"""Seconds that no run uses up."""


class RecordedPath:
    """Proposes what was proposed when the path was recorded.

    Args:
        path: trials in their order.
    """

    def __init__(self, path: Sequence[Trial]) -> None:
        self._path, self._done = path, 0

    def propose(self, count: int) -> list[Schedule]:
        """Return the next schedules; fewer at the path's end."""
        return [trial.schedule for trial in self._path[self._done : self._done + count]]

    def observe(self, trials: Sequence[Trial]) -> None:
        """Go on."""
        self._done += len(trials)


def record_path(
    pools: PoolSet, operator: int, make_tuner: MakeInnerTuner, config: SlotConfig
) -> list[Trial]:
    """Return the trials of one operator, until it is finished.

    Args:
        pools: of the network.
        operator: by its number.
        make_tuner: makes the inner tuner.
        config: its ``batch``, ``patience`` and ``seed``.
    """
    alone = PoolSet(
        pools.network, pools.target, pools.peak_flops, (pools.pools[operator],), pools.provenance
    )
    whole = SlotConfig(
        seconds=ALWAYS, batch=config.batch, patience=config.patience, seed=config.seed, slot=ALWAYS
    )
    journal, count = MemoryJournal(), len(pools.pools)
    seeded = config.seed * count + operator  # as `tune_operators` seeds it
    tune_operators(
        ReplayBackend(alone), RoundRobin(dynamic=True),
        lambda space, _: make_tuner(space, seeded), whole, journal=journal,
    )  # fmt: skip
    return [trial for batch in journal.kept for trial in batch.trials]
