"""The nouns of tuning tensor programs, and the two protocols between its parts.

A network's tunable operators are the arms of a bandit. A *scheduler* gives a time slot to one of
them; the operator's *inner tuner* proposes schedules from its `ScheduleSpace`; a `Backend` builds
and times them. Schedulers and inner tuners know nothing of TVM, back ends nothing of bandits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from jaxtyping import Float32


@dataclass(frozen=True)
class TunedOperator:
    """One tunable operator of a network: an arm."""

    name: str
    """For people: operator and sizes, such as ``conv2d 1x56x56x64x64x3x3x1x1x1``."""
    workload: str
    """Hash that its records are kept under."""
    repeats: int
    """How often the network uses it, >= 1: the factor of its seconds in the network's latency."""
    flops: float
    """FLOP of one run."""


@dataclass(frozen=True)
class Schedule:
    """One point of an operator's transformation space."""

    key: str
    """Names it among the schedules of its operator: equal keys are equal schedules."""
    document: Any = None
    """Whatever the back end builds it from; JSON, so that a run can go on in another process."""


@dataclass(frozen=True)
class Trial:
    """One schedule, built and timed."""

    schedule: Schedule
    seconds: float | None
    """Of one run of the operator by the timing rule; None: it failed, see ``reason``."""
    spent: float
    """Seconds of the clock that building and timing took."""
    reason: str = ""
    """Why there is no time; "" where there is one."""


class ScheduleSpace(Protocol):
    """Schedules of one operator."""

    def draw(self, count: int, rng: np.random.Generator) -> list[Schedule]:
        """Return up to ``count`` random schedules, distinct; fewer when the space has no more."""
        ...

    def neighbour(self, schedule: Schedule, rng: np.random.Generator) -> Schedule | None:
        """Return a schedule with one decision changed; None: no legal one was found."""
        ...

    def features(self, schedules: Sequence[Schedule]) -> Float32[np.ndarray, "S numbers"]:
        """Return [S, numbers] what a cost model reads: the leaf vectors summed over statements
        (`go_rl.programs.features`)."""
        ...


class Backend(Protocol):
    """Where schedules are built and timed."""

    @property
    def target(self) -> str:
        """Name of the processor and target of the code, as records carry it."""
        ...

    @property
    def operators(self) -> tuple[TunedOperator, ...]:
        """The tunable operators of the network."""
        ...

    @property
    def fixed_seconds(self) -> float:
        """Seconds of the rest of the network, which is not tuned."""
        ...

    @property
    def peak_flops(self) -> float:
        """Theoretical FLOP/s of the target: no operator is faster."""
        ...

    def space(self, operator: int) -> ScheduleSpace:
        """Return the schedules of an operator, by its number."""
        ...

    def measure(self, operator: int, schedules: Sequence[Schedule]) -> list[Trial]:
        """Build and time schedules of one operator; a bad one is a `Trial` with a reason."""
        ...

    def clock(self) -> float:
        """Return seconds since some moment: of the wall, or of a recording that is replayed."""
        ...
