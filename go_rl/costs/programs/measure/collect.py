"""Measuring random schedules of the tasks of networks, into the records of a folder; what is there
is not measured again.

A record's workload is the hash of the task, its setting ``{"codegen", "draw", "draws", "seed"}``;
its details hold the task, the network that it comes from, the loop nest, from which features are
computed without TVM, the schedule's trace, and what the idle check before its batch said. A program
that was drawn before for its task is not measured again; its record says so.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from go_rl.core.errors import nearest
from go_rl.costs.programs.measure.measure import DrawnNest, IdleCheck, ProgramTask
from go_rl.costs.programs.measure.program_sets import program_set
from go_rl.costs.programs.workloads import TaskError, TensorTask, network_tasks
from go_rl.costs.programs.workloads.drawn_programs import CODEGEN, Drawing
from go_rl.costs.timing.collector import (
    MODEL,
    Asked,
    Collector,
    Report,
    collecting,
    is_whole,
)
from go_rl.costs.timing.config import ProgramsConfig
from go_rl.costs.timing.rounds import VISIT_SECONDS, batches
from go_rl.costs.timing.tvm_calls import import_tvm
from go_rl.costs.timing.worker import START_SECONDS, reason_of
from go_rl.graphs.zoo.index import zoo_graph
from go_rl.runtime.warm_worker import WorkerDied, WorkerFailed, WorkerTimeout

WORKER = "go_rl.costs.programs.measure.measure:answer"
TASK, NEST, TRACE = "task", "nest", "trace"
"""Fields in the details of a program's record; those without a time have the task only."""
MEMORY = "memory_seconds"
"""Field that holds what `go_rl.costs.programs.measure.measure.memory_seconds` was before the
batch."""
AGAIN = "drawn before"
"""Reason why a program has no time: it has one under another setting."""
Known = dict[tuple[str, str], set[bytes]]
"""Hashes of the loop nests that were measured, by workload and level of x86-64."""
Sized = tuple[Asked, int]
"""What is asked for, and bytes of its operands."""


def listed_tasks(config: ProgramsConfig) -> dict[TensorTask, str]:
    """Return the distinct tasks of the data set or the networks, each with the first network that
    has it.

    Raises:
        TaskError: there is no such data set.
        ZooError: there is no such network.
    """
    if config.data_set:
        heavy, others = program_set(config.data_set).tasks()
        return heavy | others
    found: dict[TensorTask, str] = {}
    for name in config.networks:
        for task in network_tasks(zoo_graph(name)):
            if task.flops <= config.measure.sampling.most_flops:
                found.setdefault(task, name)
    return found


def listed_drawings(config: ProgramsConfig, tasks: Iterable[TensorTask]) -> list[Drawing]:
    """Return what is drawn, in order.

    Args:
        config: which data set, or how many schedules of each task for which levels.
        tasks: where no data set says.

    Raises:
        TaskError: a level of x86-64 or the data set is unknown.
    """
    if config.data_set:
        return list(program_set(config.data_set).drawings())
    for level in config.codegen:
        if level not in CODEGEN:
            raise TaskError(f"unknown level of x86-64 {level!r}{nearest(level, CODEGEN)}")
    return [
        Drawing(task, level, config.schedules, config.measure.sampling.seed)
        for task in sorted(tasks, key=lambda task: task.workload)
        for level in config.codegen
    ]


def collect_programs(
    folder: Path,
    config: ProgramsConfig,
    report: Report,
    tasks: Mapping[TensorTask, str] | None = None,
) -> int:
    """Measure what is missing, and return how many measurements were made.

    Args:
        folder: of the records.
        config: which programs are measured, and how.
        report: told a sentence after each drawing of `listed_drawings`.
        tasks: with the networks that have them; None: `listed_tasks`.

    Raises:
        MissingDependencyError: TVM is not installed.
        RecordError: the folder's records cannot be read or written.
        TaskError: a level of x86-64 or the data set is unknown.
        WorkerError: the core cannot be had.
        ZooError: there is no such network.
    """
    import_tvm()
    measure = config.measure
    tasks = listed_tasks(config) if tasks is None else tasks
    drawings = listed_drawings(config, tasks)
    with collecting(folder, measure, WORKER) as collector:
        known = _known_nests(collector)

        def missing() -> Iterator[Sized]:
            for drawing in drawings:
                yield from _missing(drawing, tasks[drawing.task], config, collector, known)
                report(f"{drawing.task.title}: {collector.made} measured so far")

        for batch in batches(missing(), lambda each: each[1], measure.timing.together):
            # A fresh process imports TVM.
            seconds = collector.worker.call(IdleCheck(), START_SECONDS)
            found = {MEMORY: float(f"{seconds:.4g}")}
            collector.measure(_with(asked, found) for asked, _ in batch)
        return collector.made


def _missing(
    drawing: Drawing, network: str, config: ProgramsConfig, collector: Collector, known: Known
) -> Iterator[Sized]:
    """Yield what a drawing lacks; programs that are known are not measured again."""
    workload, text = drawing.task.workload, drawing.task.to_json()
    lacking = [
        draw for draw in range(drawing.draws) if collector.lacks(workload, drawing.setting(draw))
    ]
    if not lacking:
        return
    nests = _nests(drawing, collector)
    seen = known.setdefault((workload, drawing.codegen), set())
    about, kept = {MODEL: network, TASK: text}, (NEST, TRACE, VISIT_SECONDS)
    for draw in lacking:
        drawn = nests[draw] if draw < len(nests) else DrawnNest("", 0, f"{len(nests)} were drawn")
        hashed = _hash(drawn.nest)
        reason = drawn.reason or (AGAIN if hashed in seen else "")
        seen.add(hashed)
        task = reason or ProgramTask(
            drawing, draw, config.memory, config.most_seconds, collector.full_pace,
            config.measure.timing,
        )  # fmt: skip
        yield Asked(workload, drawing.setting(draw), task, about, kept), drawn.operand_bytes


def _nests(drawing: Drawing, collector: Collector) -> list[DrawnNest]:
    """Return the loop nests of a drawing; why there are none is the reason of each."""
    try:
        return collector.worker.call(drawing, START_SECONDS)
    except (WorkerDied, WorkerFailed, WorkerTimeout) as error:
        return [DrawnNest("", 0, reason_of(error, START_SECONDS))] * drawing.draws


def _known_nests(collector: Collector) -> Known:
    """Return what was measured whole in this round."""
    known: Known = {}
    config = collector.config
    for record in collector.store.find(config.target, round=config.round):
        if NEST in record.details and is_whole(record, config.timing.most_slowed):
            level = str(json.loads(record.setting)["codegen"])
            known.setdefault((record.workload, level), set()).add(_hash(record.details[NEST]))
    return known


def _with(asked: Asked, details: Mapping[str, Any]) -> Asked:
    return replace(asked, details={**asked.details, **details})


def _hash(nest: str) -> bytes:
    return hashlib.sha256(nest.encode()).digest()[:16]
