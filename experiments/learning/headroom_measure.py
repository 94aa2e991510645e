"""Headroom closed: how much a method wins of what there is to win.

A problem has a reference R (the median plan of the best single classical method after
`REFERENCE_SECONDS`, that method chosen on validation) and a best-known plan B. A method's plan T
closes log(R/T) of log(R/B). Over a list of problems, with families weighted equally,

    closed = Σ_f mean_{p in f} log(R_p/T_p)  /  Σ_f mean_{p in f} log(R_p/B_p),

so that 0 is the reference, 1 the best known; it may exceed 1, and falls below 0 for plans that are
worse than the reference. R and B are the same for all methods, sample counts and control arms.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float64

from go_rl.core.errors import ProblemError

REFERENCE_SECONDS = 3.0
"""Time of the classical method that makes the reference."""
LEAST = 0.03
"""Least log(R/B) of a problem that enters, and the number of seed errors it must be, `ERRORS`."""
ERRORS = 3.0
TIE = 1e-3
"""Difference of logarithms up to which two plans are equal."""
DRAWS = 10_000
"""Bootstrap samples of families."""
CONFIDENCE = 0.95


@dataclass(frozen=True)
class Headroom:
    """Possible gain on one problem. Times are seconds an iteration."""

    name: str
    family: str
    references: tuple[float, ...]
    """Plans of the reference method, one a seed; two or more, of seeds that are scored nowhere."""
    best: float
    """B, the best-known plan."""

    def __post_init__(self) -> None:
        values = (*self.references, self.best)
        if len(self.references) < 2:
            raise ProblemError(f"{self.name}: headroom needs references of two seeds or more")
        if not all(np.isfinite(v) and v > 0 for v in values):
            raise ProblemError(f"{self.name}: R and B must be finite seconds > 0, not {values}")

    @property
    def reference(self) -> float:
        """R, the median plan."""
        return float(np.median(self.references))

    @cached_property
    def room(self) -> float:
        """log(R/B)."""
        return float(np.log(self.reference / self.best))

    @property
    def seed_error(self) -> float:
        """Standard error of log R over seeds."""
        logs = np.log(self.references)
        return float(logs.std(ddof=1) / np.sqrt(len(logs)))

    @property
    def enters(self) -> bool:
        """Whether there is enough to win that seeds do not decide."""
        return self.room >= max(LEAST, ERRORS * self.seed_error)

    def gain(self, seconds: float) -> float:
        """Return log(R/T); a failure (inf) loses as much as there was to win.

        Raises:
            ProblemError: seconds are NaN, zero or negative.
        """
        if not seconds > 0:
            raise ProblemError(f"{self.name}: a plan takes seconds > 0, not {seconds}")
        return float(np.log(self.reference / seconds)) if np.isfinite(seconds) else -abs(self.room)


@dataclass(frozen=True)
class Closed:
    """A share of the headroom with its interval over families."""

    share: float
    low: float
    high: float
    problems: int
    families: int

    def __str__(self) -> str:
        return f"{self.share:.0%} ({self.low:.0%} to {self.high:.0%})"


@dataclass(frozen=True)
class Outcomes:
    """How many plans are faster than the reference, equal within `TIE`, slower, or failures."""

    wins: int
    ties: int
    losses: int
    failures: int


def headroom_closed(
    problems: Sequence[Headroom], seconds: Mapping[str, Sequence[float]], seed: int = 0
) -> Closed:
    """Return the share of the headroom that a method closes.

    Args:
        problems: those that enter; every one of them must be in ``seconds``.
        seconds: plans by name of problem, one an evaluation seed; their logarithms are averaged.
        seed: of the bootstrap.

    Raises:
        ProblemError: no problem, one that is missing or has no plans, or one without room.
    """
    gains = _by_family(problems, _mean_gains(problems, seconds))
    return _interval(problems, gains, seed)


def headroom_difference(
    problems: Sequence[Headroom],
    seconds: Mapping[str, Sequence[float]],
    rival: Mapping[str, Sequence[float]],
    seed: int = 0,
) -> Closed:
    """Return by how much more a method closes than a rival, paired by problem; an interval above
    zero says that it is ahead. Arguments and errors as for `headroom_closed`."""
    ours, theirs = _mean_gains(problems, seconds), _mean_gains(problems, rival)
    return _interval(problems, _by_family(problems, ours - theirs), seed)


def outcomes(problems: Sequence[Headroom], seconds: Mapping[str, Sequence[float]]) -> Outcomes:
    """Count plans against the reference, also on problems that do not enter."""
    found = [0, 0, 0, 0]
    for problem in problems:
        for value in _plans(problem, seconds):
            gain = problem.gain(value)
            if not np.isfinite(value):
                found[3] += 1
            elif abs(gain) <= TIE:
                found[1] += 1
            else:
                found[0 if gain > 0 else 2] += 1
    return Outcomes(*found)


def _plans(problem: Headroom, seconds: Mapping[str, Sequence[float]]) -> Sequence[float]:
    plans = seconds.get(problem.name, ())
    if not len(plans):
        raise ProblemError(f"headroom: no plan for {problem.name}; every problem needs one")
    return plans


def _mean_gains(
    problems: Sequence[Headroom], seconds: Mapping[str, Sequence[float]]
) -> Float64[np.ndarray, "P"]:
    """[P] log(R/T), the mean over seeds."""
    if not problems:
        raise ProblemError("headroom: no problem enters")
    return np.array([np.mean([p.gain(t) for t in _plans(p, seconds)]) for p in problems])


def _by_family(
    problems: Sequence[Headroom], values: Float64[np.ndarray, "P"]
) -> Float64[np.ndarray, "F"]:
    """[F] means over the problems of each family, families in alphabetical order."""
    families = np.array([p.family for p in problems])
    return np.array([values[families == family].mean() for family in np.unique(families)])


def _interval(problems: Sequence[Headroom], gains: Float64[np.ndarray, "F"], seed: int) -> Closed:
    """The ratio of sums over families, and its percentiles over draws of families."""
    rooms = _by_family(problems, np.array([p.room for p in problems]))
    if (rooms <= 0).any():
        raise ProblemError("headroom: a family has nothing to win; leave out what does not enter")
    drawn = np.random.default_rng(seed).integers(len(rooms), size=(DRAWS, len(rooms)))
    shares = gains[drawn].sum(axis=1) / rooms[drawn].sum(axis=1)
    outside = (1 - CONFIDENCE) / 2
    low, high = np.quantile(shares, [outside, 1 - outside])
    share = gains.sum() / rooms.sum()
    return Closed(float(share), float(low), float(high), len(problems), len(rooms))
