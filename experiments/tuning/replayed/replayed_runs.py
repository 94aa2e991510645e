"""Schedulers on recorded networks: paths of an inner tuner, and latency over virtual time.

Arms are rested: what an inner tuner proposes depends on its own trials alone, whoever schedules. So
its path is computed once, and each scheduler walks it batch by batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path

import numpy as np
from jaxtyping import Float64

from go_rl.core.files.whole_file import whole_file
from go_rl.tuning.loop.belief.belief import Belief, CurvePrediction
from go_rl.tuning.loop.belief.curve_belief import CurveBelief
from go_rl.tuning.loop.belief.curve_library import CurveLibrary
from go_rl.tuning.loop.belief.transfer_belief import TransferBelief
from go_rl.tuning.loop.journal import MemoryJournal
from go_rl.tuning.loop.nouns import Candidate, Trial
from go_rl.tuning.loop.schedulers import SCHEDULERS, scheduler_of
from go_rl.tuning.loop.schedulers.plain_schedulers import RoundRobin
from go_rl.tuning.loop.schedulers.upper_confidence_bound import DYNATUNE, RELATIVE
from go_rl.tuning.loop.slot_loop import tune_operators
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.loop.tuning_state import TuningState
from go_rl.tuning.pools.candidate_pool import FOLDER, PoolSet, load_pools
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


NETWORKS = ("resnet18", "squeezenet", "vgg16-64px", "transformer-encoder")
"""Whose recorded pools ship."""
POINTS = 400
"""Moments at which curves are compared, evenly over the budget."""
TRANSFER = {f"{name}-transfer": name for name in (DYNATUNE, RELATIVE, "epsilon-greedy")}
"""Schedulers over our own belief, and those that they are otherwise."""
ALL = (*SCHEDULERS, *TRANSFER)
NEAR = 0.01
"""What is called near the final latency."""


@dataclass(eq=False)
class KeptBelief:
    """A belief that remembers: schedulers that walk the same paths share its predictions."""

    belief: Belief
    seconds: list[float] = field(default_factory=list)
    """Of the processor, of each fit."""
    acceptance: list[float] = field(default_factory=list)
    _kept: dict[tuple, CurvePrediction] = field(default_factory=dict)

    def predict(
        self, curve: Sequence[float], horizon: int, peak: float, seed: tuple[int, int]
    ) -> CurvePrediction:
        """See `Belief`."""
        key = (len(curve), horizon, seed)
        if key not in self._kept:
            began = time.process_time()
            self._kept[key] = self.belief.predict(curve, horizon, peak, seed)
            self.seconds.append(time.process_time() - began)
            self.acceptance.append(self._kept[key].acceptance)
        return self._kept[key]


@dataclass(frozen=True, eq=False)
class Setting:
    """One network with the paths of one seed."""

    pools: PoolSet
    paths: list[list[Trial]]
    config: SlotConfig
    """Batches, patience, seed and order of the first round; the seconds are `budget`."""
    published: KeptBelief = field(default_factory=lambda: KeptBelief(CurveBelief()))
    own: KeptBelief | None = None
    """None: there are no curves of other networks."""

    @property
    def budget(self) -> float:
        """Virtual seconds in which every operator is finished."""
        return float(sum(trial.spent for path in self.paths for trial in path))

    def run(self, name: str) -> tuple[TuningState, Float64[np.ndarray, "B 2"]]:
        """Return where a run by a scheduler of `ALL` ends, and [B, 2] virtual seconds and latency
        after each batch, from the end of the warm-up on."""
        if name in TRANSFER:
            assert self.own is not None
            scheduler = scheduler_of(TRANSFER[name], self.own)
        else:
            scheduler = scheduler_of(name, self.published, self.paths)
        journal = MemoryJournal()
        paths, backend = iter(self.paths), ReplayBackend(self.pools)
        config = replace(self.config, seconds=self.budget * (1 + 1e-9))
        state = tune_operators(
            backend, scheduler, lambda *_: RecordedPath(next(paths)), config,
            journal=journal,
        )  # fmt: skip
        again = TuningState(backend.operators, 0.0, backend.peak_flops, config)
        points: list[tuple[float, float]] = []
        for batch in journal.kept:
            again.add(batch)
            if np.isfinite(again.latency):
                points.append((again.elapsed, again.latency))
        return state, np.array(points)


@dataclass(frozen=True)
class ReplayOptions:
    """Options that replays share."""

    folder: Path = Path("build/schedulers_replayed")
    """Of paths and finished runs."""
    pools: Path = FOLDER
    """Folder of the pools."""
    batch: int = 32
    patience: int = 200

    def sets(self, networks: Iterable[str]) -> list[PoolSet]:
        """Return the pools of networks."""
        return [load_pools(self.pools / f"{name}.npz") for name in networks]

    def paths(self, pools: PoolSet, tuner: str, seed: int) -> list[list[Trial]]:
        """Return the trials of each operator by an inner tuner, in order; what is missing is
        computed."""
        return [self._path(pools, tuner, seed, k) for k in range(len(pools.pools))]

    def _path(self, pools: PoolSet, tuner: str, seed: int, operator: int) -> list[Trial]:
        words = (pools.network, pools.digest, tuner, self.batch, self.patience, operator, seed)
        path = self.folder / "paths" / ("-".join(map(str, words)) + ".npy")
        if not path.exists():
            alone = replace(pools, pools=(pools.pools[operator],))
            whole = replace(self._config(seed), seconds=ALWAYS, slot=ALWAYS)
            seeded = seed * len(pools.pools) + operator  # as `tune_operators` seeds it
            journal, make_tuner = MemoryJournal(), inner_tuner(tuner)
            tune_operators(
                ReplayBackend(alone), RoundRobin(dynamic=True),
                lambda space, _: make_tuner(space, seeded), whole, journal=journal,
            )  # fmt: skip
            trials = [trial for batch in journal.kept for trial in batch.trials]
            keys = np.array([int(trial.candidate.key, 16) for trial in trials], np.uint64)
            with whole_file(path) as file:
                np.save(file, keys)
            print(f"path {'-'.join(map(str, words))}: {len(keys)} trials", flush=True)
        backend, keys = ReplayBackend(pools), np.load(path).tolist()
        return [backend.trial(operator, Candidate(f"{key:016x}")) for key in keys]

    def _config(self, seed: int) -> SlotConfig:
        return SlotConfig(batch=self.batch, patience=self.patience, seed=seed)

    def library(self, networks: Sequence[PoolSet], tuner: str, seeds: range) -> CurveLibrary:
        """Return the curves of all networks and seeds."""
        curves, names = [], []
        for pools, seed in product(networks, seeds):
            own = curves_of(pools, self.paths(pools, tuner, seed))
            curves += own
            names += [pools.network] * len(own)
        about = {
            "tuner": tuner, "seeds": len(seeds), "batch": self.batch,
            "pools": {pools.network: pools.digest for pools in networks},
        }  # fmt: skip
        return CurveLibrary(tuple(curves), tuple(names), about)

    def setting(
        self, pools: PoolSet, seed: int, tuner: str, library: CurveLibrary | None = None
    ) -> Setting:
        """Return a network with the paths of one seed, and our belief if there are curves of
        other networks."""
        paths, own = self.paths(pools, tuner, seed), None
        if library is not None and len(set(library.networks)) > 1:
            own = KeptBelief(TransferBelief(library.without(pools.network)))
        return Setting(pools, paths, self._config(seed), own=own)


def reached(points: Float64[np.ndarray, "B 2"], latency: float) -> float:
    """Return the virtual seconds after which a run has a latency; infinite: it never has."""
    there = np.flatnonzero(points[:, 1] <= latency * (1 + 1e-9))
    return float(points[there[0], 0]) if len(there) else float("inf")


def at_moments(points: Float64[np.ndarray, "B 2"], budget: float) -> Float64[np.ndarray, "moments"]:
    """Return the latency at `POINTS` moments of the budget; before the first point the first."""
    moments = np.linspace(0, budget, POINTS)
    places = np.searchsorted(points[:, 0], moments, side="right") - 1
    return points[np.maximum(places, 0), 1]
