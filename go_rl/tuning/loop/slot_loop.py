"""`tune_operators`: slots to operators, batches to slots, one clock (DynaTune, algorithm 1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.events import SlotReport, TuningListener, Unheard
from go_rl.tuning.loop.journal import Journal, MemoryJournal
from go_rl.tuning.loop.nouns import Backend, Candidate, InnerTuner, MakeInnerTuner, Trial
from go_rl.tuning.loop.reuse.candidate_reuse import CandidateReuse
from go_rl.tuning.loop.schedulers.scheduler import Scheduler
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.loop.tuning_state import Phase, TrialBatch, TuningState


class NothingWorksError(TuningError):
    """No candidate of any operator works."""


def tune_operators(
    backend: Backend,
    scheduler: Scheduler,
    make_tuner: MakeInnerTuner,
    config: SlotConfig,
    *,
    journal: Journal | None = None,
    listener: TuningListener | None = None,
    known: Mapping[int, Sequence[Trial]] | None = None,
    reuse: CandidateReuse | None = None,
) -> TuningState:
    """Tune the operators of a network until the budget or the candidates are used up.

    A warm-up tries each operator until one candidate works, one that joins later, too, or it is
    given up; then the scheduler gives slots. At the end each operator that is too light to be tuned
    gets a batch of candidates like the others'. Each batch is in the journal before the next one
    begins: what a journal holds is not measured again, and the run goes on behind it as if it had
    never stopped.

    Args:
        backend: builds and times.
        scheduler: chooses the operator of a slot.
        make_tuner: makes the inner tuner of one operator.
        config: budget, batches, seed.
        journal: of this run; None: it is kept in memory.
        listener: is told what happens.
        known: trials that cost nothing, by operator: of earlier runs, which a journal that has
            begun ignores, or of operators that joined. It is asked anew whenever one does.
        reuse: chooses the candidates of operators that are not tuned; None: there are none, for
            ``config`` says that all are tuned.

    Raises:
        NothingWorksError: no candidate of any operator works.
        TuningError: the network has no tunable operator, or nobody chooses for those that are not
            tuned.
    """
    if config.heavy < 1 and reuse is None:
        raise TuningError("tuning: say which candidates operators that are not tuned reuse")
    loop = _SlotLoop(backend, scheduler, make_tuner, config, journal or MemoryJournal())
    state = loop.run(listener or Unheard(), {} if known is None else known)
    if reuse is not None:
        loop.reuse(reuse)
    return state


class _SlotLoop:
    """State of one run of the slot loop."""

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
        self._tuners: list[InnerTuner] = []
        self._first, self._make_tuner, self._seed = len(operators), make_tuner, config.seed
        self._listener: TuningListener = Unheard()
        self._known: Mapping[int, Sequence[Trial]] = {}
        self._last = 0.0
        self._last_reason = "there is none"
        self._reasons: dict[int, str] = {}

    def run(self, listener: TuningListener, known: Mapping[int, Sequence[Trial]]) -> TuningState:
        state, started = self._state, False
        self._meet()
        for batch in self._journal.batches():
            self._learn(batch)
            started = True
        self._known = known
        self._hear_known(self._first if started else 0)
        self._listener, self._last = listener, self._backend.clock()
        self._warm_up()
        while not state.over:
            if not self._slot():
                break
            self._warm_up()
        return state

    def reuse(self, reuse: CandidateReuse) -> None:
        """Measure candidates like those of the tuned operators of each that is not."""
        state = self._state
        for k in list(state.waiting):
            count = int(min(state.config.batch, state.trials_left))
            if not count:
                return
            chosen = reuse.choose(k, self._settled(), count, state.config.seed)
            self._timed("reuse", k, 0, chosen)

    def _settled(self) -> dict[int, list[Trial]]:
        """Trials of the operators that wait for nobody, by number."""
        found: dict[int, list[Trial]] = {}
        for batch in self._journal.batches():
            if batch.trials and batch.operator not in self._state.waiting:
                found.setdefault(batch.operator, []).extend(batch.trials)
        return found

    def _meet(self) -> None:
        """Give each operator that has none a state and an inner tuner."""
        operators = self._backend.operators
        self._state.meet(operators)
        for k in range(len(self._tuners), len(operators)):
            seed = self._seed * self._first + k
            self._tuners.append(self._make_tuner(self._backend.space(k), seed))

    def _hear_known(self, first: int) -> None:
        """Take in what is known of operators without a trial, from a number on."""
        for k in range(first, len(self._tuners)):
            if not self._state.operators[k].curve and (trials := self._known.get(k)):
                self._keep(TrialBatch("known", k, 0, tuple(trials), 0.0))

    def _warm_up(self) -> None:
        """Try candidates one by one until each operator that is tuned has one that works or is
        given up, or the budget or the trials are used up."""
        for k in range(len(self._tuners)):
            each = self._state.operators[k]
            while each.best is None and not self._state.finished(k):
                late = self._state.elapsed >= self._state.config.seconds
                if late or self._state.trials_left <= 0:
                    return
                self._measure("warm-up", k, 0, 1)
            if each.given_up:
                self._reasons[k] = self._last_reason
        needed = [k for k in self._state.arms if self._state.operators[k].operator.repeats]
        if needed and all(self._state.operators[k].given_up for k in needed):
            each = self._state.operators[needed[0]]
            raise NothingWorksError(
                f"{each.operator.name}: none of {len(each.curve)} candidates works "
                f"({self._reasons.get(needed[0], self._last_reason)}); nothing of what was "
                "measured is lost"
            )

    def _slot(self) -> bool:
        """Run the rest of the slot that a stop cut short, or a new one; False: there is none."""
        state = self._state
        predicted = None
        if state.current is None:
            chosen = self._scheduler.choose(state)
            if chosen is None:
                return False
            predicted = self._scheduler.predicted(state, chosen)
            number = state.slot + 1
        else:
            chosen, number = state.current, state.slot
        elapsed = state.elapsed
        if lapsed := state.finished(chosen):
            self._keep(TrialBatch("lapse", chosen, number, (), state.slot_seconds))
        else:
            self._measure("slot", chosen, number, state.config.batch)
            while state.current is not None:
                self._measure("slot", chosen, number, state.config.batch)
        report = SlotReport(chosen, state.elapsed - elapsed, predicted, lapsed)
        self._listener.on_slot(state, report)
        return True

    def _measure(self, phase: Phase, operator: int, slot: int, count: int) -> None:
        proposed = self._tuners[operator].propose(count)
        if self._state.config.trials is not None:
            kept = self._state.kept_trials if phase == "slot" else 0
            proposed = proposed[: int(self._state.trials_left) - kept]
        self._timed(phase, operator, slot, proposed)

    def _timed(self, phase: Phase, operator: int, slot: int, proposed: Sequence[Candidate]) -> None:
        trials = self._backend.measure(operator, proposed) if proposed else []
        now = self._backend.clock()
        seconds, self._last = now - self._last, now
        self._keep(TrialBatch(phase, operator, slot, tuple(trials), seconds, not proposed))
        self._hear_known(self._first)
        for trial in trials:
            self._listener.on_trial(self._state, operator, trial)

    def _keep(self, batch: TrialBatch) -> None:
        self._journal.append(batch)
        self._learn(batch)

    def _learn(self, batch: TrialBatch) -> None:
        self._state.add(batch)
        if batch.trials:
            self._tuners[batch.operator].observe(batch.trials)
            self._last_reason = batch.trials[-1].reason or "it was timed"
            self._meet()
