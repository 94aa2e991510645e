"""Several independent searches on threads, kept within one budget."""

from __future__ import annotations

import os
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import InitVar, dataclass, field

import numpy as np
from jaxtyping import Int16, Int32

from go_rl.core import Progress
from go_rl.objectives.host.hypergraph import Hypergraph
from go_rl.objectives.host.methods.block_moves import CoolingSchedule
from go_rl.objectives.host.methods.coarsening import carry_up, coarsen
from go_rl.objectives.host.workspace import HostWorkspace

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
START_SHARE = 0.5
"""Starts end once they took this many times the time that is left."""
SETUP_SECONDS_A_PIN = 4e-6
"""First guess of the time of full coarsening, for each pin of the hypergraph."""

BlockDevices = Int16[np.ndarray, "B"]
"""[B] device of each block."""
Start = tuple[float, BlockDevices]
"""Value and devices of an assignment."""


@dataclass
class WalkerPace:
    """Speed of a walker, measured in its last cycle."""

    rate: float
    """Moves a second."""
    setup_seconds: float = 0.0
    """Full coarsening, before the first move."""

    def measure(self, moves: int, setup_seconds: float, seconds: float) -> None:
        """Take over what one cycle showed; a shallow one says nothing about full coarsening."""
        self.rate = moves / max(1e-6, seconds)
        self.setup_seconds = max(self.setup_seconds, setup_seconds)


@dataclass(frozen=True)
class WalkSettings:
    """Settings of the walkers of one objective."""

    orders: int
    """Linear orders that the DP splits for a start."""
    moves_a_cycle: int
    """Moves of one walker's first coarsen-anneal cycle; later cycles grow."""
    hot: float
    """Largest first temperature of a cycle, relative to what is minimised."""
    cold: float
    """Last temperature."""
    decades: float
    """First temperatures lie up to this many powers of ten below `hot`."""
    moves_a_second: float
    """First guess of a walker's pace."""
    walkers: int = 4
    """Independent searches; results do not depend on how many threads serve them."""


class Landscape(ABC):
    """Abstract: assignments of blocks to devices under one objective."""

    def __init__(self, workspace: HostWorkspace) -> None:
        self.workspace, self.problem = workspace, workspace.problem
        self.contraction = workspace.contraction

    @abstractmethod
    def candidates(self, seed: int, count: int) -> Iterator[BlockDevices]:
        """Yield assignments from up to ``count`` orders."""

    @abstractmethod
    def fallback(self) -> BlockDevices:
        """Return some assignment, legal or not."""

    @abstractmethod
    def value(self, device: BlockDevices) -> float:
        """Return the seconds of an assignment, inf when it is illegal; safe on any thread."""

    @abstractmethod
    def anneal(
        self,
        hypergraph: Hypergraph,
        owner: Int32[np.ndarray, "N"],
        device: BlockDevices,
        schedule: CoolingSchedule,
        rng: np.random.Generator,
    ) -> tuple[BlockDevices, float]:
        """Anneal one level, the block of each node being ``owner`` [N].

        Returns the best assignment and its value, inf when none was legal; the last assignment is
        left in ``device``.
        """

    @abstractmethod
    def search(
        self, walkers: Sequence[Walker], progress: Progress, seed: int
    ) -> tuple[BlockDevices | None, float, Progress]:
        """Spend the budget; return the best assignment, the bound, and the progress."""

    def starts(self, seed: int, count: int, progress: Progress) -> list[Start]:
        """Return distinct candidates, best first, each counted as a sample; the fallback where
        there is none."""
        found: dict[bytes, Start] = {}
        for device in self.candidates(seed, count):
            found[device.tobytes()] = self._priced(device, progress)
            if progress.spent or progress.wall_seconds > START_SHARE * progress.remaining_seconds:
                break
        if not found:
            return [self._priced(self.fallback(), progress)]
        return sorted(found.values(), key=lambda start: start[0])

    def _priced(self, device: BlockDevices, progress: Progress) -> Start:
        value = self.value(device)
        progress.record(value)
        return value, device


@dataclass
class Walker:
    """One search: where it is, the best it saw, and how fast it moves."""

    landscape: Landscape
    settings: WalkSettings
    start: InitVar[Start]
    rng: np.random.Generator
    device: BlockDevices = field(init=False)
    best: BlockDevices = field(init=False)
    least: float = field(init=False)
    pace: WalkerPace = field(init=False)
    stale: int = 0

    def __post_init__(self, start: Start) -> None:
        pins = len(self.landscape.contraction.hypergraph.pins)
        self.pace = WalkerPace(self.settings.moves_a_second, SETUP_SECONDS_A_PIN * pins)
        self.least, self.device = start
        self.best = self.device.copy()

    def cycle(self, moves: int, depth: float) -> int:
        """Coarsen to ``depth`` (0: not at all, 1: fully), anneal every level from the coarsest
        down; return the moves made."""
        started, contraction = time.perf_counter(), self.landscape.contraction
        levels = coarsen(contraction.hypergraph, self.device, self.rng, depth)[: moves - 1]
        coarsened = time.perf_counter()
        graphs = [contraction.hypergraph, *(graph for graph, _ in levels)]
        owners, device = [contraction.block], self.device
        for _, cluster in levels:
            owners.append(cluster[owners[-1]])
            device = carry_up(device, cluster)
        hot, cold = self.settings.hot, self.settings.cold
        hot *= 10.0 ** (-self.settings.decades * self.rng.random())
        share = max(1, moves // len(graphs))
        for level in range(len(graphs) - 1, -1, -1):
            last, schedule = device.copy(), CoolingSchedule(share, hot, min(cold, hot))
            best, value = self.landscape.anneal(
                graphs[level], owners[level], last, schedule, self.rng
            )
            device = best if np.isfinite(value) else last
            if level > 0:
                device = device[levels[level - 1][1]]
            hot = max(cold, 0.5 * hot)
        self._accept(device)
        made = share * len(graphs)
        self.pace.measure(made, coarsened - started, time.perf_counter() - coarsened)
        return made

    def _accept(self, device: BlockDevices) -> None:
        value = self.landscape.value(device)
        self.stale += 1
        if value < self.least:
            self.best, self.least, self.stale = device.copy(), value, 0
        self.device = device if self.stale < STALE else self.best.copy()


def walk(
    walkers: Sequence[Walker], probe: int, progress: Progress, rng: np.random.Generator
) -> Walker:
    """Run all walkers until the budget ends or its bound is met; returns the best one.

    Under a time limit the first round makes at most ``probe`` moves a walker, to measure the pace;
    the result depends on time only through the budget's seconds.
    """
    first_moves = walkers[0].settings.moves_a_cycle
    moves, done = first_moves, 0
    threads = min(len(walkers), os.cpu_count() or 1)
    lead = min(walkers, key=lambda w: w.least)
    timed = np.isfinite(progress.remaining_seconds)
    with ThreadPoolExecutor(threads) as pool:
        while not progress.spent:
            first = done == 0 and timed
            coarse = not first and _setup(walkers) < 0.5 * SAFETY * progress.remaining_seconds
            share = _share(walkers, probe if first else moves, progress, threads)
            if share < 1:
                break
            depths = [float(rng.random()) if coarse else 0.0 for _ in walkers]
            cycles = [pool.submit(w.cycle, share, d) for w, d in zip(walkers, depths, strict=True)]
            made = sum(cycle.result() for cycle in cycles)
            lead = min(walkers, key=lambda w: w.least)
            progress.record(lead.least, made)
            moves, done = min(int(GROWTH * moves), LARGEST * first_moves), done + 1
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
