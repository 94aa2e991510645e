"""`TvmBackend`: a network's operators built by TVM and timed by a warm worker on one core."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from math import inf
from pathlib import Path
from statistics import median
from typing import Any

from go_rl.costs.timing.collector import record_of
from go_rl.costs.timing.config import CollectConfig
from go_rl.costs.timing.rounds import RequestOutcome
from go_rl.costs.timing.worker import TOO_LONG
from go_rl.runtime.records import AS_IT_COMES, Record, RecordStore
from go_rl.tuning.config import TuneProgramsConfig, TuningError
from go_rl.tuning.loop.nouns import Candidate, Trial, TunedOperator
from go_rl.tuning.loop.trial_records import known_trials, trial_record
from go_rl.tuning.tvm.light_candidates import light_candidates
from go_rl.tuning.tvm.lowering import LoweredNetwork
from go_rl.tuning.tvm.measure.measurers import LocalMeasurer, Measurer
from go_rl.tuning.tvm.measure.ray_measurer import RayMeasurer
from go_rl.tuning.tvm.measure.worker import (
    SLOW_SECONDS,
    CandidateRequest,
    Measuring,
    NetworkRequest,
    RivalRequest,
)
from go_rl.tuning.tvm.models.model import Rival
from go_rl.tuning.tvm.operators import NetworkFunction, is_tuned
from go_rl.tuning.tvm.space import TvmSpace

PRIVATE_CACHE = 1 << 20
"""Bytes of weights that a network has at least where operators are timed with flushed caches."""
MOST_FLUSHED = 8 << 20
"""Bytes that are flushed, at most: more than a core's own caches hold."""
APART = 1.5
"""Median over the quantile that counts, from which times disagree; the median counts then."""
SLOWEST = 40.0
"""Runs of a network that one visit may take, at most."""
TOGETHER = 8
"""Functions without a schedule that are timed in turn, and then kept."""
TOGETHER_FLOPS = 4e9
"""FLOP of functions that are timed in turn, at most, but for a single one."""
SLOW_RATE = 2e9
"""FLOP/s of loops without a schedule, where none was timed."""
FASTER = "faster than the processor can be"
"""Part of the reason of a time that is refused."""
NAME, CALLS = "function", "calls"
"""Keys in the details of a record of a function without a schedule."""


def credible(outcome: RequestOutcome) -> RequestOutcome:
    """Return an outcome whose ``seconds`` are the median where times disagree: some may be wrong on
    the short side, and such a candidate would be taken for the best."""
    if isinstance(outcome, str) or outcome["median"] <= APART * outcome["seconds"]:
        return outcome
    return {**outcome, "seconds": outcome["median"]}


class TvmBackend:
    """Back end of a network in TVM (`go_rl.tuning.loop.tuning_run.LiveBackend`). Close it: it has a
    process.

    Args:
        network: whose operators are tuned.
        config: how they are measured.
        folder: keeps the reference speed of the core.
    """

    def __init__(self, network: LoweredNetwork, config: TuneProgramsConfig, folder: Path) -> None:
        self.network = network
        self._config, self._folder = config, folder
        self._measurer = self._measurer_of(config.workers)
        self._store: RecordStore | None = None
        self._seconds: list[float] = []
        """Seconds of each function without a schedule."""
        self._light: dict[int, tuple[float, Candidate]] = {}
        """Seconds and candidate of functions that are not tuned, where one of theirs is faster."""
        self.estimated: frozenset[int] = frozenset()
        """Tuned functions whose seconds without a schedule are no more than an estimate."""
        self.notes: list[str] = []

    @property
    def target(self) -> str:
        processor = self._measurer.target if isinstance(self._measurer, RayMeasurer) else ""
        return self.network.code.of_records(processor)

    @property
    def operators(self) -> tuple[TunedOperator, ...]:
        return self._operators

    @property
    def fixed_seconds(self) -> float:
        """Seconds of the rest of the network; known from `start` on."""
        return sum(
            self.network.functions[i].calls * self.seconds_of(i)
            for i in range(len(self.operators), len(self._seconds))
        )

    @property
    def light_candidates(self) -> dict[int, Candidate]:
        """Candidates of functions that are not tuned, by number, where one is faster than the loops
        as they are; known from `start` on."""
        return {i: candidate for i, (_, candidate) in self._light.items()}

    def seconds_of(self, number: int) -> float:
        """Return seconds of one run of a function that is not tuned, under its light candidate
        where it has one; 0: it has no time. Known from `start` on."""
        return self._light.get(number, (self._seconds[number], None))[0]

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
        return self.network.name

    @property
    def peak_flops(self) -> float:
        return self.network.code.peak_flops

    @property
    def measuring(self) -> CollectConfig:
        """Configuration of the measurement of a candidate."""
        return self._config.measuring(self.target)

    def start(
        self,
        store: RecordStore,
        seconds: float = inf,
        report: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Time each function without a schedule, tuned ones with the fewest FLOP first, and those
        that are not tuned with light ones (`go_rl.tuning.tvm.light_candidates`), unless the
        store knows it; trials go there, too.

        Args:
            store: of records.
            seconds: behind which no further function is timed; what has no time by then is
                estimated from its FLOP, which a note tells.
            report: is told how many were timed.

        Raises:
            RecordError: the store cannot be read or written.
            WorkerError: the core cannot be had.
        """
        report("finding the reference speed of the core")
        _ = self._common
        self._store, until = store, self.clock() + seconds
        functions = self.network.functions
        wanted = [function.operator for function in functions]
        known = {
            record.workload: record
            for record in store.find(self.target, [each.workload for each in wanted], 0)
            if record.setting == AS_IT_COMES
        }
        missing = [i for i, each in enumerate(wanted) if each.workload not in known]
        done = 0
        for numbers in _groups(missing, functions):
            if done and self.clock() > until:
                break
            report(f"timing operators without schedules: {done} of {len(missing)}")
            requests = [self._request(functions[i], None) for i in numbers]
            for i, outcome in zip(numbers, self._outcomes(requests), strict=True):
                about = {NAME: wanted[i].name, CALLS: wanted[i].repeats}
                key, told = (wanted[i].workload, AS_IT_COMES), self._possible(outcome, functions[i])
                known[wanted[i].workload] = record_of(key, self.measuring, told, about)
                store.add([known[wanted[i].workload]])
            done += len(numbers)
        records = [known.get(each.workload) for each in wanted]
        self._seconds = self._as_they_come(records)
        light = sorted(range(len(self.operators), len(wanted)), key=self._weight, reverse=True)
        for place, i in enumerate(light):
            if self.clock() > until:
                break
            report(f"timing light candidates of what is not tuned: {place} of {len(light)}")
            self._try_light(i)

    def _weight(self, number: int) -> float:
        return self.network.functions[number].calls * self._seconds[number]

    def _try_light(self, number: int) -> None:
        """Time light candidates of a function that is not tuned, and keep the fastest."""
        function, store = self.network.functions[number], self._store
        assert store is not None
        if not self._seconds[number]:
            return  # it has no time
        candidates = light_candidates(function.module, self.network.code)
        known = known_trials(store, self.target, [function.operator]).get(0, [])
        keys = {trial.candidate.key for trial in known}
        missing = [candidate for candidate in candidates if candidate.key not in keys]
        outcomes = self._outcomes([self._request(function, each.document) for each in missing])
        known += self._trials(function, missing, outcomes, self.target, 0.0)
        timed = [(trial.seconds, trial.candidate) for trial in known if trial.seconds is not None]
        best = min(timed, key=lambda pair: pair[0], default=None)
        if best is not None and best[0] < self._seconds[number]:
            self._light[number] = best

    def space(self, operator: int) -> TvmSpace:
        return self.network.spaces[operator]

    def measure(self, operator: int, candidates: Sequence[Candidate]) -> list[Trial]:
        """Build and time candidates; each trial is in the store when this returns."""
        began, function = self.clock(), self.network.tuned[operator]
        requests = [self._request(function, each.document) for each in candidates]
        by_target = self._everywhere(requests)
        spent = (self.clock() - began) / max(len(candidates), 1)
        found: list[Trial] = []
        for target, outcomes in by_target.items():
            trials = self._trials(function, candidates, outcomes, target, spent)
            found = trials if target == self.target else found
        return found

    def clock(self) -> float:
        return time.perf_counter()

    def lapse(self, seconds: float) -> None:
        """Do nothing: only the run counts what is left."""

    def compare(
        self, compiled: Sequence[Path], rivals: Sequence[Rival], expected: float
    ) -> list[RequestOutcome]:
        """Return the outcomes of compiled networks and of the same network elsewhere, visited in
        turn.

        Args:
            compiled: shared libraries.
            rivals: other implementations.
            expected: seconds of one run, about.

        Raises:
            TuningError: a compiled network cannot be run; one that takes too long has the reason
                as its outcome.
        """
        timing = self._config.check_timing
        if expected > SLOW_SECONDS:
            timing = replace(timing, least_calls=1)
        inputs, common = self.network.inputs, self._common
        requests: list[Any] = [
            NetworkRequest(str(path.absolute()), inputs, common, timing) for path in compiled
        ]
        requests += [RivalRequest(each, inputs, common, timing, self.cores) for each in rivals]
        patient = max(self._config.timeout, SLOWEST * expected)
        config = replace(self._config.measuring(self.target, timing), timeout=patient)
        outcomes = [credible(each) for each in self._measurer.in_turn(requests, config)]
        for path, outcome in zip(compiled, outcomes, strict=False):
            if isinstance(outcome, str) and not outcome.startswith(TOO_LONG):
                raise TuningError(f"{path}: the compiled network cannot be run: {outcome}")
        return outcomes

    @property
    def cores(self) -> int:
        """Cores that one run uses."""
        return self.network.code.cores

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

    def _request(self, function: NetworkFunction, document: Any) -> CandidateRequest:
        return CandidateRequest(
            function.text, document, self.network.code, self._common, self._config.candidate_timing
        )

    def _outcomes(self, requests: Sequence[CandidateRequest]) -> list[RequestOutcome]:
        return self._measurer.outcomes(requests, self.measuring)

    def _everywhere(self, requests: Sequence[CandidateRequest]) -> dict[str, list[RequestOutcome]]:
        """Outcomes by target; there are several where workers have several processors."""
        if not isinstance(self._measurer, RayMeasurer):
            return {self.target: self._outcomes(requests)}
        code = self.network.code
        found = self._measurer.everywhere(requests, self.measuring)
        return {code.of_records(name): outcomes for name, outcomes in found.items()}

    def _trials(
        self, function: NetworkFunction, candidates: Sequence[Candidate],
        outcomes: Sequence[RequestOutcome], target: str, spent: float,
    ) -> list[Trial]:  # fmt: skip
        """Trials of candidates that took ``spent`` seconds each; they are in the store, too."""
        told = [self._possible(outcome, function) for outcome in outcomes]
        trials = [
            Trial(candidate, None, spent, outcome)
            if isinstance(outcome, str)
            else Trial(candidate, outcome["seconds"], spent)
            for candidate, outcome in zip(candidates, told, strict=True)
        ]
        if self._store is not None:
            config = self._config.measuring(target)
            self._store.add(
                trial_record(function.operator, trial, outcome, config)
                for trial, outcome in zip(trials, told, strict=True)
            )
        return trials

    def _measurer_of(self, workers: str) -> Measurer:
        if workers:
            return RayMeasurer(workers, pace_seconds=self._config.timing.pace_seconds)
        target = self.network.code.of_records()
        return LocalMeasurer(self._config.measuring(target), self._folder, self.network.code.cores)

    def _possible(self, outcome: RequestOutcome, function: NetworkFunction) -> RequestOutcome:
        """The outcome, unless no processor is so fast."""
        outcome = credible(outcome)
        if isinstance(outcome, str) or function.flops <= outcome["seconds"] * self.peak_flops:
            return outcome
        return f"timed at {outcome['seconds']:.3g} s, {FASTER}"

    def _as_they_come(self, records: Sequence[Record | None]) -> list[float]:
        """Seconds of each function without a schedule; those of a tuned one that has no time are
        estimated from its FLOP, at the rate of the others."""
        pairs = list(zip(self.network.functions, records, strict=True))
        rates = [
            function.flops / record.seconds
            for function, record in pairs
            if is_tuned(function) and record is not None and record.seconds
        ]
        rate = median(rates) if rates else SLOW_RATE
        estimated, late, found = 0, 0, list[float]()
        self.estimated = frozenset(
            i for i, (function, record) in enumerate(pairs)
            if is_tuned(function) and (record is None or record.seconds is None)
        )  # fmt: skip
        for function, record in pairs:
            if record is not None and record.seconds is not None:
                found.append(record.seconds)
                continue
            found.append(function.flops / rate if is_tuned(function) else 0.0)
            if record is None:
                estimated += is_tuned(function)
                late += not is_tuned(function)
            elif is_tuned(function):
                self.notes.append(
                    f"{function.title} has no time without a schedule ({record.reason}): it is "
                    "estimated from its FLOP"
                )
            else:
                self.notes.append(f"{function.title} is not in the latency: {record.reason}")
        if estimated or late:
            self.notes.append(
                f"The time was over before {estimated + late} operators were timed without a "
                f"schedule: {estimated} are estimated from their FLOP, {late} are not in the "
                "latency"
            )
        return found


def _groups(numbers: Sequence[int], functions: Sequence[NetworkFunction]) -> Iterator[list[int]]:
    """Functions that are timed in turn: tuned ones with the fewest FLOP first, then the others with
    most."""
    group: list[int] = []

    def order(i: int) -> tuple[bool, float]:
        tuned = is_tuned(functions[i])
        return not tuned, functions[i].flops if tuned else -functions[i].flops

    for i in sorted(numbers, key=order):
        total = sum(functions[k].flops for k in group) + functions[i].flops
        if group and (len(group) == TOGETHER or total > TOGETHER_FLOPS):
            yield group
            group = []
        group.append(i)
    if group:
        yield group
