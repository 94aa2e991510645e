"""Schedulers that neither predict nor look back: slots at random, in turn or in proportion to FLOP,
static or with reallocation (DynaTune, sections 5.2 and 5.3), and one operator after the other."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from go_rl.core.config_checks import POSITIVE, check_ranges
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.schedulers.scheduler import slot_rng, waiting_for_first_slot
from go_rl.tuning.loop.tuning_state import TuningState


@dataclass(frozen=True)
class RandomSlots:
    """Each slot goes to a random operator. The static form draws finished ones, too; the dynamic
    one gives each operator one slot first (`first_round`)."""

    dynamic: bool

    def choose(self, state: TuningState) -> int:
        if self.dynamic and (waiting := waiting_for_first_slot(state)):
            return waiting[0]
        choice = state.unfinished if self.dynamic else state.arms
        return int(slot_rng(state).choice(choice))

    def predicted(self, state: TuningState, operator: int) -> None:
        """Return None."""


@dataclass(frozen=True)
class RoundRobin:
    """Slots go to the operators in turn. The static form does not leave out finished ones, and
    keeps the network's order; the dynamic one begins as `first_round` says."""

    dynamic: bool

    def choose(self, state: TuningState) -> int:
        if not self.dynamic:
            return state.arms[state.slot % len(state.arms)]
        if waiting := waiting_for_first_slot(state):
            return waiting[0]
        return min(state.unfinished, key=lambda k: state.operators[k].slots)

    def predicted(self, state: TuningState, operator: int) -> None:
        """Return None."""


@dataclass(frozen=True)
class LinearInFlops:
    """Each operator gets slots in proportion to its FLOP in the network, interleaved: the next slot
    is that of the operator whose count of slots would stay furthest below its share. Those of
    finished operators lapse."""

    def choose(self, state: TuningState) -> int:

        def behind(k: int) -> float:
            each = state.operators[k]
            flops = each.operator.flops * each.operator.repeats
            return (each.slots + 1) / flops if flops else inf

        return min(state.arms, key=behind)

    def predicted(self, state: TuningState, operator: int) -> None:
        """Return None."""


@dataclass(frozen=True)
class Sequential:
    """Tunes each operator, in the network's order, until it is finished, or has used its share of
    the time (AutoTVM; Chen et al., 2018).

    Raises:
        TuningError: the share is not above 0.
    """

    share: float = inf
    """Seconds of each operator, at most; infinite: until it is finished. A run on a budget divides
    it by the number of operators, as users of AutoTVM divide trials."""

    def __post_init__(self) -> None:
        check_ranges(self, "sequential", TuningError, share=POSITIVE)

    def choose(self, state: TuningState) -> int | None:
        """Return the operator of the next slot; None: all have had their share."""
        for k in state.unfinished:
            if state.operators[k].spent < self.share:
                return k
        return None

    def predicted(self, state: TuningState, operator: int) -> None:
        """Return None."""
