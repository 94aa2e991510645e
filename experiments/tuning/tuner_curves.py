"""Inner tuners replayed on recorded pools: the best candidate so far against trials."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
from matplotlib.figure import Figure
from scipy.stats import t as student

from experiments.rows import KeptRows
from go_rl.report.figures import LINE_COLOURS, LINE_STYLES, new_figure
from go_rl.tuning.loop.nouns import InnerTuner, MakeInnerTuner
from go_rl.tuning.pools.candidate_pool import PoolSet
from go_rl.tuning.pools.replay import ReplayBackend

NEAR = 0.95
"""Share of the speed of the pool's best candidate that counts as having found it."""


@dataclass(frozen=True)
class CurveRow:
    """One tuner on one operator's pool with one seed."""

    run: str
    """Of pools and options."""
    network: str
    operator: str
    tuner: str
    seed: int
    trials: int
    found_after: int
    """Trials until a candidate of `NEAR` the best speed; one more than all: never."""
    propose_ms: float
    """CPU milliseconds a trial that choosing took: predictions and fits, not the making of
    candidates and of their features, which a pool holds ready."""
    speeds: str
    """Speed of the best so far relative to the pool's best, after each batch."""

    @property
    def curve(self) -> np.ndarray:
        """`speeds` as numbers."""
        return np.array([float(word) for word in self.speeds.split()])


def tune_operator(
    backend: ReplayBackend, operator: int, tuner: InnerTuner, trials: int, batch: int
) -> tuple[np.ndarray, float]:
    """Return the seconds of the best so far after each trial of an operator, infinite before any
    works, and CPU seconds of proposing; fewer trials where the pool has fewer candidates."""
    seconds: list[float] = []
    spent = 0.0
    while len(seconds) < trials:
        began = time.process_time()
        proposed = tuner.propose(min(batch, trials - len(seconds)))
        spent += time.process_time() - began
        if not proposed:
            break
        measured = backend.measure(operator, proposed)
        tuner.observe(measured)
        seconds += [each.seconds or float("inf") for each in measured]
    return np.minimum.accumulate(seconds), spent


def run_curves(
    table: KeptRows[CurveRow],
    run: str,
    pools: Sequence[PoolSet],
    tuners: Mapping[str, Callable[[PoolSet, int], MakeInnerTuner]],
    seeds: Iterable[int],
    trials: int,
    batch: int,
) -> list[CurveRow]:
    """Return the rows of all tuners on all operators, of this run; those that the table lacks are
    made. ``tuners`` makes a tuner for an operator of a network; ``batch`` candidates are proposed
    together."""
    places = {(pool.network, each.operator.name): (pool, k, ReplayBackend(pool))
              for pool in pools for k, each in enumerate(pool.pools)}  # fmt: skip

    def row(run: str, network: str, operator: str, name: str, seed: int) -> CurveRow:
        pool, k, backend = places[network, operator]
        tuner = tuners[name](pool, k)(backend.space(k), seed)
        best, spent = tune_operator(backend, k, tuner, trials, batch)
        speeds = float(np.nanmin(pool.pools[k].seconds)) / best
        return row_of((run, network, operator, name, seed), speeds, spent, batch)

    asked = product(seeds, places, tuners)
    table.fill(((run, *place, name, seed) for seed, place, name in asked), row)
    return [row for row in table.rows if row.run == run and row.tuner in tuners]


def row_of(
    key: tuple[str, str, str, str, int], speeds: np.ndarray, spent: float, batch: int
) -> CurveRow:
    """Return a row of its first fields, and of the relative speed of the best so far after each
    trial."""
    count = len(speeds)
    found = int(np.argmax(speeds >= NEAR)) + 1 if speeds[-1] >= NEAR else count + 1
    after = [min(end, count) - 1 for end in range(batch, count + batch, batch)]
    words = " ".join(f"{speeds[i]:.4f}" for i in after)
    return CurveRow(*key, count, found, 1e3 * spent / count, words)


def seed_means(rows: Sequence[CurveRow], tuner: str) -> np.ndarray:
    """Return [seeds, batches] the mean speed over all operators; a pool that is used up keeps its
    last speed."""
    mine = [row for row in rows if row.tuner == tuner]
    longest = max(len(row.curve) for row in rows)
    found = []
    for seed in sorted({row.seed for row in mine}):
        curves = [row.curve for row in mine if row.seed == seed]
        padded = [np.pad(curve, (0, longest - len(curve)), mode="edge") for curve in curves]
        found.append(np.mean(padded, axis=0))
    return np.array(found)


def band(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean over the first axis, and half the width of its 95 % interval (Student)."""
    count = len(values)
    if count < 2:
        return values.mean(axis=0), np.full(values.shape[1:], np.nan)
    error = values.std(axis=0, ddof=1) / np.sqrt(count)
    return values.mean(axis=0), float(student.ppf(0.975, count - 1)) * error


def median_found(rows: Sequence[CurveRow], tuner: str) -> float:
    """Return the median, over operators and seeds, of the trials until `NEAR` the best."""
    return float(np.median([row.found_after for row in rows if row.tuner == tuner]))


def figure(rows: Sequence[CurveRow], tuners: Sequence[str], batch: int) -> Figure:
    """Return mean speed against trials with 95 % bands over seeds."""
    picture = new_figure(6.4, 4.0)
    axes = picture.subplots()
    for i, name in enumerate(tuners):
        mean, half = band(seed_means(rows, name))
        at = batch * np.arange(1, len(mean) + 1)
        colour = LINE_COLOURS[i % len(LINE_COLOURS)]
        axes.plot(at, mean, label=name, color=colour, linestyle=LINE_STYLES[i % len(LINE_STYLES)])
        axes.fill_between(at, mean - half, mean + half, color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel("trials of an operator")
    axes.set_ylabel("speed of the best so far over the pool's best")
    axes.legend(frameon=False)
    return picture
