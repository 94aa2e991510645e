"""Measuring random schedules of the tasks of networks, into the records of a folder; what is there
is not measured again.

A record's workload is the hash of the task, its setting ``{"codegen", "draw", "draws", "seed"}``;
its details hold the task, the network that it comes from, the loop nest, from which features are
computed without TVM, and the schedule's trace.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from go_rl.core.errors import nearest
from go_rl.costs.programs.measure.measure import ProgramTask
from go_rl.costs.programs.workloads import TaskError, TensorTask, network_tasks
from go_rl.costs.programs.workloads.drawn_programs import CODEGEN
from go_rl.costs.timing.collector import MODEL, Asked, Report, collecting
from go_rl.costs.timing.config import ProgramsConfig
from go_rl.costs.timing.measuring_run import Release
from go_rl.costs.timing.rounds import VISIT_SECONDS
from go_rl.costs.timing.tvm_calls import import_tvm
from go_rl.costs.timing.worker import START_SECONDS
from go_rl.graphs.zoo.index import zoo_graph
from go_rl.runtime.records import canonical_json

WORKER = "go_rl.costs.programs.measure.measure:answer"
TASK, NEST, TRACE = "task", "nest", "trace"
"""Fields in the details of a program's record; those without a time have the task only."""


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
    with collecting(folder, measure, WORKER) as collector:
        for task in ordered:
            for level in config.codegen:
                asked = [
                    each
                    for each in _programs(task, level, config, collector.full_pace, tasks[task])
                    if collector.lacks(each.workload, each.setting)
                ]
                if asked:
                    # A fresh process imports TVM.
                    collector.worker.call(Release(), START_SECONDS)
                collector.measure(asked)
            report(f"{task.title}: {collector.made} measured so far")
        return collector.made


def check_codegen(config: ProgramsConfig) -> None:
    """Refuse levels of x86-64 that are unknown.

    Raises:
        TaskError: one is.
    """
    for level in config.codegen:
        if level not in CODEGEN:
            raise TaskError(f"unknown level of x86-64 {level!r}{nearest(level, CODEGEN)}")


def _programs(
    task: TensorTask, level: str, config: ProgramsConfig, full_pace: float, network: str
) -> list[Asked]:
    """Programs asked for one task and target; a record keeps the program itself, and what visiting
    it took."""
    seed, text, draws = config.measure.sampling.seed, task.to_json(), config.schedules
    return [
        Asked(
            task.workload,
            canonical_json({"codegen": level, "draw": number, "draws": draws, "seed": seed}),
            ProgramTask(
                task=text, codegen=level, draw=number, draws=draws, seed=seed,
                memory=config.memory, full_pace=full_pace, timing=config.measure.timing,
            ),
            {MODEL: network, TASK: text},
            (NEST, TRACE, VISIT_SECONDS),
        )
        for number in range(draws)
    ]  # fmt: skip
