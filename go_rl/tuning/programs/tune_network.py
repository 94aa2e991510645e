"""`tune_network`: a network in; tuned, compiled, compared with the untuned one and written out.

The folder's journal holds each batch of trials: whoever is killed, or stops with Ctrl-C, loses the
batch that was being measured, and the same command goes on behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from go_rl.measure.kernels.collect import RECORDS
from go_rl.records import RecordStore
from go_rl.tuning.backends.tvm.backend import LoweredNetwork, TvmBackend, lower
from go_rl.tuning.backends.tvm.codegen import code_target
from go_rl.tuning.backends.tvm.models.model import TunableNetwork
from go_rl.tuning.belief.registry import belief_of, check_belief
from go_rl.tuning.config import TuneProgramsConfig
from go_rl.tuning.programs.events import SlotReport
from go_rl.tuning.programs.finish import Finish
from go_rl.tuning.programs.journal import FileJournal
from go_rl.tuning.programs.nouns import MakeInnerTuner, Schedule, Trial
from go_rl.tuning.programs.slot_loop import tune_programs
from go_rl.tuning.programs.slots import SlotConfig
from go_rl.tuning.programs.trial_records import known_trials
from go_rl.tuning.programs.tuned_network import JOURNAL, TunedNetwork, write_tuned_network
from go_rl.tuning.programs.tuning_state import TuningState
from go_rl.tuning.progress import PartProgress, TuningProgress, Watch, unwatched
from go_rl.tuning.schedulers.registry import WITH_BELIEF, scheduler_of
from go_rl.tuning.schedulers.scheduler import Scheduler
from go_rl.tuning.tuners.registry import inner_tuner


def tune_network(
    network: TunableNetwork,
    folder: Path,
    config: TuneProgramsConfig,
    *,
    records: str | Path | None = None,
    watch: Watch = unwatched,
    report: Callable[[str], None] = lambda _: None,
) -> TunedNetwork:
    """Tune a network's operators on this machine.

    Args:
        network: with its weights.
        folder: of everything that is written; a run that began here goes on.
        config: who tunes what, for how long.
        records: store of trials, a file or a URL, which several runs may share; None: the folder's
            own. A run that begins knows what it has.
        watch: is told how far tuning is.
        report: is told what is done before and after.

    Raises:
        MissingDependencyError: TVM, a C compiler, or what the scheduler needs is not installed.
        RecordError: the store cannot be read or written.
        TuningError: the network cannot be tuned, a name is unknown, or the folder is of another
            run.
        WorkerError: the core cannot be had.
    """
    scheduler, make_tuner = deciders(config)
    report(f"compiling {network.name}")
    lowered = lower(network, code_target(config.target, config.cores))
    with (
        RecordStore(records or folder / RECORDS) as store,
        TvmBackend(lowered, config, folder) as backend,
    ):
        journal = FileJournal(folder / JOURNAL, _about(lowered, backend, config))
        report(f"timing {len(lowered.functions)} functions without schedules")
        backend.start(store)
        known = known_trials(store, backend.target, backend.operators)
        before = sum(len(batch.trials) for batch in journal.batches())
        resumed = before or sum(map(len, known.values()))
        limited = _Limited(backend, config, watch, resumed, before)
        slots = SlotConfig(seconds=60.0 * config.minutes, batch=config.batch, seed=config.seed)
        notes: list[str] = []
        if not limited.over:
            try:
                tune_programs(
                    limited, scheduler, make_tuner, slots, journal=journal, listener=limited,
                    known=known,
                )  # fmt: skip
            except _EnoughTrials:
                pass
            except KeyboardInterrupt:
                notes.append("Stopped early; the same command goes on")
        report("timing the best schedules again, and the network with them beside the untuned one")
        journal = FileJournal(folder / JOURNAL, _about(lowered, backend, config))
        finish = Finish(network, lowered, backend, journal, slots)
        tuned = finish.tuned(folder, config, resumed, notes)
    write_tuned_network(tuned, config, folder)
    return tuned


def deciders(config: TuneProgramsConfig) -> tuple[Scheduler, MakeInnerTuner]:
    """Return who gives slots to operators, and what makes their inner tuners.

    Raises:
        MissingDependencyError: what the scheduler's belief needs is not installed.
        TuningError: a name is unknown; or the scheduler sees recorded curves only.
    """
    check_belief(config.belief)
    make_tuner = inner_tuner(config.tuner)
    belief = belief_of(config.belief) if config.scheduler in WITH_BELIEF else None
    return scheduler_of(config.scheduler, belief), make_tuner


def _about(
    lowered: LoweredNetwork, backend: TvmBackend, config: TuneProgramsConfig
) -> dict[str, object]:
    """What a journal is of."""
    belief = {"belief": config.belief} if config.scheduler in WITH_BELIEF else {}
    return {
        "network": lowered.name, "target": backend.target, "seed": config.seed,
        "scheduler": config.scheduler, **belief, "tuner": config.tuner,
        "operators": [[x.workload, x.repeats] for x in backend.operators],
    }  # fmt: skip


class _EnoughTrials(Exception):  # noqa: N818 - what happened
    """As many trials as were asked for are measured."""


class _Limited:
    """A back end that measures no more trials than are asked for, and what listens to tuning."""

    def __init__(
        self, backend: TvmBackend, config: TuneProgramsConfig, watch: Watch, trials: int, own: int
    ) -> None:
        self._backend, self._config, self._watch = backend, config, watch
        self._known, self._own = trials, own
        self._gains: dict[int, float] = {}
        self.target, self.operators = backend.target, backend.operators
        self.fixed_seconds, self.peak_flops = backend.fixed_seconds, backend.peak_flops
        self.space, self.clock = backend.space, backend.clock

    @property
    def over(self) -> bool:
        """Whether no further trial is wanted."""
        return self._config.trials is not None and self._own >= self._config.trials

    def measure(self, operator: int, schedules: Sequence[Schedule]) -> list[Trial]:
        """See `Backend`."""
        if self._config.trials is not None:
            schedules = schedules[: self._config.trials - self._own]
        trials = self._backend.measure(operator, schedules)
        self._own += len(trials)
        return trials

    def on_trial(self, state: TuningState, operator: int, trial: Trial) -> None:
        """See `TuningListener`."""
        if trial is state.operators[operator].best or self.over:
            self._tell(state, operator)
        if self.over:
            raise _EnoughTrials

    def on_slot(self, state: TuningState, report: SlotReport) -> None:
        """See `TuningListener`."""
        if report.predicted is not None:
            self._gains[report.operator] = report.predicted
        self._tell(state, report.operator)

    def _tell(self, state: TuningState, operator: int) -> None:
        backend, total = self._backend, max(state.elapsed, 1e-9)
        parts = tuple(
            PartProgress(
                each.operator.name, each.operator.repeats, min(each.seconds, untuned), untuned,
                len(each.curve), each.spent / total, self._gains.get(number),
            )
            for number, (each, untuned) in enumerate(
                zip(state.operators, backend.untuned_seconds, strict=True)
            )
        )  # fmt: skip
        default = sum(part.uses * part.default_seconds for part in parts)
        self._watch(
            TuningProgress(
                model=backend.network.name,
                minutes=state.elapsed / 60.0,
                of_minutes=self._config.minutes,
                seconds=backend.fixed_seconds + sum(part.uses * part.seconds for part in parts),
                default_seconds=backend.fixed_seconds + default,
                trials=sum(part.trials for part in parts),
                parts=parts,
                doing=state.operators[operator].operator.name,
            )
        )
