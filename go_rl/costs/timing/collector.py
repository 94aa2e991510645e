"""`Collector`: measures what a folder of records lacks, in a warm worker process.

Kernels and tensor programs differ in what is asked for and in the worker that answers;
visits, records and going on where a run stopped are here once. ``records.sqlite`` of the folder
holds the times (`go_rl.runtime.records`), ``pace-<target>.json`` what
`go_rl.costs.timing.core_speed.full_pace` found when it was first asked. A record is kept as soon as
three visits have timed its program, and again when the last one has: whoever stops a run loses
seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from go_rl.costs.timing.config import CollectConfig
from go_rl.costs.timing.rounds import PARTIAL, NotReady, RequestOutcome, measure_together
from go_rl.costs.timing.tvm_calls import limit_told
from go_rl.costs.timing.worker import folder_pace, worker_core, worker_environment
from go_rl.runtime.records import RECORDS, Record, RecordStore
from go_rl.runtime.warm_worker import WarmWorker

MODEL = "model"
"""Detail of a record: the network in which its program was first met."""
SLOWED = "slowed"
"""Detail of a record: `go_rl.costs.timing.timing.Timing.slowed`."""
Report = Callable[[str], None]
Key = tuple[str, str, int]
"""Workload, setting and round of a record."""


@dataclass(frozen=True)
class Asked:
    """A measurement to be made."""

    workload: str
    setting: str
    request: Any
    """Request for the worker; or a text that says why there is none."""
    details: Mapping[str, Any]
    """Details of the record, beside the times."""
    kept: tuple[str, ...] = ()
    """Fields of the worker's answer that the record tells, too."""


@dataclass
class Collector:
    """Measures, and keeps records."""

    store: RecordStore
    worker: WarmWorker
    config: CollectConfig
    full_pace: float
    """Full pace of the core; see `go_rl.costs.timing.core_speed.CoreSpeed`."""
    known: set[Key]
    """Keys that need not be measured again."""
    made: int = 0
    """Measurements of this run."""

    def lacks(self, workload: str, setting: str) -> bool:
        """Return whether a measurement of this round is missing."""
        return (workload, setting, self.config.round) not in self.known

    def measure(self, asked: Iterable[Asked | NotReady]) -> None:
        """Measure together what is asked for; each item, which may be `NOT_READY`, is taken when
        the worker is ready for it (`measure_together`)."""
        timed: list[Asked] = []

        def requests() -> Iterator[Any]:
            for each in asked:
                if isinstance(each, NotReady):
                    yield each
                    continue
                self.made += 1
                if isinstance(each.request, str):
                    self._keep([(each, each.request)])
                else:
                    timed.append(each)
                    yield each.request

        def keep(outcomes: Mapping[int, RequestOutcome]) -> None:
            self._keep((timed[i], outcome) for i, outcome in outcomes.items())

        outcomes = measure_together(self.worker, requests(), self.config, keep)
        self._keep(zip(timed, outcomes, strict=True))

    def _keep(self, outcomes: Iterable[tuple[Asked, RequestOutcome]]) -> None:
        self.store.add(
            record_of(
                (each.workload, each.setting), self.config, outcome,
                {**each.details, **_kept(each, outcome)},
            )
            for each, outcome in outcomes
        )  # fmt: skip


@contextmanager
def collecting(
    folder: Path, config: CollectConfig, worker: str, most_seconds: float = 0.0
) -> Iterator[Collector]:
    """Open a folder of records and start a worker.

    Args:
        folder: of the records.
        config: target, core and timing.
        worker: ``module:function`` that answers (`go_rl.costs.timing.measuring_run.MeasuringRun`).
        most_seconds: see `is_whole`.

    Raises:
        RecordError: the folder's records cannot be read or written.
        WorkerError: the core cannot be had.
    """
    with (
        RecordStore(folder / RECORDS) as store,
        WarmWorker(worker, worker_core(config), worker_environment(config)) as process,
    ):
        full_pace = folder_pace(folder, config)
        known = whole_keys(store, config.target, config.timing.most_slowed, most_seconds)
        yield Collector(store, process, config, full_pace, known)


def whole_keys(
    store: RecordStore, target: str, most_slowed: float = 0.0, most_seconds: float = 0.0
) -> set[Key]:
    """Return workload, setting and round of all that need not be measured again
    (`is_whole`)."""
    return {
        (record.workload, record.setting, record.round)
        for record in store.find(target)
        if is_whole(record, most_slowed, most_seconds)
    }


def is_whole(record: Record, most_slowed: float = 0.0, most_seconds: float = 0.0) -> bool:
    """Return whether the next run need not measure a record's program again: it was not cut off
    before its last visit, nor made on a core that was disturbed, nor given up after fewer seconds
    than it may take now.

    Args:
        record: what is known.
        most_slowed: see `go_rl.costs.timing.config.TimingConfig`; 0: disturbances do not count.
        most_seconds: that one run of a program may take.
    """
    slowed = float(record.details.get(SLOWED, 0.0))
    cut_off = record.details.get(PARTIAL) or limit_told(record.reason) < most_seconds
    return not cut_off and (most_slowed == 0 or slowed <= most_slowed)


def record_of(
    key: tuple[str, str],
    config: CollectConfig,
    outcome: dict[str, Any] | str,
    details: Mapping[str, Any],
) -> Record:
    """Return the record of a measurement, or of why there is none.

    Args:
        key: hash of the kernel, and the setting.
        config: target and round.
        outcome: what was measured, or why there is nothing.
        details: what else is to be kept.
    """
    common: dict[str, Any] = {
        "workload": key[0], "setting": key[1], "target": config.target, "round": config.round,
    }  # fmt: skip
    if isinstance(outcome, str):
        return Record(**common, reason=outcome, details=details)
    return Record(
        **common,
        seconds=outcome["seconds"],
        spread=outcome["spread"],
        repeats=outcome["calls"],
        details={
            **details,
            "compile_seconds": round(outcome["compile_seconds"], 4),
            "median": float(f"{outcome['median']:.5g}"),
            SLOWED: round(outcome["slowed"], 3),
            "away": round(outcome["away"], 3),
            "xla": outcome.get("xla", {}),
            **({PARTIAL: True} if outcome.get(PARTIAL) else {}),
        },
    )


def failures_of(records: Iterable[Record]) -> dict[str, int]:
    """Return the reasons why a measurement has no time, sorted, and how often."""
    return dict(sorted(Counter(r.reason for r in records if r.seconds is None).items()))


def _kept(asked: Asked, outcome: RequestOutcome) -> dict[str, Any]:
    if isinstance(outcome, str):
        return {}
    told = {name: outcome[name] for name in asked.kept}
    return {name: round(x, 4) if isinstance(x, float) else x for name, x in told.items()}
