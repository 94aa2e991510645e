"""`TuningState`: what tuning knows, a function of the measured batches alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Any, Literal

from go_rl.tuning.loop.nouns import Trial, TunedOperator
from go_rl.tuning.loop.slots import SlotConfig

HOPELESS = 32
"""Trials behind which an operator is given up where none worked."""
Phase = Literal["known", "warm-up", "slot", "lapse", "reuse"]
"""Reason of a batch: trials of earlier runs; the search for a first candidate that works; a slot
of the scheduler; a static scheme's slot of a finished operator, which lapses; candidates like those
of tuned operators, for one that is not tuned."""


@dataclass(frozen=True)
class TrialBatch:
    """Trials of one operator that were measured together."""

    phase: Phase
    operator: int
    """Number of the operator."""
    slot: int
    """Number of the slot, from 1; 0 before the first."""
    trials: tuple[Trial, ...]
    """Trials of the batch, in the order of the proposal."""
    seconds: float
    """Seconds of the clock since the batch before: scheduling, proposing, building, timing."""
    exhausted: bool = False
    """Whether the inner tuner proposed none: the space has no more."""


@dataclass(eq=False)
class OperatorState:
    """Knowledge of one operator."""

    operator: TunedOperator
    best: Trial | None = None
    """Fastest trial."""
    curve: list[float] = field(default_factory=list)
    """Best FLOP/s known after each trial; 0 until one works."""
    stale: int = 0
    """Trials since the best one."""
    slots: int = 0
    """Slots of the operator: pulls of the arm."""
    slot_ends: list[float] = field(default_factory=list)
    """Best seconds after each slot of the operator."""
    first_seconds: float | None = None
    """Seconds of the first trial that worked: the untuned operator."""
    spent: float = 0.0
    """Seconds of the clock, those of known trials left out."""
    own_trials: int = 0
    """Trials, those of earlier runs left out."""
    exhausted: bool = False
    """Whether the space has no more candidates."""
    given_up: bool = False
    """Whether no candidate works: the operator stays as it is, and is no part of any latency."""

    @property
    def seconds(self) -> float:
        """Best seconds of one run; infinite until one works."""
        return inf if self.best is None or self.best.seconds is None else self.best.seconds

    @property
    def weighted(self) -> float:
        """Best seconds of all its runs in the network."""
        counts = self.operator.repeats and not self.given_up
        return self.operator.repeats * self.seconds if counts else 0.0

    def horizon(self, slot_seconds: float, batch: int) -> int:
        """Return how many trials a slot buys, at the pace so far; at least a batch."""
        if not self.own_trials or self.spent <= 0:
            return batch
        return max(batch, round(slot_seconds * self.own_trials / self.spent))

    def add(self, batch: TrialBatch) -> None:
        """Take in a batch."""
        for trial in batch.trials:
            self._add(trial)
        if batch.phase != "known":
            self.spent += batch.seconds
            self.own_trials += len(batch.trials)
        self.exhausted = self.exhausted or batch.exhausted

    def _add(self, trial: Trial) -> None:
        self.stale += 1
        if trial.seconds is not None:
            if self.first_seconds is None:
                self.first_seconds = trial.seconds
            faster = trial.seconds < self.seconds if trial.verdict is None else trial.verdict
            if faster:
                self.best, self.stale = trial, 0
        self.curve.append(0.0 if self.best is None else self.operator.flops / self.seconds)


class TuningState:
    """All operators, and where in which slot the run is.

    Args:
        operators: of the network.
        fixed_seconds: of what is not tuned.
        peak_flops: FLOP/s of the target, at most.
        config: see there.
    """

    def __init__(
        self,
        operators: Sequence[TunedOperator],
        fixed_seconds: float,
        peak_flops: float,
        config: SlotConfig,
    ) -> None:
        self.operators = [OperatorState(operator) for operator in operators]
        self.config, self.peak_flops = config, peak_flops
        tuned = heavy_operators(operators, config.heavy)
        self.slot_seconds = config.slot_seconds(len(tuned))
        self.elapsed = 0.0
        """Seconds of the clock since the start."""
        self.slot = 0
        """Number of the slot that began last, from 1; 0 before the first."""
        self.current: int | None = None
        """Operator of the current slot, while it lasts."""
        self.trials = 0
        """Trials measured in this run."""
        self.waiting = [k for k in range(len(operators)) if k not in tuned]
        """Operators that are not tuned and have had no candidates like those of others yet."""
        self._light = frozenset(self.waiting)
        self._fixed = fixed_seconds
        self._in_slot = 0.0

    def meet(self, operators: Sequence[TunedOperator]) -> None:
        """Take in what operators there are now: those known, in their order, and new ones."""
        for state, operator in zip(self.operators, operators, strict=False):
            state.operator = operator
        self.operators += map(OperatorState, operators[len(self.operators) :])

    @property
    def latency(self) -> float:
        """Seconds of the network with the best candidates; infinite while an operator that is tuned
        has none, those given up left out. Operators that are not tuned count from their first
        time on."""
        return self._fixed + sum(each.weighted for each in self._counted)

    @property
    def untuned_latency(self) -> float:
        """Seconds of the network with the first candidates that worked."""
        first = (
            inf if each.first_seconds is None else each.first_seconds * each.operator.repeats
            for each in self._counted
            if each.operator.repeats and not each.given_up
        )  # fmt: skip
        return self._fixed + sum(first)

    @property
    def arms(self) -> list[int]:
        """Operators that are tuned, by number; those that joined are."""
        return [k for k in range(len(self.operators)) if k not in self._light]

    @property
    def _counted(self) -> list[OperatorState]:
        """Operators that make up the network: those of the whole, and those that are not tuned and
        have no time yet, left out."""
        return [
            each for k, each in enumerate(self.operators)
            if not each.operator.whole and (k not in self._light or each.best is not None)
        ]  # fmt: skip

    def finished(self, operator: int) -> bool:
        """Whether an operator is done: no improvement for long, no candidates left, not tuned, or
        not used any more."""
        each = self.operators[operator]
        done = each.exhausted or each.given_up or each.stale >= self.config.patience
        return done or operator in self._light or not each.operator.repeats

    @property
    def unfinished(self) -> list[int]:
        """Operators that are not done."""
        return [k for k in range(len(self.operators)) if not self.finished(k)]

    @property
    def kept_trials(self) -> int:
        """Trials that are kept for operators that wait for candidates of others: a batch each."""
        return self.config.batch * len(self.waiting)

    @property
    def trials_left(self) -> float:
        """Trials that may still be made; infinite where only the budget bounds them."""
        return inf if self.config.trials is None else float(self.config.trials - self.trials)

    @property
    def over(self) -> bool:
        """Whether the candidates, the budget or the trials are used up, but for what is kept for
        operators that wait."""
        pace = self.elapsed / max(self.trials, 1)
        late = self.elapsed + pace * self.kept_trials >= self.config.seconds
        return late or self.trials_left <= self.kept_trials or not self.unfinished

    def add(self, batch: TrialBatch) -> None:
        """Take in a batch, in the order in which they were measured."""
        state = self.operators[batch.operator]
        if batch.slot > self.slot:
            self._end_slot()
            self.slot, self.current, self._in_slot = batch.slot, batch.operator, 0.0
            state.slots += 1
        state.add(batch)
        hope = min(HOPELESS, self.config.patience)
        state.given_up = state.best is None and (state.exhausted or state.stale >= hope)
        self.elapsed += batch.seconds
        self.trials += len(batch.trials) if batch.phase != "known" else 0
        if batch.phase == "reuse":
            self.waiting.remove(batch.operator)
        if batch.phase in ("slot", "lapse"):
            self._in_slot += batch.seconds
            if self._in_slot >= self.slot_seconds or self.finished(batch.operator) or self.over:
                self._end_slot()

    def _end_slot(self) -> None:
        if self.current is not None:
            state = self.operators[self.current]
            state.slot_ends.append(state.seconds)
        self.current = None

    def summary(self) -> dict[str, Any]:
        """Return everything that a later decision depends on, as JSON: equal summaries go on in
        the same way."""
        return {
            "elapsed": self.elapsed, "slot": self.slot, "current": self.current,
            "in_slot": self._in_slot, "trials": self.trials,
            "operators": [
                {
                    "name": each.operator.name, "best": None if each.best is None else _key(each),
                    "curve": each.curve, "stale": each.stale, "slots": each.slots,
                    "slot_ends": each.slot_ends, "spent": each.spent, "done": each.exhausted,
                }
                for each in self.operators
            ],
        }  # fmt: skip


def _key(state: OperatorState) -> str:
    assert state.best is not None
    return state.best.candidate.key


def heavy_operators(operators: Sequence[TunedOperator], share: float) -> tuple[int, ...]:
    """Return the numbers of the fewest operators that make up a share of a network's FLOP, the
    heaviest first: kernels are sorted by occurrences and FLOP (Verma et al. 2023, section 4.4).

    Args:
        operators: operators of a network.
        share: part of the FLOP of all, in (0, 1].
    """
    if share >= 1:
        return tuple(range(len(operators)))
    flops = [each.flops * each.repeats for each in operators]
    wanted, found, total = share * sum(flops), [], 0.0
    for k in sorted(range(len(operators)), key=lambda k: (-flops[k], k)):
        if total >= wanted * (1 - 1e-9) and found:
            break
        found.append(k)
        total += flops[k]
    return tuple(found)
