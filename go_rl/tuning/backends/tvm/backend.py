"""`TvmBackend`: a network's operators built by TVM and timed by a warm worker on one core."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from go_rl.measure.config import CollectConfig
from go_rl.measure.kernels.collect import record_of
from go_rl.measure.kernels.rounds import Outcome
from go_rl.records import AS_IT_COMES, Record, RecordStore
from go_rl.tuning.backends.tvm.codegen import CodeTarget
from go_rl.tuning.backends.tvm.light_schedules import light_schedules
from go_rl.tuning.backends.tvm.measurers import LocalMeasurer, Measurer
from go_rl.tuning.backends.tvm.models.model import ModelInput, TunableNetwork
from go_rl.tuning.backends.tvm.network import imported, lowered_network
from go_rl.tuning.backends.tvm.operators import (
    NetworkFunction,
    is_tuned,
    network_functions,
    tuned_functions,
    weight_bytes,
)
from go_rl.tuning.backends.tvm.ray_measurer import RayMeasurer
from go_rl.tuning.backends.tvm.space import TvmSpace
from go_rl.tuning.backends.tvm.worker import (
    SLOW_SECONDS,
    Measuring,
    NetworkTask,
    ScheduleTask,
)
from go_rl.tuning.config import TuneProgramsConfig, TuningError
from go_rl.tuning.programs.nouns import Schedule, Trial, TunedOperator
from go_rl.tuning.programs.trial_records import known_trials, trial_record

PRIVATE_CACHE = 1 << 20
"""Bytes of weights that a network has at least where operators are timed with flushed caches."""
MOST_FLUSHED = 8 << 20
"""Bytes that are flushed, at most: more than a core's own caches hold."""
APART = 1.5
"""Median over the quantile that counts, from which times disagree; the median counts then."""
SLOWEST = 40.0
"""Runs of an untuned network that one visit may take, at most."""
TOGETHER = 8
"""Functions without a schedule that are timed in turn, and then kept."""
NAME, CALLS = "function", "calls"
"""What a record of a function without a schedule has in its details."""


@dataclass(frozen=True, eq=False)
class LoweredNetwork:
    """A network as functions of TIR."""

    name: str
    inputs: tuple[ModelInput, ...]
    code: CodeTarget
    """What it is compiled for."""
    module: Any
    """Relax, whose ``main`` calls the functions."""
    functions: tuple[NetworkFunction, ...] = field(repr=False)
    """All of them; the tuned ones come first."""
    weight_bytes: int = 0
    """Of all constants."""

    @property
    def tuned(self) -> tuple[NetworkFunction, ...]:
        """Those that are tuned: the arms, in order."""
        return tuple(function for function in self.functions if is_tuned(function))


def lower(network: TunableNetwork, code: CodeTarget) -> LoweredNetwork:
    """Return a network as functions of TIR.

    Args:
        network: with its weights.
        code: what it is compiled for.

    Raises:
        MissingDependencyError: TVM is not installed.
        TuningError: TVM cannot import or compile the network, or it has no tunable operator.
    """
    module = lowered_network(imported(network), code)
    functions = network_functions(module)
    tuned_functions(functions, network.name)
    return LoweredNetwork(
        network.name, network.inputs, code, module, functions, weight_bytes(module)
    )


def credible(outcome: Outcome) -> Outcome:
    """Return an outcome whose ``seconds`` are the median where times disagree: some may be wrong on
    the short side, and such a schedule would be taken for the best."""
    if isinstance(outcome, str) or outcome["median"] <= APART * outcome["seconds"]:
        return outcome
    return {**outcome, "seconds": outcome["median"]}


class TvmBackend:
    """See `go_rl.tuning.programs.tuning_run.LiveBackend`. Close it: it has a process.

    Args:
        network: whose operators are tuned.
        config: how they are measured.
        folder: keeps the reference speed of the core.
    """

    def __init__(self, network: LoweredNetwork, config: TuneProgramsConfig, folder: Path) -> None:
        self.network = network
        self._config, self._folder = config, folder
        self._measurer = self._measurer_of(config.workers)
        self._spaces: dict[int, TvmSpace] = {}
        self._store: RecordStore | None = None
        self._seconds: list[float] = []
        """Of each function without a schedule."""
        self._light: dict[int, tuple[float, Schedule]] = {}
        """Seconds and schedule of functions that are not tuned, where one of theirs is faster."""
        self.notes: list[str] = []

    @property
    def target(self) -> str:
        """See `Backend`."""
        processor = self._measurer.target if isinstance(self._measurer, RayMeasurer) else ""
        return self.network.code.of_records(processor)

    @property
    def operators(self) -> tuple[TunedOperator, ...]:
        """See `Backend`."""
        return self._operators

    @property
    def fixed_seconds(self) -> float:
        """See `Backend`; known from `start` on."""
        return sum(
            self.network.functions[i].calls * self._light.get(i, (seconds, None))[0]
            for i, seconds in enumerate(self._seconds)
            if i >= len(self.operators)
        )

    @property
    def light_schedules(self) -> dict[int, Schedule]:
        """Schedules of functions that are not tuned, by number, where one is faster than the loops
        as they are; known from `start` on."""
        return {i: schedule for i, (_, schedule) in self._light.items()}

    @property
    def untuned_seconds(self) -> tuple[float, ...]:
        """Seconds of one run of each operator without a schedule; known from `start` on."""
        return tuple(self._seconds[: len(self.operators)])

    @property
    def default_seconds(self) -> float:
        """Seconds of the network without schedules; known from `start` on."""
        pairs = zip(self.network.functions, self._seconds, strict=True)
        return sum(function.calls * seconds for function, seconds in pairs)

    @property
    def model(self) -> str:
        """Name of the network."""
        return self.network.name

    @property
    def peak_flops(self) -> float:
        """See `Backend`."""
        return self.network.code.peak_flops

    @property
    def measuring(self) -> CollectConfig:
        """How a schedule is measured."""
        return self._config.measuring(self.target)

    def start(self, store: RecordStore) -> None:
        """Time each function without a schedule, and those that are not tuned with light ones
        (`go_rl.tuning.backends.tvm.light_schedules`), unless the store knows it; trials go there,
        too.

        Raises:
            RecordError: the store cannot be read or written.
            TuningError: a tunable operator cannot be timed.
            WorkerError: the core cannot be had.
        """
        self._store = store
        wanted = [function.operator for function in self.network.functions]
        known = {
            record.workload: record
            for record in store.find(self.target, [each.workload for each in wanted], 0)
            if record.setting == AS_IT_COMES
        }
        missing = [i for i, each in enumerate(wanted) if each.workload not in known]
        for first in range(0, len(missing), TOGETHER):
            numbers = missing[first : first + TOGETHER]
            tasks = [self._task(self.network.functions[i], None) for i in numbers]
            for i, outcome in zip(numbers, self._outcomes(tasks), strict=True):
                about = {NAME: wanted[i].name, CALLS: wanted[i].repeats}
                key = wanted[i].workload, AS_IT_COMES
                known[wanted[i].workload] = record_of(key, self.measuring, outcome, about)
                store.add([known[wanted[i].workload]])
        self._seconds = [self._as_it_comes(i, known[x.workload]) for i, x in enumerate(wanted)]
        for i in range(len(self.operators), len(wanted)):
            self._try_light(i)

    def _try_light(self, number: int) -> None:
        """Time light schedules of a function that is not tuned, and keep the fastest."""
        function, store = self.network.functions[number], self._store
        assert store is not None
        if not self._seconds[number]:
            return  # it cannot be timed
        schedules = light_schedules(function.module, self.network.code)
        known = known_trials(store, self.target, [function.operator]).get(0, [])
        keys = {trial.schedule.key for trial in known}
        missing = [schedule for schedule in schedules if schedule.key not in keys]
        outcomes = self._outcomes([self._task(function, each.document) for each in missing])
        config = self._config.measuring(self.target)
        for schedule, outcome in zip(missing, map(credible, outcomes), strict=True):
            trial = Trial(schedule, None if isinstance(outcome, str) else outcome["seconds"], 0.0)
            store.add([trial_record(function.operator, trial, outcome, config)])
            known.append(trial)
        timed = [(trial.seconds, trial.schedule) for trial in known if trial.seconds is not None]
        best = min(timed, key=lambda pair: pair[0], default=None)
        if best is not None and best[0] < self._seconds[number]:
            self._light[number] = best

    def space(self, operator: int) -> TvmSpace:
        """See `Backend`."""
        if operator not in self._spaces:
            module = self.network.tuned[operator].module
            self._spaces[operator] = TvmSpace(module, self.network.code)
        return self._spaces[operator]

    def measure(self, operator: int, schedules: Sequence[Schedule]) -> list[Trial]:
        """See `Backend`; each trial is in the store when this returns."""
        began, function = self.clock(), self.network.tuned[operator]
        tasks = [self._task(function, each.document) for each in schedules]
        by_target = self._everywhere(tasks)
        spent = (self.clock() - began) / max(len(schedules), 1)
        found: list[Trial] = []
        for target, outcomes in by_target.items():
            told = [self._possible(outcome, function.flops) for outcome in outcomes]
            trials = [
                Trial(schedule, None, spent, outcome)
                if isinstance(outcome, str)
                else Trial(schedule, outcome["seconds"], spent)
                for schedule, outcome in zip(schedules, told, strict=True)
            ]
            self._keep(operator, target, trials, told)
            found = trials if target == self.target else found
        return found

    def clock(self) -> float:
        """See `Backend`."""
        return time.perf_counter()

    def lapse(self, seconds: float) -> None:
        """Do nothing: only the run counts what is left."""

    def compare(self, paths: Sequence[Path]) -> list[float]:
        """Return seconds of one run of compiled networks, visited in turn.

        Raises:
            TuningError: one cannot be run.
        """
        expected, timing = self.default_seconds, self._config.check_timing
        if expected > SLOW_SECONDS:
            timing = replace(timing, least_calls=1)
        tasks = [
            NetworkTask(str(path.absolute()), self.network.inputs, self._common, timing)
            for path in paths
        ]
        patient = max(self._config.timeout, SLOWEST * expected)
        config = replace(self._config.measuring(self.target, timing), timeout=patient)
        outcomes = self._measurer.in_turn(tasks, config)
        for path, outcome in zip(paths, outcomes, strict=True):
            if isinstance(outcome, str):
                raise TuningError(f"{path}: the compiled network cannot be run: {outcome}")
        return [float(outcome["seconds"]) for outcome in outcomes if not isinstance(outcome, str)]

    def close(self) -> None:
        """End the process."""
        if isinstance(self._measurer, RayMeasurer):
            self.notes += self._measurer.notes
        self._measurer.close()

    def __enter__(self) -> TvmBackend:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def _operators(self) -> tuple[TunedOperator, ...]:
        return tuple(function.operator for function in self.network.tuned)

    @cached_property
    def _common(self) -> Measuring:
        read = self.network.weight_bytes
        flushed = 0 if read <= PRIVATE_CACHE else min(read, MOST_FLUSHED)
        return Measuring(self._config.memory, self._measurer.full_pace(), flushed)

    def _task(self, function: NetworkFunction, document: Any) -> ScheduleTask:
        return ScheduleTask(
            function.text,
            document,
            self.network.code,
            self._common,
            self._config.schedule_timing,
        )

    def _outcomes(self, tasks: Sequence[ScheduleTask]) -> list[Outcome]:
        return self._measurer.outcomes(tasks, self.measuring)

    def _everywhere(self, tasks: Sequence[ScheduleTask]) -> dict[str, list[Outcome]]:
        """Outcomes by target; there are several where workers have several processors."""
        if not isinstance(self._measurer, RayMeasurer):
            return {self.target: self._outcomes(tasks)}
        code = self.network.code
        found = self._measurer.everywhere(tasks, self.measuring)
        return {code.of_records(name): outcomes for name, outcomes in found.items()}

    def _keep(
        self, operator: int, target: str, trials: Sequence[Trial], outcomes: Sequence[Outcome]
    ) -> None:
        if self._store is not None:
            config = self._config.measuring(target)
            self._store.add(
                trial_record(self.operators[operator], trial, outcome, config)
                for trial, outcome in zip(trials, outcomes, strict=True)
            )

    def _measurer_of(self, workers: str) -> Measurer:
        if workers:
            return RayMeasurer(workers, pace_seconds=self._config.timing.pace_seconds)
        target = self.network.code.of_records()
        return LocalMeasurer(self._config.measuring(target), self._folder, self.network.code.cores)

    def _possible(self, outcome: Outcome, flops: float) -> Outcome:
        """The outcome, unless no processor is so fast."""
        outcome = credible(outcome)
        if isinstance(outcome, str) or flops <= outcome["seconds"] * self.peak_flops:
            return outcome
        return f"timed at {outcome['seconds']:.3g} s, faster than the processor can be"

    def _as_it_comes(self, number: int, record: Record) -> float:
        """Seconds of a function without a schedule."""
        function = self.network.functions[number]
        if record.seconds is not None:
            return record.seconds
        if is_tuned(function):
            raise TuningError(
                f"{self.network.name}: {function.title} cannot be timed without a schedule: "
                f"{record.reason}"
            )
        self.notes.append(f"{function.title} is not in the latency: {record.reason}")
        return 0.0
