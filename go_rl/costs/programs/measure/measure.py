"""`compile_program`: draw and build one program and time it, in a worker process.

Needs TVM, an optional extra: ``pip install 'go_rl[tvm]'``.
"""

from __future__ import annotations

import resource
import time
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from go_rl.core import ExecutionError
from go_rl.costs.programs.nests import nest_to_json
from go_rl.costs.programs.nests.tvm_lowering import import_meta_schedule, nest_from_tvm
from go_rl.costs.programs.workloads import TensorTask
from go_rl.costs.programs.workloads.drawn_programs import codegen_target, draw_programs
from go_rl.costs.timing.config import TimingConfig
from go_rl.costs.timing.measuring_run import MeasuringRun, Timed
from go_rl.costs.timing.tvm_calls import import_tvm, timed_calls


@dataclass(frozen=True)
class ProgramTask:
    """One program to be measured."""

    task: str
    """JSON (``TensorTask.to_json``)."""
    codegen: str
    """Level of x86-64."""
    draw: int
    """Number of the random schedule, from 0."""
    draws: int
    """Random schedules drawn together: what the numbers count."""
    seed: int
    memory: float
    """Bytes that this process may address."""
    full_pace: float
    """Full pace of the core; see `go_rl.costs.timing.core_speed.CoreSpeed`."""
    timing: TimingConfig


def compile_program(asked: ProgramTask) -> tuple[Timed, dict[str, Any]]:
    """Build one program.

    Returns:
        What times it (`timed_calls`), and ``compile_seconds``, ``nest`` (JSON) and ``trace``, how
        the schedule came about.

    Raises:
        ExecutionError: fewer schedules were drawn.
        MissingDependencyError: TVM is not installed.
        NestError: the program has no loop nest that go_rl knows.
    """
    bound_memory(int(asked.memory))
    drawn = _drawn(asked.task, asked.codegen, asked.draws, asked.seed)
    if asked.draw >= len(drawn):
        raise ExecutionError(f"{len(drawn)} schedules could be drawn; this is number {asked.draw}")
    candidate, tvm = drawn[asked.draw], import_tvm()
    start = time.perf_counter()
    kernel = tvm.compile(candidate.sch.mod, target=codegen_target(asked.codegen)).jit()
    spent = time.perf_counter() - start
    rng = np.random.default_rng(0)
    shapes = [tuple(map(int, each.shape)) for each in candidate.args_info]
    operands = [rng.random(shape, np.float32) + 0.5 for shape in shapes]
    timed = timed_calls(kernel, operands, asked.full_pace)
    about = {
        "compile_seconds": spent,
        "nest": nest_to_json(nest_from_tvm(candidate.sch.mod)),
        "trace": str(candidate.sch.trace),
    }
    return timed, about


_run = MeasuringRun(compile_program)


def answer(request: Any) -> Any:
    """Do as asked (`MeasuringRun.answer`); what a worker process calls. The first request, whatever
    it is, imports TVM."""
    import_meta_schedule()
    return _run.answer(request)


def bound_memory(limit: int) -> None:
    """Let this process address so many bytes."""
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    bound = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (bound, hard))


@lru_cache(maxsize=4)
def _drawn(task: str, codegen: str, count: int, seed: int) -> list[Any]:
    return draw_programs(TensorTask.from_json(task), codegen_target(codegen), count, seed)
