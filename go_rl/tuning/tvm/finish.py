"""`Finish`: the end of tuning. The best candidates are timed again, the network is compiled with
them, and compared with the untuned one, with other compilers, and with what the model computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from go_rl.core.files.scratch_folder import scratch_folder
from go_rl.tuning.config import TuneProgramsConfig
from go_rl.tuning.loop.journal import FileJournal
from go_rl.tuning.loop.nouns import Candidate, Trial
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.loop.time_budget import TimeBudget
from go_rl.tuning.loop.tuning_state import OperatorState, TrialBatch, TuningState
from go_rl.tuning.tvm.backend import FASTER, TvmBackend
from go_rl.tuning.tvm.compiled import export_network, max_relative_error, run_network
from go_rl.tuning.tvm.lowering import LoweredNetwork
from go_rl.tuning.tvm.models.model import TunableNetwork
from go_rl.tuning.tvm.tuned_network import (
    MODULE,
    MS,
    LeftOperator,
    OperatorOutcome,
    RivalTime,
    TunedNetwork,
    latency_curve,
)

UNTUNED = ".untuned.so"
AGAIN = 3
"""Candidates of each operator, the fastest ones, that are measured again at the end: the least of
many times is often too low."""
SLOWER = "Measured again, the tuned network was not faster: the module has TVM's default schedules"
NOT_RUN = (
    "The network without schedules was not run, for a run takes about {seconds:.2g} s: its time is "
    "the sum of its operators'"
)
NOT_TIMED = "The whole network {}, so its times are the sums of its operators'"
NOT_KEPT = "the whole network was not faster with the candidates that were found"
NO_TIME = "the time was over before one of its candidates was tried"
NO_FASTER = "no candidate was faster than the loops as they are"
LARGE_ERROR = 1e-2
DIFFERS = "The module's results differ from the model's by {error:.2g} of their magnitude"
NOT_FINITE = "Some results are finite in the model and not in the module, or the other way round"


def fastest_candidates(batches: Iterable[TrialBatch], count: int) -> dict[int, list[Candidate]]:
    """Return up to ``count`` candidates of each operator, by its number, the fastest first."""
    timed: dict[int, dict[str, tuple[float, Candidate]]] = {}
    for batch in batches:
        for trial in batch.trials:
            if trial.seconds is not None:
                known = timed.setdefault(batch.operator, {})
                known[trial.candidate.key] = trial.seconds, trial.candidate
    return {
        operator: [pair[1] for pair in sorted(known.values(), key=lambda pair: pair[0])[:count]]
        for operator, known in timed.items()
    }


def fastest_trials(batches: Iterable[TrialBatch]) -> dict[int, list[Trial]]:
    """Return the fastest trial of each operator that has one with a time, by its number."""
    found: dict[int, list[Trial]] = {}
    for batch in batches:
        for trial in batch.trials:
            best = found.get(batch.operator)
            if trial.seconds is not None and (
                best is None or trial.seconds < (best[0].seconds or 0.0)
            ):
                found[batch.operator] = [trial]
    return found


@dataclass(frozen=True)
class NetworkCheck:
    """Whole networks, timed in turn."""

    kept: bool
    """Whether the module has the candidates that were found."""
    untuned_seconds: float
    seconds: float
    """Seconds of one run of the module."""
    rivals: tuple[RivalTime, ...]


@dataclass(frozen=True)
class Finish:
    """End of a run: times the best candidates again, compiles the network and compares it."""

    network: TunableNetwork
    lowered: LoweredNetwork
    backend: TvmBackend
    journal: FileJournal
    slots: SlotConfig
    budget: TimeBudget
    report: Callable[[str], None]

    def tuned(
        self, folder: Path, config: TuneProgramsConfig, resumed: int, notes: list[str]
    ) -> TunedNetwork:
        """Return what was found, having written the module."""
        backend, state, batches = self.backend, self._state(), list(self.journal.batches())
        operators = self._operators(state, batches)
        best = {k: x.candidate for k, x in enumerate(operators) if x.candidate is not None}
        chosen = {**backend.light_candidates, **best}
        summed = backend.fixed_seconds + sum(x.operator.repeats * x.seconds for x in operators)
        check = self._written(folder, chosen, summed, notes)
        error = self._error(folder / MODULE, config.seed, notes)
        if not check.kept:
            operators = tuple(replace(x, candidate=None, reason=NOT_KEPT) for x in operators)
        trials = [trial for batch in batches for trial in batch.trials]
        notes += _refused(trials, self.lowered)
        curve = latency_curve(
            batches, backend.operators, backend.untuned_seconds, backend.fixed_seconds
        )
        return TunedNetwork(
            model=self.network.name, target=backend.target, scheduler=config.scheduler,
            tuner=config.tuner, operators=operators, left=self._left(check.kept),
            fixed_seconds=backend.fixed_seconds, curve=tuple(curve),
            minutes=state.elapsed / 60.0, run_minutes=self.budget.spent / 60.0,
            trials=len(trials), resumed_trials=resumed,
            failed_trials=sum(t.seconds is None for t in trials),
            untuned_ms=MS * check.untuned_seconds, latency_ms=MS * check.seconds,
            rivals=check.rivals, max_relative_error=error,
            notes=(*backend.notes, *notes),
        )  # fmt: skip

    def _written(
        self, folder: Path, chosen: Mapping[int, Candidate], summed: float, notes: list[str]
    ) -> NetworkCheck:
        """Write the module, with the candidates chosen or, where they are no faster, without;
        ``summed``: seconds of its operators with these."""
        backend, module, untuned = self.backend, folder / MODULE, folder / UNTUNED
        name, expected = self.network.name, backend.default_seconds
        runs = expected <= self.budget.slowest_network or not chosen
        try:
            if chosen:
                self.report(f"compiling {name} with the best candidates")
                export_network(self.lowered, chosen, module)
            if runs:
                self.report(f"compiling {name} without schedules")
                export_network(self.lowered, {}, untuned)
            else:
                notes.append(NOT_RUN.format(seconds=expected))
            paths = {
                **({module: summed} if chosen else {}),
                **({untuned: expected} if runs else {}),
            }
            check = self._compared(paths, bool(chosen), notes)
            if chosen and not check.kept:
                notes.append(SLOWER)
            if not check.kept:
                if not runs:
                    export_network(self.lowered, {}, untuned)
                untuned.replace(module)
        finally:
            untuned.unlink(missing_ok=True)
        return check

    def _compared(self, paths: Mapping[Path, float], tuned: bool, notes: list[str]) -> NetworkCheck:
        """Time compiled networks, the tuned one first, and their rivals; where one takes too long,
        the sums of their operators' seconds, which are given, stand for both."""
        backend, expected = self.backend, self.backend.default_seconds
        long = f", about {expected:.2g} s a run at most" if expected > 1e-3 else ""
        self.report(f"timing {self.network.name}, whole{long}")
        with scratch_folder("rivals") as place:
            rivals, absent = self.network.rivals(place)
            outcomes = backend.compare(list(paths), rivals, expected)
        notes += absent
        late = next((x for x in outcomes[: len(paths)] if isinstance(x, str)), None)
        if late is not None:
            notes.append(NOT_TIMED.format(late))
        times = [
            about if late is not None or isinstance(outcome, str) else float(outcome["seconds"])
            for about, outcome in zip(paths.values(), outcomes, strict=False)
        ]
        untuned = times[-1] if len(times) == 2 or not tuned else expected
        seconds = times[0]
        found: list[RivalTime] = []
        for rival, outcome in zip(rivals, outcomes[len(paths) :], strict=True):
            if isinstance(outcome, str):
                notes.append(f"{rival.name} is not timed beside it: {outcome}")
            else:
                found.append(RivalTime(rival.name, MS * outcome["seconds"]))
        kept = tuned and seconds < untuned
        return NetworkCheck(kept, untuned, seconds if kept else untuned, tuple(found))

    def _left(self, kept: bool) -> tuple[LeftOperator, ...]:
        """Operators that are not tuned, with the reason."""
        backend, first = self.backend, len(self.backend.operators)
        light = backend.light_candidates if kept else {}
        return tuple(
            LeftOperator(each.operator, each.untuned, backend.seconds_of(i), light.get(i))
            for i, each in enumerate(self.lowered.functions)
            if i >= first
        )

    def _state(self) -> TuningState:
        """State of tuning after the batches of the journal."""
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
        """The operators, those whose candidates gain most measured again while there is time."""
        backend, fastest = self.backend, fastest_candidates(batches, AGAIN)
        known = fastest_trials(batches)
        until = backend.clock() + self.budget.again
        again: dict[int, Sequence[Trial]] = {}
        ranked = sorted(fastest, key=lambda k: -self._gain(k, known[k]))
        for place, number in enumerate(ranked):
            if place and backend.clock() > until:
                break
            self.report(f"timing the best candidates again: operator {place} of {len(ranked)}")
            again[number] = backend.measure(number, fastest[number])
        return tuple(
            self._operator(k, each, state.elapsed, again.get(k, known.get(k, ())))
            for k, each in enumerate(state.operators)
        )

    def _gain(self, number: int, trials: Sequence[Trial]) -> float:
        """Seconds that the best candidate of an operator saves the network."""
        best = min(each.seconds for each in trials if each.seconds is not None)
        uses = self.backend.operators[number].repeats
        return uses * (self.backend.untuned_seconds[number] - best)

    def _operator(
        self, number: int, state: OperatorState, total: float, again: Sequence[Trial]
    ) -> OperatorOutcome:
        untuned = self.backend.untuned_seconds[number]
        timed = [(each.seconds, each.candidate) for each in again if each.seconds is not None]
        seconds, candidate = min(timed, key=lambda pair: pair[0], default=(untuned, None))
        measured = number not in self.backend.estimated
        found = candidate if seconds < untuned or not measured else None
        return OperatorOutcome(
            operator=state.operator,
            candidate=found,
            seconds=untuned if found is None else seconds,
            untuned_seconds=untuned,
            trials=len(state.curve),
            share=state.spent / max(total, 1e-9),
            reason="" if found else self._why(state),
        )

    def _why(self, state: OperatorState) -> str:
        """Why an operator has no candidate."""
        if not state.curve:
            return "TVM finds no legal schedule" if state.exhausted else NO_TIME
        if state.best is None:
            reasons = [
                trial.reason for batch in self.journal.batches() for trial in batch.trials
                if self.backend.operators[batch.operator] == state.operator
            ]  # fmt: skip
            return f"none of {len(state.curve)} candidates works: {reasons[-1]}"
        return NO_FASTER

    def _error(self, module: Path, seed: int, notes: list[str]) -> float:
        rng = np.random.default_rng(seed)
        operands = [each.random(rng) for each in self.network.inputs]
        self.report(f"comparing the results of {self.network.name} with the model's")
        wanted = self.network.results(operands)
        error = max_relative_error(run_network(module, operands), wanted)
        if error == np.inf:
            notes.append(NOT_FINITE)
        elif error > LARGE_ERROR:
            notes.append(DIFFERS.format(error=error))
        return error


def _refused(trials: Sequence[Trial], lowered: LoweredNetwork) -> list[str]:
    """A sentence on candidates whose times no processor reaches, where there are any."""
    count = sum(FASTER in trial.reason for trial in trials)
    if not count:
        return []
    peak = lowered.code.peak_flops / 1e9
    return [f"{count} candidates were refused: their times are {FASTER} ({peak:.4g} GFLOP/s)"]
