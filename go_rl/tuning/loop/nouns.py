"""The nouns of tuning, and the two protocols between its parts.

A network's tunable operators are the arms of a bandit: its functions of TIR, or the kernels of a
fusion under XLA. A *scheduler* gives a time slot to one of them; the operator's *inner tuner*
proposes schedules from its `ScheduleSpace`; a `Backend` builds and times them. Schedulers and inner
tuners know nothing of TVM or XLA, back ends nothing of bandits.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

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
    """How often the network uses it: the factor of its seconds in the network's latency; 0: not any
    more, as a kernel of another fusion."""
    flops: float
    """FLOP of one run, above 0."""
    whole: bool = False
    """Its schedules are of the whole network, as fusions are: its seconds are no part of the
    latency, and a faster one changes which other operators there are."""

    @property
    def kind(self) -> str:
        """First word of its name, such as ``conv2d``: operators of one kind are alike."""
        return self.name.partition(" ")[0]


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
    verdict: bool | None = None
    """Whether the back end takes it for faster than the best so far, both measured side by side;
    None: it does not say, and the seconds decide."""
    details: Any = None
    """What else was measured, for a tuner that learns from it; JSON."""


@runtime_checkable
class ScheduleSpace(Protocol):
    """Schedules of one operator."""

    def draw(self, count: int, rng: np.random.Generator) -> list[Schedule]:
        """Return up to ``count`` random schedules, distinct; fewer when the space has no more.

        Two calls may return the same schedule: the space keeps no state. `draw_fresh` leaves out
        what is known."""
        ...

    def neighbour(self, schedule: Schedule, rng: np.random.Generator) -> Schedule | None:
        """Return a schedule with one decision changed; None: no legal one was found."""
        ...

    def features(self, schedules: Sequence[Schedule]) -> Float32[np.ndarray, "S numbers"]:
        """Return [S, numbers] what a cost model reads: the leaf vectors summed over statements
        (`go_rl.costs.programs.features`)."""
        ...


@runtime_checkable
class InnerTuner(Protocol):
    """Which schedules of one operator are measured next.

    Its state is a function of what it was made of (space, seed) and of the batches it observed,
    in order: a run that goes on calls `observe` with the recorded batches and never `propose` for
    them. `propose` therefore changes nothing that a later proposal depends on; draw randomness from
    ``np.random.default_rng((seed, trials observed so far))``.
    """

    def propose(self, count: int) -> list[Schedule]:
        """Return up to ``count`` schedules, distinct and never observed before, and beside them any
        that take no time; an empty list says that the space has no more."""
        ...

    def observe(self, trials: Sequence[Trial]) -> None:
        """Learn from one measured batch: failures too, and schedules that others proposed (known
        from earlier runs)."""
        ...


MakeInnerTuner = Callable[[ScheduleSpace, int], InnerTuner]
"""Makes the inner tuner of one operator from its space and a seed of its own."""


@runtime_checkable
class Backend(Protocol):
    """Where schedules are built and timed."""

    @property
    def target(self) -> str:
        """Name of the processor and target of the code, as records carry it."""
        ...

    @property
    def operators(self) -> tuple[TunedOperator, ...]:
        """The tunable operators of the network. What inner tuners observe may add some at the end
        and change how often the network uses one; see `TunedOperator.whole`."""
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
        """Build and time schedules of one operator, or the first ones if there is no time for all;
        a bad one is a `Trial` with a reason."""
        ...

    def clock(self) -> float:
        """Return seconds since some moment: of the wall, or of a recording that is replayed."""
        ...


def draw_fresh(
    space: ScheduleSpace, count: int, known: Container[str], rng: np.random.Generator
) -> list[Schedule]:
    """Return up to ``count`` random schedules whose keys are not ``known``; fewer only when the
    space, asked for twice as many again and again, has no more."""
    asked, found = count, []
    while True:
        drawn = space.draw(asked, rng)
        found = [schedule for schedule in drawn if schedule.key not in known]
        if len(found) >= count or len(drawn) < asked:
            return found[:count]
        asked *= 2
