"""Several independent searches on threads, kept within one budget."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Int16

from go_rl.core import Progress

GROWTH = 1.3
"""Each round's moves, relative to the last round's."""
LARGEST = 100
"""Most moves of a round, relative to the first round's."""
EXCHANGE = 8
"""Rounds between two times that the worst walker goes on from the best one's assignment."""
SAFETY = 0.9
"""Share of the time left that a round may plan for."""
STALE = 5
"""Cycles without a new best after which a walker returns to its best."""


SETUP_SECONDS_A_PIN = 4e-6
"""First guess of the time of full coarsening, for each pin of the hypergraph."""


@dataclass
class WalkerPace:
    """How fast a walker is, measured in its last cycle."""

    rate: float
    """Moves a second."""
    setup_seconds: float = 0.0
    """Full coarsening, before the first move."""

    def measure(self, moves: int, setup_seconds: float, seconds: float) -> None:
        """Take over what one cycle showed; a shallow one says nothing about full coarsening."""
        self.rate = moves / max(1e-6, seconds)
        self.setup_seconds = max(self.setup_seconds, setup_seconds)


@runtime_checkable
class Walker(Protocol):
    """One search over assignments of blocks."""

    device: Int16[np.ndarray, "B"]
    best: Int16[np.ndarray, "B"]
    least: float
    pace: WalkerPace

    def cycle(self, moves: int, depth: float) -> int:
        """Coarsen to ``depth`` (0: not at all, 1: fully), anneal; returns the moves made."""
        ...


@dataclass(frozen=True)
class Rounds:
    """How many moves each walker makes in a round."""

    probe: int
    """First round, under a time limit: measures the pace."""
    moves: int
    """First full round."""


def walk(
    walkers: Sequence[Walker],
    rounds: Rounds,
    progress: Progress,
    rng: np.random.Generator,
) -> Walker:
    """Run all walkers until the budget ends or its bound is met; returns the best one.

    The result depends on time only through the budget's seconds.
    """
    moves, done = rounds.moves, 0
    threads = min(len(walkers), os.cpu_count() or 1)
    lead = min(walkers, key=lambda w: w.least)
    timed = np.isfinite(progress.remaining_seconds)
    with ThreadPoolExecutor(threads) as pool:
        while not progress.spent:
            first = done == 0 and timed
            coarse = not first and _setup(walkers) < 0.5 * SAFETY * progress.remaining_seconds
            share = _share(walkers, rounds.probe if first else moves, progress, threads)
            if share < 1:
                break
            depths = [float(rng.random()) if coarse else 0.0 for _ in walkers]
            cycles = [pool.submit(w.cycle, share, d) for w, d in zip(walkers, depths, strict=True)]
            made = sum(cycle.result() for cycle in cycles)
            lead = min(walkers, key=lambda w: w.least)
            progress.record(lead.least, made)
            moves, done = min(int(GROWTH * moves), LARGEST * rounds.moves), done + 1
            worst = max(walkers, key=lambda w: w.least)
            if done % EXCHANGE == 0 and lead.least < worst.least:
                worst.device = lead.best.copy()
    return lead


def _setup(walkers: Sequence[Walker]) -> float:
    return sum(w.pace.setup_seconds for w in walkers)


def _share(walkers: Sequence[Walker], moves: int, progress: Progress, threads: int) -> int:
    """Moves of each walker's next cycle that the budget still pays for."""
    rate = min(w.pace.rate for w in walkers) * threads / len(walkers)
    left = SAFETY * progress.remaining_seconds
    setup = _setup(walkers)
    left -= setup if setup < 0.5 * left else 0.0
    return int(max(0.0, min(moves, progress.remaining_samples / len(walkers), left * rate)))
