"""Measuring random schedules of the tasks of networks, into the records of a folder; what is there
is not measured again.

A record's workload is the hash of the task, its setting ``{"codegen", "draw", "draws", "seed"}``;
its details hold the task, the network that it comes from, the loop nest, from which features are
computed without TVM, the schedule's trace, numbers of the machine code, and what the idle check
before its batch said. A program that was drawn before for its task is not measured again; its
record says so.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from go_rl.core.errors import nearest
from go_rl.costs.programs.measure.features_file import nest_hash
from go_rl.costs.programs.measure.measure import BuildRequest, DrawnNest, IdleCheck, ProgramRequest
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
from go_rl.costs.timing.rounds import NOT_READY, VISIT_SECONDS, batches
from go_rl.costs.timing.tvm_calls import import_tvm
from go_rl.costs.timing.worker import (
    START_SECONDS,
    reason_of,
    worker_core,
    worker_environment,
)
from go_rl.graphs.zoo.index import zoo_graph
from go_rl.runtime.prefetch import polled
from go_rl.runtime.warm_worker import WarmWorker, WorkerDied, WorkerFailed, WorkerTimeout

WORKER = "go_rl.costs.programs.measure.measure:answer"
BUILDER = "go_rl.costs.programs.measure.measure:build"
TASK, NEST, TRACE, MACHINE = "task", "nest", "trace", "machine"
"""Fields in the details of a program's record; those without a time have the task only."""
MEMORY = "memory_seconds"
"""Field that holds what `go_rl.costs.programs.measure.measure.memory_seconds` was before the
batch."""
AGAIN = "drawn before"
"""Reason why a program has no time: it has one under another setting."""
Known = dict[tuple[str, str], set[bytes]]
"""Hashes of the loop nests that were measured, by workload and level of x86-64."""
NOTHING: Mapping[tuple[str, str], str] = MappingProxyType({})
KEPT = (NEST, TRACE, MACHINE, VISIT_SECONDS)
Wanted = Collection[tuple[str, str]]
"""Workload and setting of the programs to be measured."""
Sized = tuple[Asked, int]
"""A measurement to be made, and the bytes of its operands."""


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
    """Return what is drawn, in order: of each task its loops as they are, then schedules.

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
    count, seed = config.candidates, config.measure.sampling.seed
    return [
        drawing
        for task in sorted(tasks, key=lambda task: task.workload)
        for level in config.codegen
        for drawing in (Drawing.plain(task, level), Drawing(task, level, count, seed))
    ]


def collect_programs(
    folder: Path,
    config: ProgramsConfig,
    report: Report,
    tasks: Mapping[TensorTask, str] | None = None,
    wanted: Wanted | None = None,
    measured: Mapping[tuple[str, str], str] = NOTHING,
) -> int:
    """Measure what is missing, and return how many measurements were made.

    Args:
        folder: of the records.
        config: which programs are measured, and how.
        report: told a sentence after each drawing of `listed_drawings`.
        tasks: with the networks that have them; None: `listed_tasks`.
        wanted: programs that were chosen; None: all that are drawn.
        measured: loop nests of programs that have times elsewhere, by workload and setting.

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
    with (
        TemporaryDirectory() as libraries,  # outlives the builder, which may be linking
        collecting(folder, measure, WORKER, config.most_seconds) as collector,
        _builder(config) as builder,
    ):
        known = _known_nests(collector, measured)
        collector.known.update((*key, measure.round) for key in measured)

        def missing() -> Iterator[Sized]:
            for drawing in drawings:
                lacking = _lacking(drawing, collector, wanted)
                if lacking:
                    seen = known.setdefault((drawing.task.workload, drawing.codegen), set())
                    nests = nests_of(drawing, builder)
                    drawn = [(draw, nests[draw]) for draw in lacking]
                    yield from _asked(drawing, drawn, tasks[drawing.task], seen)
                report(f"{drawing.task.title}: {collector.made} measured so far")

        for batch in batches(missing(), lambda each: each[1], measure.timing.together):
            # A fresh process imports TVM.
            seconds = collector.worker.call(IdleCheck(), START_SECONDS)
            found = {MEMORY: float(f"{seconds:.4g}")}
            built = (_built(each, found, builder, Path(libraries), collector, config)
                     for each, _ in batch)  # fmt: skip
            collector.measure(polled(built, NOT_READY))
            for library in Path(libraries).iterdir():
                library.unlink()
        return collector.made


def _builder(config: ProgramsConfig) -> WarmWorker:
    """Return the process that draws and builds: by default on the core that measures, where it
    yields to what is measured."""
    core = worker_core(config.measure) if config.build_core is None else config.build_core
    return WarmWorker(BUILDER, core, worker_environment(config.measure))


def drawn_nests(
    drawings: Iterable[Drawing], config: ProgramsConfig
) -> dict[Drawing, list[DrawnNest]]:
    """Return the programs that `collect_programs` would measure, without measuring any.

    Raises:
        MissingDependencyError: TVM is not installed.
        WorkerError: the core cannot be had.
    """
    import_tvm()
    with _builder(config) as builder:
        return {drawing: nests_of(drawing, builder) for drawing in drawings}


def nests_of(drawing: Drawing, builder: WarmWorker) -> list[DrawnNest]:
    """Return a `DrawnNest` for each schedule of a drawing; why there is none is its reason."""
    try:
        found = builder.call(drawing, START_SECONDS)
    except (WorkerDied, WorkerFailed, WorkerTimeout) as error:
        found, why = [], reason_of(error, START_SECONDS)
    else:
        why = f"only {len(found)} schedules could be drawn"
    return found + [DrawnNest("", 0, why)] * (drawing.draws - len(found))


def _lacking(drawing: Drawing, collector: Collector, wanted: Wanted | None) -> list[int]:
    """Return the numbers of the schedules that are to be measured."""
    keys = [(drawing.task.workload, drawing.setting(draw)) for draw in range(drawing.draws)]
    return [
        draw
        for draw, key in enumerate(keys)
        if collector.lacks(*key) and (wanted is None or key in wanted)
    ]


def _asked(
    drawing: Drawing, drawn: Iterable[tuple[int, DrawnNest]], network: str, seen: set[bytes]
) -> Iterator[Sized]:
    """Yield what is asked for; programs that were seen are not measured again."""
    details = {MODEL: network, TASK: drawing.task.to_json()}
    for draw, each in drawn:
        hashed = nest_hash(each.nest)
        reason = each.reason or (AGAIN if hashed in seen else "")
        seen.add(hashed)
        request = reason or (drawing, draw)
        asked = Asked(drawing.task.workload, drawing.setting(draw), request, details, KEPT)
        yield asked, each.operand_bytes


def _built(
    asked: Asked,
    found: Mapping[str, Any],
    builder: WarmWorker,
    libraries: Path,
    collector: Collector,
    config: ProgramsConfig,
) -> Asked:
    """Return what is asked for with its program built, or why it is not; it tells what the idle
    check found, too."""
    details, request = {**asked.details, **found}, asked.request
    if not isinstance(request, str):
        drawing, draw = request
        library = libraries / f"{drawing.task.workload}-{drawing.seed}-{draw}.so"
        try:
            built = builder.call(BuildRequest(drawing, draw, str(library)), config.measure.timeout)
            request = ProgramRequest(
                built, config.memory, config.most_seconds, collector.full_pace,
                config.measure.timing,
            )  # fmt: skip
        except (WorkerDied, WorkerFailed, WorkerTimeout) as error:
            request = reason_of(error, config.measure.timeout)
    return replace(asked, request=request, details=details)


def _known_nests(collector: Collector, measured: Mapping[tuple[str, str], str]) -> Known:
    """Return what was measured whole in this round, and elsewhere."""
    config = collector.config
    nests = {
        (record.workload, record.setting): str(record.details[NEST])
        for record in collector.store.find(config.target, round=config.round)
        if NEST in record.details and is_whole(record, config.timing.most_slowed)
    }
    known: Known = {}
    for (workload, setting), nest in (nests | dict(measured)).items():
        level = str(json.loads(setting)["codegen"])
        known.setdefault((workload, level), set()).add(nest_hash(nest))
    return known
