"""The nouns of tuning, and the two protocols between its parts.

A network's tunable operators are the arms of a bandit: its functions of TIR, or the kernels of a
fusion under XLA. A *scheduler* gives a time slot to one of them; the operator's *inner tuner*
proposes candidates from its `CandidateSpace`; a `Backend` builds and times them. Schedulers and
inner tuners know nothing of TVM or XLA, back ends nothing of bandits.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float32


@dataclass(frozen=True)
class TunedOperator:
    """Tunable operator of a network: an arm of the bandit."""

    name: str
    """Readable name: operator and sizes, such as ``conv2d 1x56x56x64x64x3x3x1x1x1``."""
    workload: str
    """Hash that its records are kept under."""
    repeats: int
    """Uses in the network, the factor of the operator's seconds in the latency; 0: not used any
    more, as a kernel of another fusion."""
    flops: float
    """FLOP of one run, above 0."""
    whole: bool = False
    """Whether candidates are of the whole network, as fusions are: the operator's seconds are no
    part of the latency, and a faster candidate changes which other operators there are."""

    @property
    def kind(self) -> str:
        """First word of the name, such as ``conv2d``: operators of one kind are alike."""
        return self.name.partition(" ")[0]


@dataclass(frozen=True)
class Candidate:
    """Configuration of an operator: one point of its transformation space."""

    key: str
    """Name among the candidates of the operator: equal keys are equal candidates."""
    document: Any = None
    """Input of the back end's build; JSON, so that a run can go on in another process."""


@dataclass(frozen=True)
class Trial:
    """Candidate that was built and timed."""

    candidate: Candidate
    seconds: float | None
    """Seconds of one run of the operator by the timing rule; None: it failed, see ``reason``."""
    spent: float
    """Seconds of the clock that building and timing took."""
    reason: str = ""
    """Reason why there is no time; "" where there is one."""
    verdict: bool | None = None
    """Whether the back end takes the candidate for faster than the best so far, measured beside it;
    None: it does not say, and the seconds decide."""
    details: Any = None
    """Further measurements, for a tuner that learns from them; JSON."""


@runtime_checkable
class CandidateSpace(Protocol):
    """Candidates of one operator."""

    def draw(self, count: int, rng: np.random.Generator) -> list[Candidate]:
        """Return up to ``count`` random candidates, distinct; fewer when the space has no more.

        Two calls may return the same candidate: the space keeps no state. `draw_fresh` leaves out
        what is known."""
        ...

    def neighbour(self, candidate: Candidate, rng: np.random.Generator) -> Candidate | None:
        """Return a candidate with one decision changed; None: no legal one was found."""
        ...

    def features(self, candidates: Sequence[Candidate]) -> Float32[np.ndarray, "S numbers"]:
        """Return [S, numbers] inputs of a cost model: the leaf vectors summed over statements
        (`go_rl.costs.programs.features`)."""
        ...


@runtime_checkable
class InnerTuner(Protocol):
    """Chooses the candidates of one operator that are measured next.

    Its state is a function of what it was made of (space, seed) and of the batches it observed,
    in order: a run that goes on calls `observe` with the recorded batches and never `propose` for
    them. `propose` therefore changes nothing that a later proposal depends on; draw randomness from
    ``np.random.default_rng((seed, trials observed so far))``.
    """

    def propose(self, count: int) -> list[Candidate]:
        """Return up to ``count`` candidates, distinct and never observed before, and beside them
        any that take no time; an empty list says that the space has no more."""
        ...

    def observe(self, trials: Sequence[Trial]) -> None:
        """Learn from one measured batch: failures too, and candidates that others proposed (known
        from earlier runs)."""
        ...


MakeInnerTuner = Callable[[CandidateSpace, int], InnerTuner]
"""Makes the inner tuner of one operator from its space and a seed of its own."""


@runtime_checkable
class Backend(Protocol):
    """Builds and times candidates."""

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

    def space(self, operator: int) -> CandidateSpace:
        """Return the candidates of an operator, by its number."""
        ...

    def measure(self, operator: int, candidates: Sequence[Candidate]) -> list[Trial]:
        """Build and time candidates of one operator, or the first ones if there is no time for all;
        a bad one is a `Trial` with a reason."""
        ...

    def clock(self) -> float:
        """Return seconds since some moment: of the wall, or of a recording that is replayed."""
        ...


def draw_fresh(
    space: CandidateSpace, count: int, known: Container[str], rng: np.random.Generator
) -> list[Candidate]:
    """Return up to ``count`` random candidates whose keys are not ``known``; fewer only when the
    space, asked for twice as many again and again, has no more."""
    asked, found = count, []
    while True:
        drawn = space.draw(asked, rng)
        found = [candidate for candidate in drawn if candidate.key not in known]
        if len(found) >= count or len(drawn) < asked:
            return found[:count]
        asked *= 2
