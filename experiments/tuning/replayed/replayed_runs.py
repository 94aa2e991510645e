"""One scheduler on one recorded network: its curve of latency over virtual time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float64

from experiments.tuning.replayed.recorded_paths import RecordedPath
from go_rl.tuning.config import FirstRound
from go_rl.tuning.loop.belief.belief import Belief, CurvePrediction
from go_rl.tuning.loop.belief.curve_belief import CurveBelief
from go_rl.tuning.loop.belief.curve_library import CurveLibrary
from go_rl.tuning.loop.belief.transfer_belief import TransferBelief
from go_rl.tuning.loop.journal import MemoryJournal
from go_rl.tuning.loop.nouns import Trial
from go_rl.tuning.loop.schedulers import SCHEDULERS, Scheduler, scheduler_of
from go_rl.tuning.loop.schedulers.upper_confidence_bound import DYNATUNE, RELATIVE
from go_rl.tuning.loop.slot_loop import tune_operators
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.loop.tuning_state import TuningState
from go_rl.tuning.pools.candidate_pool import PoolSet
from go_rl.tuning.pools.replay import ReplayBackend

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
    seed: int
    batch: int
    patience: int
    published: KeptBelief = field(default_factory=lambda: KeptBelief(CurveBelief()))
    own: KeptBelief | None = None
    """None: there are no curves of other networks."""
    first_round: FirstRound = "slowest"
    """Order of each operator's first slot, under dynamic schedulers."""

    @property
    def budget(self) -> float:
        """Virtual seconds in which every operator is finished."""
        return float(sum(trial.spent for path in self.paths for trial in path))

    def scheduler(self, name: str) -> Scheduler:
        """Return a scheduler of `ALL`."""
        if name not in TRANSFER:
            return scheduler_of(name, self.published, self.paths)
        assert self.own is not None
        return scheduler_of(TRANSFER[name], self.own)

    def run(self, name: str) -> tuple[TuningState, Float64[np.ndarray, "B 2"]]:
        """Return `walked` by a scheduler of `ALL`."""
        return self.walked(self.scheduler(name))

    def walked(self, scheduler: Scheduler) -> tuple[TuningState, Float64[np.ndarray, "B 2"]]:
        """Return where a run ends, and [B, 2] virtual seconds and latency after each batch, from
        the end of the warm-up on."""
        journal = MemoryJournal()
        paths, backend = iter(self.paths), ReplayBackend(self.pools)
        config = SlotConfig(
            seconds=self.budget * (1 + 1e-9), batch=self.batch, patience=self.patience,
            seed=self.seed, first_round=self.first_round,
        )  # fmt: skip
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


def own_belief(library: CurveLibrary | None, network: str) -> KeptBelief | None:
    """Return our belief without the network that it predicts; None where nothing else is known."""
    if library is None or len(set(library.networks)) < 2:
        return None
    return KeptBelief(TransferBelief(library.without(network)))


def reached(points: Float64[np.ndarray, "B 2"], latency: float) -> float:
    """Return the virtual seconds after which a run has a latency; infinite: it never has."""
    there = np.flatnonzero(points[:, 1] <= latency * (1 + 1e-9))
    return float(points[there[0], 0]) if len(there) else float("inf")


def at_moments(points: Float64[np.ndarray, "B 2"], budget: float) -> Float64[np.ndarray, "moments"]:
    """Return the latency at `POINTS` moments of the budget; before the first point the first."""
    moments = np.linspace(0, budget, POINTS)
    places = np.searchsorted(points[:, 0], moments, side="right") - 1
    return points[np.maximum(places, 0), 1]
