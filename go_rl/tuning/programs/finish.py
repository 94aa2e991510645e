"""`Finish`: what is done when tuning is over: the best schedules are timed again, the network is
compiled with them, and compared with the untuned one and with what the model computes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from go_rl.tuning.backends.tvm.backend import LoweredNetwork, TvmBackend
from go_rl.tuning.backends.tvm.compiled import export_network, max_relative_error, run_network
from go_rl.tuning.backends.tvm.models.model import TunableNetwork
from go_rl.tuning.config import TuneProgramsConfig
from go_rl.tuning.programs.journal import FileJournal
from go_rl.tuning.programs.nouns import Schedule, Trial
from go_rl.tuning.programs.slots import SlotConfig
from go_rl.tuning.programs.tuned_network import (
    MODULE,
    MS,
    OperatorOutcome,
    TunedNetwork,
    latency_curve,
)
from go_rl.tuning.programs.tuning_state import OperatorState, TrialBatch, TuningState

UNTUNED = ".untuned.so"
AGAIN = 3
"""Schedules of each operator, the fastest ones, that are measured again at the end: the least of
many times is often too low."""
SLOWER = "Measured again, the tuned network was not faster: the module has TVM's default schedules"
NOT_FINITE = "Some results are finite in the model and not in the module, or the other way round"


def fastest_schedules(batches: Iterable[TrialBatch], count: int) -> dict[int, list[Schedule]]:
    """Return up to ``count`` schedules of each operator, by its number, the fastest first."""
    timed: dict[int, dict[str, tuple[float, Schedule]]] = {}
    for batch in batches:
        for trial in batch.trials:
            if trial.seconds is not None:
                known = timed.setdefault(batch.operator, {})
                known[trial.schedule.key] = trial.seconds, trial.schedule
    return {
        operator: [pair[1] for pair in sorted(known.values(), key=lambda pair: pair[0])[:count]]
        for operator, known in timed.items()
    }


@dataclass(frozen=True)
class Finish:
    """What is done when tuning is over."""

    network: TunableNetwork
    lowered: LoweredNetwork
    backend: TvmBackend
    journal: FileJournal
    slots: SlotConfig

    def tuned(
        self, folder: Path, config: TuneProgramsConfig, resumed: int, notes: list[str]
    ) -> TunedNetwork:
        """Return what was found, having written the module."""
        state, batches = self._state(), list(self.journal.batches())
        operators = self._operators(state, batches)
        best = {k: x.schedule for k, x in enumerate(operators) if x.schedule is not None}
        module, untuned = folder / MODULE, folder / UNTUNED
        try:
            export_network(self.lowered, {}, untuned)
            chosen = {**self.backend.light_schedules, **best}
            export_network(self.lowered, chosen, module)
            untuned_seconds, seconds = self.backend.compare([untuned, module])
            if chosen and seconds >= untuned_seconds:
                notes.append(SLOWER)
                untuned.replace(module)
                seconds = untuned_seconds
        finally:
            untuned.unlink(missing_ok=True)
        error = self._error(module, config.seed)
        if error == np.inf:
            notes.append(NOT_FINITE)
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
            max_relative_error=error,
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

    def _operators(
        self, state: TuningState, batches: Sequence[TrialBatch]
    ) -> tuple[OperatorOutcome, ...]:
        fastest = fastest_schedules(batches, AGAIN)
        return tuple(
            self._operator(
                each, untuned, state.elapsed, self.backend.measure(number, fastest.get(number, ()))
            )
            for number, (each, untuned) in enumerate(
                zip(state.operators, self.backend.untuned_seconds, strict=True)
            )
        )

    def _operator(
        self, state: OperatorState, untuned: float, total: float, again: Sequence[Trial]
    ) -> OperatorOutcome:
        timed = [(each.seconds, each.schedule) for each in again if each.seconds is not None]
        seconds, schedule = min(timed, key=lambda pair: pair[0], default=(untuned, None))
        return OperatorOutcome(
            operator=state.operator,
            schedule=schedule if seconds < untuned else None,
            seconds=min(seconds, untuned),
            untuned_seconds=untuned,
            trials=len(state.curve),
            share=state.spent / max(total, 1e-9),
        )

    def _error(self, module: Path, seed: int) -> float:
        rng = np.random.default_rng(seed)
        operands = [each.random(rng) for each in self.network.inputs]
        wanted = self.network.results(operands)
        return max_relative_error(run_network(module, operands), wanted)
