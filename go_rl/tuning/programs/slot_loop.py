"""`tune_programs`: time slots to operators, batches to slots, one clock (DynaTune, algorithm 1)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from go_rl.tuning.config import TuningError
from go_rl.tuning.programs.events import SlotReport, TuningListener, Unheard
from go_rl.tuning.programs.journal import Journal, MemoryJournal
from go_rl.tuning.programs.nouns import Backend, InnerTuner, MakeInnerTuner, Schedule, Trial
from go_rl.tuning.programs.slots import SlotConfig
from go_rl.tuning.programs.tuning_state import Phase, TrialBatch, TuningState
from go_rl.tuning.reuse.schedule_reuse import ScheduleReuse
from go_rl.tuning.schedulers.scheduler import Scheduler


def tune_programs(
    backend: Backend,
    scheduler: Scheduler,
    make_tuner: MakeInnerTuner,
    config: SlotConfig,
    *,
    journal: Journal | None = None,
    listener: TuningListener | None = None,
    known: Mapping[int, Sequence[Trial]] | None = None,
    reuse: ScheduleReuse | None = None,
) -> TuningState:
    """Tune the operators of a network until the budget or the schedules are used up.

    A warm-up tries each operator until one schedule works; then the scheduler gives slots. At the
    end each operator that is too light to be tuned gets a batch of schedules like the others'. Each
    batch is in the journal before the next one begins: what a journal holds is not measured again,
    and the run goes on behind it as if it had never stopped.

    Args:
        backend: builds and times.
        scheduler: chooses the operator of a slot.
        make_tuner: makes the inner tuner of one operator.
        config: budget, batches, seed.
        journal: of this run; None: it is kept in memory.
        listener: is told what happens.
        known: trials of earlier runs by operator, which cost nothing; a journal that has begun
            has its own and ignores them.
        reuse: chooses the schedules of operators that are not tuned; None: there are none, for
            ``config`` says that all are tuned.

    Raises:
        TuningError: the network has no tunable operator, no schedule of one works, or nobody
            chooses for those that are not tuned.
    """
    if config.heavy < 1 and reuse is None:
        raise TuningError("tuning: say which schedules operators that are not tuned reuse")
    loop = _SlotLoop(backend, scheduler, make_tuner, config, journal or MemoryJournal())
    state = loop.run(listener or Unheard(), known or {})
    if reuse is not None:
        loop.reuse(reuse)
    return state


class _SlotLoop:
    """One run."""

    def __init__(
        self,
        backend: Backend,
        scheduler: Scheduler,
        make_tuner: MakeInnerTuner,
        config: SlotConfig,
        journal: Journal,
    ) -> None:
        operators = backend.operators
        if not operators:
            raise TuningError(
                "the network has no tunable operator: no convolution or matrix product of a size "
                "that is tuned"
            )
        self._backend, self._scheduler, self._journal = backend, scheduler, journal
        self._state = TuningState(operators, backend.fixed_seconds, backend.peak_flops, config)
        self._tuners: list[InnerTuner] = [
            make_tuner(backend.space(k), config.seed * len(operators) + k)
            for k in range(len(operators))
        ]
        self._listener: TuningListener = Unheard()
        self._last = 0.0
        self._last_reason = "there is none"
        self._measured: dict[int, list[Trial]] = {}

    def run(self, listener: TuningListener, known: Mapping[int, Sequence[Trial]]) -> TuningState:
        state, started = self._state, False
        for batch in self._journal.batches():
            self._learn(batch)
            started = True
        if not started:
            for k, trials in sorted(known.items()):
                self._keep(TrialBatch("known", k, 0, tuple(trials), 0.0))
        self._listener, self._last = listener, self._backend.clock()
        self._warm_up()
        while not state.over:
            if not self._slot():
                break
        return state

    def reuse(self, reuse: ScheduleReuse) -> None:
        """Measure schedules like those of the tuned operators of each that is not."""
        state = self._state
        for k in list(state.waiting):
            known = {j: trials for j, trials in self._measured.items() if j not in state.waiting}
            chosen = reuse.choose(k, known, state.config.batch, state.config.seed)
            self._timed("reuse", k, 0, chosen)

    def _warm_up(self) -> None:
        """Try schedules one by one until each operator has one that works."""
        state = self._state
        for k, each in enumerate(state.operators):
            while each.best is None and not state.finished(k):
                self._measure("warm-up", k, 0, 1)
            if each.best is None and k not in state.waiting:
                raise TuningError(
                    f"{each.operator.name}: none of {len(each.curve)} schedules works "
                    f"({self._last_reason}); nothing of what was measured is lost"
                )

    def _slot(self) -> bool:
        """Run the rest of the slot that a stop cut short, or a new one; False: there is none."""
        state, began = self._state, time.perf_counter()
        predicted = None
        if state.current is None:
            chosen = self._scheduler.choose(state)
            if chosen is None:
                return False
            predicted = self._scheduler.predicted(state, chosen)
            number = state.slot + 1
        else:
            chosen, number = state.current, state.slot
        scheduling = time.perf_counter() - began
        latency, elapsed, trials = state.latency, state.elapsed, state.trials
        if state.finished(chosen):
            self._keep(TrialBatch("lapse", chosen, number, (), state.slot_seconds))
        else:
            self._measure("slot", chosen, number, state.config.batch)
            while state.current is not None:
                self._measure("slot", chosen, number, state.config.batch)
        gain, seconds = latency - state.latency, state.elapsed - elapsed
        report = SlotReport(
            number, chosen, seconds, state.trials - trials, gain, predicted, scheduling
        )
        self._listener.on_slot(state, report)
        return True

    def _measure(self, phase: Phase, operator: int, slot: int, count: int) -> None:
        self._timed(phase, operator, slot, self._tuners[operator].propose(count))

    def _timed(self, phase: Phase, operator: int, slot: int, proposed: Sequence[Schedule]) -> None:
        trials = self._backend.measure(operator, proposed) if proposed else []
        now = self._backend.clock()
        seconds, self._last = now - self._last, now
        self._keep(TrialBatch(phase, operator, slot, tuple(trials), seconds, not proposed))
        for trial in trials:
            self._listener.on_trial(self._state, operator, trial)

    def _keep(self, batch: TrialBatch) -> None:
        self._journal.append(batch)
        self._learn(batch)

    def _learn(self, batch: TrialBatch) -> None:
        self._state.add(batch)
        if batch.trials:
            self._measured.setdefault(batch.operator, []).extend(batch.trials)
            self._tuners[batch.operator].observe(batch.trials)
            self._last_reason = batch.trials[-1].reason or "it was timed"
