"""`run_tuning`: the slot loop of a command: watched, ended by the budget or by Ctrl-C."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Protocol, runtime_checkable

from go_rl.tuning.loop.events import SlotReport
from go_rl.tuning.loop.journal import Journal
from go_rl.tuning.loop.nouns import Backend, MakeInnerTuner, Trial
from go_rl.tuning.loop.progress import PartProgress, TuningProgress, Watch, unwatched
from go_rl.tuning.loop.reuse.candidate_reuse import CandidateReuse
from go_rl.tuning.loop.schedulers.scheduler import Scheduler
from go_rl.tuning.loop.slot_loop import tune_operators
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.loop.tuning_state import TuningState

STOPPED = "Stopped early; the same command goes on"


@runtime_checkable
class LiveBackend(Backend, Protocol):
    """A back end whose network is tuned on this machine, now."""

    @property
    def model(self) -> str:
        """Name of the network."""
        ...

    @property
    def untuned_seconds(self) -> tuple[float, ...]:
        """Seconds of one run of each operator before tuning; infinite: not known yet."""
        ...

    @property
    def default_seconds(self) -> float:
        """Seconds of the network before tuning."""
        ...

    def lapse(self, seconds: float) -> None:
        """Note that this many seconds of the budget went by unused."""
        ...


def run_tuning(
    backend: LiveBackend,
    scheduler: Scheduler,
    make_tuner: MakeInnerTuner,
    slots: SlotConfig,
    journal: Journal,
    *,
    known: Mapping[int, Sequence[Trial]],
    watch: Watch = unwatched,
    reuse: CandidateReuse | None = None,
) -> list[str]:
    """Tune until the budget is over, and return what the user should know of the end. What was
    measured is in the journal.

    Args:
        backend: builds and times.
        scheduler: see `tune_operators`, also for the following.
        make_tuner: makes the inner tuner of an operator.
        slots: budget, trials and slots.
        journal: of the run, with its earlier batches.
        known: trials that cost nothing.
        watch: is told of the end of each slot, and of each improvement.
        reuse: see `tune_operators`.

    Raises:
        KeyboardInterrupt: Ctrl-C, or SIGTERM, came before the network's time was known.
    """
    try:
        tune_operators(
            backend, scheduler, make_tuner, slots, journal=journal,
            listener=_Listener(backend, slots, watch), known=known, reuse=reuse,
        )  # fmt: skip
    except KeyboardInterrupt as stop:
        if not isfinite(backend.default_seconds):
            raise type(stop)(
                f"{backend.model}: stopped before the default fusion was measured; what was "
                "measured is kept, and the same command goes on"
            ) from None
        return [STOPPED]
    return []


class _Listener:
    """Tells a watch of improvements and of the ends of slots."""

    def __init__(self, backend: LiveBackend, slots: SlotConfig, watch: Watch) -> None:
        self._backend, self._slots, self._watch = backend, slots, watch
        self._gains: dict[int, float] = {}

    def on_trial(self, state: TuningState, operator: int, trial: Trial) -> None:
        if trial is state.operators[operator].best:
            self._tell(state, operator)

    def on_slot(self, state: TuningState, report: SlotReport) -> None:
        if report.lapsed:
            self._backend.lapse(report.seconds)
        if report.predicted is not None:
            self._gains[report.operator] = report.predicted
        self._tell(state, report.operator)

    def _tell(self, state: TuningState, operator: int) -> None:
        parts = self._parts(state)
        self._watch(
            TuningProgress(
                model=self._backend.model,
                minutes=state.elapsed / 60.0,
                of_minutes=self._slots.seconds / 60.0,
                seconds=self._backend.fixed_seconds
                + sum(part.uses * part.seconds for part in parts),
                default_seconds=self._backend.default_seconds,
                trials=sum(len(each.curve) for each in state.operators),
                parts=parts,
                doing=state.operators[operator].operator.name,
            )
        )

    def _parts(self, state: TuningState) -> tuple[PartProgress, ...]:
        """The operators of the network, those of the whole and former ones left out."""
        total, untuned = max(state.elapsed, 1e-9), self._backend.untuned_seconds
        return tuple(
            PartProgress(
                each.operator.name, each.operator.repeats, min(each.seconds, untuned[number]),
                untuned[number], len(each.curve), each.spent / total, self._gains.get(number),
            )
            for number, each in enumerate(state.operators)
            if each.operator.repeats and not each.operator.whole
        )  # fmt: skip
