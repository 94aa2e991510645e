"""`KernelTimer`: each kernel measured once, and again where two are compared; what a folder's
records know is replayed.

A replayed measurement costs the budget what it took when it was made, so that a run that goes on
where another stopped, or shares its folder, spends as much as one that had to measure all.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from go_rl.costs.kernels.measure.exported import part_request
from go_rl.costs.kernels.measure.settings import with_setting
from go_rl.costs.kernels.measure.worker import KernelRequest
from go_rl.costs.timing.collector import record_of
from go_rl.costs.timing.config import CollectConfig
from go_rl.costs.timing.rounds import batches, measure_together
from go_rl.costs.timing.worker import (
    WORKER,
    check_worker,
    folder_pace,
    worker_core,
    worker_environment,
)
from go_rl.graphs.readers.jax.stages import JaxProgram
from go_rl.runtime.records import Record, RecordStore
from go_rl.runtime.warm_worker import WarmWorker
from go_rl.tuning.xla.budget import Clock, TuningBudget
from go_rl.tuning.xla.fusions import Part

SPENT, CHECK = "spent", "check"
NO_CACHE = {"JAX_ENABLE_COMPILATION_CACHE": "false"}
"""Environment without a cache: every compilation is paid for, whoever compiled the same before."""
AGAIN = 3
"""Factor on the visits where kernels are compared."""

Job = tuple[Part, str]
"""A kernel, and the setting that it is measured under."""
Key = tuple[str, str, int]
"""Hash of a kernel, its setting, and the round."""


@runtime_checkable
class Source(Protocol):
    """Compiles and times a kernel for real."""

    def start(self) -> None:
        """Get ready; the first time only. This is no tuning, and does not count as such."""
        ...

    def together(
        self, jobs: Sequence[tuple[Sequence[int], str]], times: int = 1
    ) -> list[dict[str, Any] | str]:
        """Return what `go_rl.costs.timing.rounds.measure_together` does of nodes under
        settings, all visited in turn, with this many times the visits; or why there is no
        time."""
        ...


class KernelTimer:
    """Times kernels of one model, and keeps records of them.

    Args:
        store: where records are kept.
        source: measures kernels for real.
        config: configuration of measurements, with the target of the records.
        model: name of the model, for the records.
        budget: is charged for what is replayed.
        clock: tells what a measurement takes.
    """

    def __init__(
        self,
        store: RecordStore,
        source: Source,
        config: CollectConfig,
        model: str,
        budget: TuningBudget,
        clock: Clock = time.perf_counter,
    ) -> None:
        self.made = 0
        """Measurements made."""
        self.replayed = 0
        """Measurements taken from the records."""
        self._store, self._source, self._config, self._model = store, source, config, model
        self._budget, self._clock = budget, clock
        self._known: dict[Key, Record] = {}
        self._repeats: dict[tuple[str, str, str], Key] = {}
        """Keys of repeats by kernel, setting and name of a comparison."""
        self._paid: set[Key] = set()
        for record in store.find(config.target):
            self._remember(record)

    def measure_together(self, jobs: Sequence[Job]) -> list[Record]:
        """Return the records of kernels under settings; those that are missing are visited in
        turn."""
        keys = [(part.hash, setting, 0) for part, setting in jobs]
        missing = {key: job for key, job in zip(keys, jobs, strict=True) if key not in self._known}
        made = self._together(list(missing.values()), [0] * len(missing), 1, {}) if missing else []
        fresh = dict(zip(missing, made, strict=True))
        return [fresh.get(key) or self._replay(key) for key in keys]

    def again(self, jobs: Sequence[Job], number: int = 0) -> list[Record]:
        """Return fresh measurements of kernels under settings, visited in turn, `AGAIN` times as
        often as at first, so that they can be compared; or those that an earlier run made of just
        these jobs.

        Args:
            jobs: each once.
            number: of the comparison, if the same jobs are compared several times.
        """
        told = [(part.hash, setting) for part, setting in jobs]
        name = hashlib.sha256(json.dumps([told, number]).encode()).hexdigest()[:16]
        keys = [self._repeats.get((*job, name)) for job in told]
        if all(keys):
            return [self._replay(key) for key in keys if key is not None]
        return self._together(jobs, [self._next_round(job) for job in told], AGAIN, {CHECK: name})

    def settle(self, jobs: Iterable[tuple[str, str]]) -> None:
        """Hear that first measurements of kernels (hash, setting) are paid for: a journal that the
        run goes on behind has what they took."""
        keys = ((*job, 0) for job in jobs)
        self._paid |= {key for key in keys if key in self._known}

    def affordable(self, seconds: float) -> int:
        """Return how many first measurements are made in this many seconds, by the mean of those so
        far; 1 if there is none, or even one takes longer."""
        paid = [self._known[key] for key in self._paid if key[2] == 0]
        spent = sum(map(_spent, paid))
        return max(1, int(seconds * len(paid) / spent)) if spent else 1

    def spent_on(self, jobs: Sequence[Job]) -> float:
        """Return the seconds that first measurements of kernels under settings took."""
        first = (self._known.get((part.hash, setting, 0)) for part, setting in jobs)
        return sum(_spent(record) for record in first if record)

    def _next_round(self, job: tuple[str, str]) -> int:
        """The first round from 1 on in which a kernel was not measured under a setting."""
        return next(i for i in count(1) if (*job, i) not in self._known)

    def _replay(self, key: Key) -> Record:
        record = self._known[key]
        if key not in self._paid:
            self._paid.add(key)
            self.replayed += 1
            self._budget.charge(_spent(record))
        return record

    def _together(
        self, jobs: Sequence[Job], rounds: Sequence[int], times: int, details: dict[str, Any]
    ) -> list[Record]:
        with self._budget.paused():
            self._source.start()
        began = self._clock()
        outcomes = self._source.together([(p.nodes, setting) for p, setting in jobs], times)
        about = {SPENT: (self._clock() - began) / len(jobs), **details}
        return [
            self._keep(job, round, outcome, about)
            for job, round, outcome in zip(jobs, rounds, outcomes, strict=True)
        ]

    def _keep(
        self, job: Job, round: int, outcome: dict[str, Any] | str, about: dict[str, Any]
    ) -> Record:
        (part, setting), config = job, replace(self._config, round=round)
        details = {"model": self._model, **about}
        record = record_of((part.hash, setting), config, outcome, details)
        self._store.add([record])
        self._remember(record)
        self._paid.add((part.hash, setting, round))
        self.made += 1
        return record

    def _remember(self, record: Record) -> None:
        key = record.workload, record.setting, record.round
        self._known[key] = record
        if CHECK in record.details:
            self._repeats[record.workload, record.setting, record.details[CHECK]] = key


class WorkerSource:
    """`Source`: a warm worker process on a core of its own, started by the first kernel.

    Args:
        program: of the model.
        config: how kernels are measured.
        folder: that keeps the reference speed of the core
        (`go_rl.costs.timing.worker.folder_pace`).
    """

    def __init__(self, program: JaxProgram, config: CollectConfig, folder: Path) -> None:
        self._program, self._config, self._folder = program, config, folder
        environment = {**worker_environment(config), **NO_CACHE}
        self._worker = WarmWorker(WORKER, core=worker_core(config), environment=environment)
        self._last: tuple[tuple[int, ...], KernelRequest | str] | None = None
        self._ready = False

    def start(self) -> None:
        """Check that a kernel can be measured at all.

        Raises:
            RecordError: nothing can be measured here.
            WorkerError: the core cannot be had.
        """
        if not self._ready:
            check_worker(self._worker, self._config, self._full_pace)
            self._ready = True

    def together(
        self, jobs: Sequence[tuple[Sequence[int], str]], times: int = 1
    ) -> list[dict[str, Any] | str]:
        timing = self._config.timing
        config = replace(
            self._config,
            timing=replace(timing, visits=times * timing.visits, patience=times * timing.patience),
        )
        said = [self._request(tuple(nodes), setting) for nodes, setting in jobs]
        able = [request for request in said if not isinstance(request, str)]
        outcomes = (
            outcome
            for batch in batches(able, lambda request: request.operand_bytes, timing.together)
            for outcome in measure_together(self._worker, batch, config)
        )
        return [request if isinstance(request, str) else next(outcomes) for request in said]

    def __enter__(self) -> WorkerSource:
        return self

    def __exit__(self, *_: object) -> None:
        self._worker.close()

    def _request(self, nodes: tuple[int, ...], setting: str) -> KernelRequest | str:
        """The kernel as it travels, or why it cannot; the last one is kept for its settings."""
        if self._last is None or self._last[0] != nodes:
            request = part_request(self._program, nodes, self._config, self._full_pace)
            self._last = nodes, request
        request = self._last[1]
        return request if isinstance(request, str) else with_setting(request, setting)

    @cached_property
    def _full_pace(self) -> float:
        return folder_pace(self._folder, self._config)


def _spent(record: Record) -> float:
    return float(record.details.get(SPENT, 0.0))
