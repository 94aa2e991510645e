"""Measuring random schedules of the tasks of networks, into the records of a folder; what is there
is not measured again.

A record's workload is the hash of the task, its setting ``{"codegen", "draw", "draws", "seed"}``;
its details hold the task, the network that it comes from, the loop nest, from which features are
computed without TVM, and the schedule's trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from go_rl.core.errors import nearest
from go_rl.costs.kernels.measure.collect import MODEL, RECORDS, Report, record_of
from go_rl.costs.kernels.measure.rounds import VISIT_SECONDS, Outcome, measure_together
from go_rl.costs.programs.measure.measure import ProgramTask
from go_rl.costs.programs.workloads import TaskError, TensorTask, network_tasks
from go_rl.costs.programs.workloads.drawn_programs import CODEGEN
from go_rl.costs.tiles.stages import import_tvm
from go_rl.costs.timing.config import ProgramsConfig
from go_rl.costs.timing.measuring_run import Release
from go_rl.costs.timing.worker import START_SECONDS, folder_pace, worker_core, worker_environment
from go_rl.graphs.zoo.index import zoo_graph
from go_rl.runtime.records import RecordStore, canonical_json
from go_rl.runtime.warm_worker import WarmWorker

WORKER = "go_rl.costs.programs.measure.measure:answer"
TASK, NEST, TRACE = "task", "nest", "trace"
"""What a record of a program has in its details; those without a time have the task only."""


def listed_tasks(config: ProgramsConfig) -> dict[TensorTask, str]:
    """Return the distinct tasks of the networks, each with the first network that has it.

    Raises:
        ZooError: there is no such network.
    """
    found: dict[TensorTask, str] = {}
    for name in config.networks:
        for task in network_tasks(zoo_graph(name)):
            if task.flops <= config.measure.sampling.most_flops:
                found.setdefault(task, name)
    return found


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
        report: told a sentence after each task.
        tasks: with the networks that have them; None: `listed_tasks`.

    Raises:
        MissingDependencyError: TVM is not installed.
        RecordError: the folder's records cannot be read or written.
        WorkerError: the core cannot be had.
        ZooError: there is no such network.
    """
    import_tvm()
    check_codegen(config)
    measure = config.measure
    tasks = listed_tasks(config) if tasks is None else tasks
    ordered = sorted(tasks, key=lambda task: task.workload)
    made = 0
    with (
        RecordStore(folder / RECORDS) as store,
        WarmWorker(WORKER, worker_core(measure), worker_environment(measure)) as worker,
    ):
        done, full_pace = store.keys(measure.target), folder_pace(folder, measure)
        for task in ordered:
            for level in config.codegen:
                asked = [
                    each
                    for each in _programs(task, level, config, full_pace)
                    if (task.workload, _setting(each), measure.round) not in done
                ]
                if asked:
                    worker.call(Release(), START_SECONDS)  # a fresh process imports TVM
                outcomes = measure_together(worker, asked, measure)
                about = {MODEL: tasks[task], TASK: task.to_json()}
                store.add(
                    record_of(
                        (task.workload, _setting(each)), measure, outcome, about | _made(outcome)
                    )
                    for each, outcome in zip(asked, outcomes, strict=True)
                )
                made += len(asked)
            report(f"{task.title}: {made} measured so far")
    return made


def check_codegen(config: ProgramsConfig) -> None:
    """Refuse levels of x86-64 that are unknown.

    Raises:
        TaskError: one is.
    """
    for level in config.codegen:
        if level not in CODEGEN:
            raise TaskError(f"unknown level of x86-64 {level!r}{nearest(level, CODEGEN)}")


def _programs(
    task: TensorTask, level: str, config: ProgramsConfig, full_pace: float
) -> list[ProgramTask]:
    return [
        ProgramTask(
            task=task.to_json(), codegen=level, draw=number, draws=config.schedules,
            seed=config.measure.sampling.seed, memory=config.memory, full_pace=full_pace,
            timing=config.measure.timing,
        )
        for number in range(config.schedules)
    ]  # fmt: skip


def _made(outcome: Outcome) -> dict[str, Any]:
    """Return what a record keeps of the program itself, and what visiting it took."""
    if isinstance(outcome, str):
        return {}
    took = {VISIT_SECONDS: round(outcome[VISIT_SECONDS], 4)}
    return {name: outcome[name] for name in (NEST, TRACE)} | took


def _setting(asked: ProgramTask) -> str:
    return canonical_json(
        {"codegen": asked.codegen, "draw": asked.draw, "draws": asked.draws, "seed": asked.seed}
    )
