"""Paths of an inner tuner over recorded pools, kept in a folder once they are computed.

Arms are rested: what an inner tuner proposes depends on its own trials alone, whoever schedules. So
its path is computed once, and each scheduler walks it batch by batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from go_rl.core.files.whole_file import whole_file
from go_rl.tuning.loop.belief.curve_library import CurveLibrary
from go_rl.tuning.loop.journal import MemoryJournal
from go_rl.tuning.loop.nouns import Candidate, MakeInnerTuner, Trial
from go_rl.tuning.loop.schedulers.round_robin import RoundRobin
from go_rl.tuning.loop.slot_loop import tune_operators
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.pools.candidate_pool import PoolSet
from go_rl.tuning.pools.replay import ReplayBackend
from go_rl.tuning.tuners import inner_tuner

ALWAYS = 1e12
"""Seconds that no run uses up."""


class RecordedPath:
    """Proposes what was proposed when the path was recorded.

    Args:
        path: trials in their order.
    """

    def __init__(self, path: Sequence[Trial]) -> None:
        self._path, self._done = path, 0

    def propose(self, count: int) -> list[Candidate]:
        """Return the next candidates; fewer at the path's end."""
        return [trial.candidate for trial in self._path[self._done : self._done + count]]

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


@dataclass(frozen=True)
class PathStore:
    """Where paths are kept."""

    folder: Path
    tuner: str
    """Name of the inner tuner."""
    batch: int = 16
    patience: int = 200

    def paths(self, pools: PoolSet, seed: int) -> list[list[Trial]]:
        """Return the trials of each operator, in order; what is missing is computed."""
        return [self._path(pools, operator, seed) for operator in range(len(pools.pools))]

    def _path(self, pools: PoolSet, operator: int, seed: int) -> list[Trial]:
        words = (pools.network, pools.digest, self.tuner, self.batch, self.patience, operator, seed)
        path = self.folder / ("-".join(map(str, words)) + ".npy")
        backend = ReplayBackend(pools)
        if not path.exists():
            config = SlotConfig(batch=self.batch, patience=self.patience, seed=seed)
            trials = record_path(pools, operator, inner_tuner(self.tuner), config)
            keys = np.array([int(trial.candidate.key, 16) for trial in trials], np.uint64)
            with whole_file(path) as file:
                np.save(file, keys)
            print(f"path {'-'.join(map(str, words))}: {len(keys)} trials", flush=True)
        keys = np.load(path)
        return [backend.trial(operator, Candidate(f"{key:016x}")) for key in keys.tolist()]


def curves_of(pools: PoolSet, paths: list[list[Trial]]) -> list[np.ndarray]:
    """Return performance over the peak after each trial of each operator, from the first that
    worked on."""
    found = []
    for pool, path in zip(pools.pools, paths, strict=True):
        seconds = np.array([np.inf if t.seconds is None else t.seconds for t in path])
        best = np.minimum.accumulate(seconds)
        curve = pool.operator.flops / best[np.isfinite(best)] / pools.peak_flops
        found.append(np.minimum(curve, 1.0).astype(np.float32))
    return found


def library_of(networks: list[PoolSet], store: PathStore, seeds: range) -> CurveLibrary:
    """Return the curves of all networks and seeds."""
    curves, names = [], []
    for pools in networks:
        for seed in seeds:
            own = curves_of(pools, store.paths(pools, seed))
            curves += own
            names += [pools.network] * len(own)
    about = {
        "tuner": store.tuner, "seeds": len(seeds), "batch": store.batch,
        "pools": {pools.network: pools.digest for pools in networks},
    }  # fmt: skip
    return CurveLibrary(tuple(curves), tuple(names), about)
