"""Schedulers by name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from go_rl.tuning.config import ROUNDS, TuningError, check_name
from go_rl.tuning.loop.belief.belief import BELIEFS, Belief, belief_of
from go_rl.tuning.loop.nouns import Trial
from go_rl.tuning.loop.schedulers.ansor_gradient import AnsorGradient
from go_rl.tuning.loop.schedulers.oracle import Oracle
from go_rl.tuning.loop.schedulers.plain_schedulers import (
    LinearInFlops,
    RandomSlots,
    RoundRobin,
    Sequential,
)
from go_rl.tuning.loop.schedulers.predicted_gains import (
    EpsilonGreedy,
    PredictedGains,
    SoftmaxSampling,
)
from go_rl.tuning.loop.schedulers.rounds import AlternatingRounds
from go_rl.tuning.loop.schedulers.scheduler import Scheduler
from go_rl.tuning.loop.schedulers.upper_confidence_bound import (
    DYNATUNE,
    RELATIVE,
    UpperConfidenceBound,
)

WITH_BELIEF: Mapping[str, Callable[[PredictedGains], Scheduler]] = MappingProxyType({
    DYNATUNE: UpperConfidenceBound,
    RELATIVE: lambda gains: UpperConfidenceBound(gains, relative=True),
    "epsilon-greedy": EpsilonGreedy,
    "softmax": SoftmaxSampling,
})  # fmt: skip
WITHOUT_BELIEF: Mapping[str, Callable[[], Scheduler]] = MappingProxyType({
    "ansor": AnsorGradient,
    "dynamic-random": lambda: RandomSlots(dynamic=True),
    "dynamic-round-robin": lambda: RoundRobin(dynamic=True),
    "random": lambda: RandomSlots(dynamic=False),
    "round-robin": lambda: RoundRobin(dynamic=False),
    "linear": LinearInFlops,
    ROUNDS: AlternatingRounds,
})  # fmt: skip
SEQUENTIAL, ORACLE = "sequential", "oracle"
LIVE = (*WITH_BELIEF, *WITHOUT_BELIEF, SEQUENTIAL)
"""Names of the schedulers of live tuning."""
SCHEDULERS = (*LIVE, ORACLE)
"""Names of all schedulers: the oracle sees recorded curves only."""


def live_scheduler(name: str, belief: str, share: float | None = None) -> Scheduler:
    """Return the scheduler of a command.

    Args:
        name: one of `SCHEDULERS`.
        belief: name of the belief of those that predict.
        share: of the sequential one, see there.

    Raises:
        MissingDependencyError: what the belief needs is not installed.
        TuningError: a name is unknown, or the scheduler sees recorded curves only.
    """
    check_name("belief", belief, BELIEFS)
    if name != ORACLE:
        check_name("scheduler", name, LIVE)
    return scheduler_of(name, belief_of(belief) if name in WITH_BELIEF else None, share=share)


def scheduler_of(
    name: str,
    belief: Belief | None = None,
    paths: Sequence[Sequence[Trial]] | None = None,
    share: float | None = None,
) -> Scheduler:
    """Return a scheduler.

    Args:
        name: one of `SCHEDULERS`.
        belief: of those that predict; None: DynaTune's (`go_rl.tuning.loop.belief.curve_belief`).
        paths: of the oracle, see there.
        share: of the sequential one, see there; None: until an operator is finished.

    Raises:
        MissingDependencyError: the belief needs emcee, which is not installed.
        TuningError: the name is unknown, or the oracle has no curves to see.
    """
    check_name("scheduler", name, SCHEDULERS)
    if name in WITH_BELIEF:
        return WITH_BELIEF[name](PredictedGains(belief or belief_of(BELIEFS[0])))
    if name in WITHOUT_BELIEF:
        return WITHOUT_BELIEF[name]()
    if name == SEQUENTIAL:
        return Sequential() if share is None else Sequential(share)
    if paths is None:
        raise TuningError(
            "the oracle sees recorded curves; it cannot schedule what is measured live"
        )
    return Oracle(paths)
