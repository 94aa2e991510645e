"""`tune_network`: a network in; tuned, compiled, compared with the untuned one and written out.

The folder's journal holds each batch of trials: whoever is killed, or stops with Ctrl-C, loses the
batch that was being measured, and the same command goes on behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from go_rl.records import RecordStore
from go_rl.tuning.backends.tvm.backend import LoweredNetwork, TvmBackend, lower
from go_rl.tuning.backends.tvm.compiled import (
    export_network,
    max_relative_error,
    reference_results,
    run_network,
)
from go_rl.tuning.backends.tvm.onnx_file import OnnxNetwork
from go_rl.tuning.config import TuneProgramsConfig
from go_rl.tuning.programs.journal import FileJournal
from go_rl.tuning.programs.slots import SlotConfig
from go_rl.tuning.programs.trial_records import known_trials
from go_rl.tuning.programs.tuned_network import (
    MODULE,
    MS,
    OperatorOutcome,
    TunedNetwork,
    latency_curve,
    write_tuned_network,
)
from go_rl.tuning.programs.tuning_run import run_tuning
from go_rl.tuning.programs.tuning_state import TuningState
from go_rl.tuning.progress import Watch, unwatched
from go_rl.tuning.result_folder import JOURNAL, records_of
from go_rl.tuning.reuse.registry import attention_reuse
from go_rl.tuning.schedulers.registry import scheduler_of
from go_rl.tuning.tuners.registry import inner_tuner

UNTUNED = ".untuned.so"
SLOWER = "Measured again, the tuned network was not faster: the module has TVM's default schedules"


def tune_network(
    network: OnnxNetwork,
    folder: Path,
    config: TuneProgramsConfig,
    *,
    records: str | Path | None = None,
    watch: Watch = unwatched,
    report: Callable[[str], None] = lambda _: None,
) -> TunedNetwork:
    """Tune a network's operators on this machine.

    Args:
        network: an ONNX network.
        folder: of everything that is written; a run that began here goes on.
        config: who tunes what, for how long.
        records: store of trials, a folder, a file or a URL, which several runs may share; None: the
            folder's own. A run that begins knows what it has.
        watch: is told how far tuning is.
        report: is told what is done before and after.

    Raises:
        MissingDependencyError: TVM, a C compiler, or what the scheduler needs is not installed.
        RecordError: the store cannot be read or written.
        TuningError: the network cannot be tuned, a name is unknown, or the folder is of another
            run.
        WorkerError: the core cannot be had.
    """
    scheduler, make_tuner = scheduler_of(config.scheduler), inner_tuner(config.tuner)
    report(f"compiling {network.name}")
    lowered = lower(network, config.target)
    store_at, pace_at = records_of(records, folder)
    with (
        RecordStore(store_at) as store,
        TvmBackend(lowered, config, pace_at) as backend,
    ):
        journal = FileJournal(folder / JOURNAL, _about(lowered, backend, config))
        report(f"timing {len(lowered.functions)} functions without schedules")
        backend.start(store)
        known = known_trials(store, backend.target, backend.operators)
        before = sum(len(batch.trials) for batch in journal.batches())
        resumed = before or sum(map(len, known.values()))
        slots = SlotConfig(
            seconds=60.0 * config.minutes, batch=config.batch, seed=config.seed,
            heavy=config.only_heavy,
        )  # fmt: skip
        notes = run_tuning(
            backend, scheduler, make_tuner, slots, journal, known=known, watch=watch,
            trials=config.trials,
            reuse=attention_reuse(backend) if config.only_heavy < 1 else None,
        )  # fmt: skip
        report("compiling and comparing the tuned network with the untuned one")
        finish = _Finish(network, lowered, backend, journal, slots)
        tuned = finish.tuned(folder, config, resumed, notes)
    write_tuned_network(tuned, config, folder)
    return tuned


def _about(
    lowered: LoweredNetwork, backend: TvmBackend, config: TuneProgramsConfig
) -> dict[str, object]:
    """What a journal is of."""
    heavy = {"only_heavy": config.only_heavy} if config.only_heavy < 1 else {}
    return {
        "network": lowered.name, "target": backend.target, "seed": config.seed, **heavy,
        "scheduler": config.scheduler, "tuner": config.tuner,
        "operators": [[x.workload, x.repeats] for x in backend.operators],
    }  # fmt: skip


@dataclass(frozen=True)
class _Finish:
    """What is done when tuning is over."""

    network: OnnxNetwork
    lowered: LoweredNetwork
    backend: TvmBackend
    journal: FileJournal
    slots: SlotConfig

    def tuned(
        self, folder: Path, config: TuneProgramsConfig, resumed: int, notes: list[str]
    ) -> TunedNetwork:
        """Return what was found, having written the module."""
        state, batches = self._state(), list(self.journal.batches())
        operators = self._operators(state)
        best = {k: x.schedule for k, x in enumerate(operators) if x.schedule is not None}
        module, untuned = folder / MODULE, folder / UNTUNED
        try:
            export_network(self.lowered, {}, untuned)
            export_network(self.lowered, best, module)
            untuned_seconds, seconds = self.backend.compare([untuned, module])
            if best and seconds >= untuned_seconds:
                notes.append(SLOWER)
                untuned.replace(module)
                seconds = untuned_seconds
        finally:
            untuned.unlink(missing_ok=True)
        curve = latency_curve(
            batches, self.backend.operators, self.backend.untuned_seconds,
            self.backend.fixed_seconds,
        )  # fmt: skip
        trials = [trial for batch in batches for trial in batch.trials]
        return TunedNetwork(
            model=self.network.name, target=self.backend.target, scheduler=config.scheduler,
            tuner=config.tuner, operators=operators, fixed_seconds=self.backend.fixed_seconds,
            curve=tuple(curve), minutes=state.elapsed / 60.0, trials=len(trials),
            resumed_trials=resumed, failed_trials=sum(t.seconds is None for t in trials),
            untuned_ms=MS * untuned_seconds, latency_ms=MS * seconds,
            max_relative_error=self._error(module, config.seed),
            notes=(*self.backend.notes, *notes),
        )  # fmt: skip

    def _state(self) -> TuningState:
        """What the journal tells."""
        backend = self.backend
        state = TuningState(
            backend.operators, backend.fixed_seconds, backend.peak_flops, self.slots
        )
        for batch in self.journal.batches():
            state.add(batch)
        return state

    def _operators(self, state: TuningState) -> tuple[OperatorOutcome, ...]:
        return tuple(
            OperatorOutcome(
                operator=each.operator,
                schedule=each.best.schedule if each.best and each.seconds < untuned else None,
                seconds=min(each.seconds, untuned),
                untuned_seconds=untuned,
                trials=len(each.curve),
                share=each.spent / max(state.elapsed, 1e-9),
            )
            for each, untuned in zip(state.operators, self.backend.untuned_seconds, strict=True)
        )

    def _error(self, module: Path, seed: int) -> float:
        rng = np.random.default_rng(seed)
        operands = [each.random(rng) for each in self.network.inputs]
        wanted = reference_results(self.network, operands)
        return max_relative_error(run_network(module, operands), wanted)
