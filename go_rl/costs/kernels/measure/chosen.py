"""Measuring some kernels, chosen before, within a time: what calibrates a model to a machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from go_rl.costs.kernels.measure.collect import MODEL, RECORDS, record_of
from go_rl.costs.kernels.measure.exported import part_task
from go_rl.costs.kernels.measure.rounds import measure_together
from go_rl.costs.timing.config import CollectConfig
from go_rl.costs.timing.worker import (
    WORKER,
    check_worker,
    folder_pace,
    worker_core,
    worker_environment,
)
from go_rl.graphs.readers.jax.stages import JaxProgram
from go_rl.runtime.records import AS_IT_COMES, RecordStore
from go_rl.runtime.warm_worker import WarmWorker

TOGETHER = 8
"""Kernels that are measured in turn; the time is looked at behind them."""
Report = Callable[[int, str], None]
"""Receives how many kernels are over, and a sentence."""


@dataclass(frozen=True, eq=False)
class ChosenKernel:
    """Some nodes of a program, run as one kernel."""

    program: JaxProgram
    nodes: tuple[int, ...]
    hash: str
    """What its record is kept under."""
    model: str


def measure_chosen(
    chosen: Sequence[ChosenKernel],
    folder: Path,
    config: CollectConfig,
    seconds: float,
    report: Report,
) -> dict[str, float]:
    """Return seconds by hash, of those that have a time; what the folder knows is not measured.

    Args:
        chosen: in the order of measuring.
        folder: of the records.
        config: target, core, timing.
        seconds: after which no further kernels are begun.
        report: receives progress.

    Raises:
        RecordError: nothing can be measured here, or the records cannot be read or written.
        WorkerError: the core cannot be had.
    """
    folder.mkdir(parents=True, exist_ok=True)
    end = time.monotonic() + seconds
    with (
        RecordStore(folder / RECORDS) as store,
        WarmWorker(WORKER, worker_core(config), worker_environment(config)) as worker,
    ):
        full_pace = folder_pace(folder, config)
        known = {record.workload for record in store.find(config.target)}
        missing = [each for each in chosen if each.hash not in known]
        if missing:
            check_worker(worker, config, full_pace)
        for start in range(0, len(missing), TOGETHER):
            if time.monotonic() > end:
                break
            some = missing[start : start + TOGETHER]
            asked = [part_task(each.program, each.nodes, config, full_pace) for each in some]
            able = [task for task in asked if not isinstance(task, str)]
            measured = iter(measure_together(worker, able, config))
            outcomes = [task if isinstance(task, str) else next(measured) for task in asked]
            store.add(
                record_of((each.hash, AS_IT_COMES), config, outcome, {MODEL: each.model})
                for each, outcome in zip(some, outcomes, strict=True)
            )
            report(start + len(some), f"{start + len(some)} of {len(missing)} kernels measured")
        found = store.find(config.target, [each.hash for each in chosen])
        return {r.workload: r.seconds for r in found if r.seconds is not None}
