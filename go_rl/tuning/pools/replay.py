"""`ReplayBackend`: tuning over recorded pools, with a clock of its own.

Measuring a candidate gives the seconds that were recorded for it and advances the clock by what
building and timing it took then; nothing else takes time. Equal runs are equal to the last bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from jaxtyping import Float32, Int64

from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Candidate, CandidateSpace, Trial, TunedOperator
from go_rl.tuning.pools.candidate_pool import CandidatePool, PoolSet
from go_rl.tuning.tuners.adaptive_sampling import standardised

NEAREST = 8
"""Candidates of a pool that are neighbours of one."""


class PoolSpace:
    """The candidates of a pool.

    Args:
        pool: of the operator.
    """

    def __init__(self, pool: CandidatePool) -> None:
        self._pool = pool
        self._candidates = [Candidate(f"{key:016x}") for key in pool.keys.tolist()]
        self._rows = {each.key: row for row, each in enumerate(self._candidates)}

    def draw(self, count: int, rng: np.random.Generator) -> list[Candidate]:
        """Return up to ``count`` random candidates, without replacement."""
        chosen = rng.permutation(len(self._candidates))[:count]
        return [self._candidates[row] for row in chosen.tolist()]

    def neighbour(self, candidate: Candidate, rng: np.random.Generator) -> Candidate | None:
        """Return one of the `NEAREST` candidates by features; None: the pool has one candidate."""
        near = self._near[self.row(candidate)]
        return self._candidates[int(near[rng.integers(len(near))])] if len(near) else None

    def features(self, candidates: Sequence[Candidate]) -> Float32[np.ndarray, "S numbers"]:
        """Return [S, numbers] recorded features."""
        return self._pool.features[[self.row(each) for each in candidates]]

    def row(self, candidate: Candidate) -> int:
        """Return where a candidate lies in the pool.

        Raises:
            TuningError: it is not there.
        """
        if candidate.key not in self._rows:
            raise TuningError(
                f"{self._pool.operator.name}: candidate {candidate.key!r} is not in the recorded "
                "pool"
            )
        return self._rows[candidate.key]

    @cached_property
    def _near(self) -> Int64[np.ndarray, "S near"]:
        """[S, near] rows of the nearest candidates, by features of deviation 1."""
        scaled = standardised(self._pool.features)
        squares = (scaled**2).sum(1)
        distances = squares[:, None] + squares - 2 * scaled @ scaled.T
        np.fill_diagonal(distances, np.inf)
        count = min(NEAREST, len(scaled) - 1)
        return np.argsort(distances, axis=1, kind="stable")[:, :count]


class ReplayBackend:
    """A network's recorded pools as a back end.

    Args:
        pools: of the network.
    """

    def __init__(self, pools: PoolSet) -> None:
        self._pools, self._now = pools, 0.0
        self._spaces = [PoolSpace(pool) for pool in pools.pools]

    @property
    def target(self) -> str:
        """Target of the recording."""
        return self._pools.target

    @property
    def operators(self) -> tuple[TunedOperator, ...]:
        """The recorded operators."""
        return tuple(pool.operator for pool in self._pools.pools)

    @property
    def fixed_seconds(self) -> float:
        """Seconds of the rest: 0, for nothing else was recorded."""
        return 0.0

    @property
    def peak_flops(self) -> float:
        return self._pools.peak_flops

    def space(self, operator: int) -> CandidateSpace:
        """Return the pool of an operator."""
        return self._spaces[operator]

    def measure(self, operator: int, candidates: Sequence[Candidate]) -> list[Trial]:
        """Return what was recorded, and advance the clock."""
        trials = [self.trial(operator, candidate) for candidate in candidates]
        self._now += sum(trial.spent for trial in trials)
        return trials

    def trial(self, operator: int, candidate: Candidate) -> Trial:
        """Return what was recorded of a candidate."""
        pool, row = self._pools.pools[operator], self._spaces[operator].row(candidate)
        seconds, spent = float(pool.seconds[row]), float(pool.spent[row])
        if np.isnan(seconds):
            return Trial(candidate, None, spent, "it failed when it was recorded")
        return Trial(candidate, seconds, spent)

    def clock(self) -> float:
        """Return seconds of the replay."""
        return self._now
