"""A toy space: an integer lattice whose seconds are known, and the loop that tunes on it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np

from go_rl.tuning.loop.nouns import Candidate, InnerTuner, Trial


@dataclass
class Lattice:
    """Points of ``sides``, of which the one at ``optimum`` takes 1 s, and each other the longer,
    the farther it is from there; ``broken``: keys that fail."""

    sides: tuple[int, ...] = (7, 7, 7)
    optimum: tuple[int, ...] = (5, 1, 4)
    broken: frozenset[str] = frozenset()
    measured: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        return prod(self.sides)

    def at(self, point: Sequence[int]) -> Candidate:
        return Candidate(",".join(map(str, point)), list(map(int, point)))

    def draw(self, count: int, rng: np.random.Generator) -> list[Candidate]:
        some = rng.permutation(self.size)[:count]
        return [self.at(np.unravel_index(i, self.sides)) for i in some.tolist()]

    def neighbour(self, candidate: Candidate, rng: np.random.Generator) -> Candidate | None:
        point, axis = list(candidate.document), int(rng.integers(len(self.sides)))
        if self.sides[axis] == 1:
            return None
        point[axis] = (point[axis] + int(rng.integers(1, self.sides[axis]))) % self.sides[axis]
        return self.at(point)

    def features(self, candidates: Sequence[Candidate]) -> np.ndarray:
        return np.array([s.document for s in candidates], np.float32).reshape(-1, len(self.sides))

    def seconds(self, candidate: Candidate) -> float:
        gap = np.subtract(candidate.document, self.optimum)
        return float(np.prod(1.0 + 0.5 * gap**2))

    def measure(self, candidates: Sequence[Candidate]) -> list[Trial]:
        self.measured += [candidate.key for candidate in candidates]
        return [
            Trial(s, None, 1.0, "broken")
            if s.key in self.broken
            else Trial(s, self.seconds(s), 1.0)
            for s in candidates
        ]


def tune(tuner: InnerTuner, space: Lattice, trials: int, batch: int = 10) -> int:
    """Measure until the optimum is found; return after how many trials, or ``trials``."""
    while len(space.measured) < trials:
        proposed = tuner.propose(batch)
        tuner.observe(space.measure(proposed))
        best = space.at(space.optimum).key
        if best in space.measured:
            return space.measured.index(best) + 1
    return trials
