"""`compile_program`: draw and build one program and time it, in a worker process.

Needs TVM, an optional extra: ``pip install 'go_rl[tvm]'``.
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from typing import Any

import numpy as np

from go_rl.core import ExecutionError
from go_rl.costs.programs.nests import nest_to_json
from go_rl.costs.programs.nests.tvm_lowering import import_meta_schedule, nest_from_tvm
from go_rl.costs.programs.workloads import TensorTask
from go_rl.costs.programs.workloads.drawn_programs import codegen_target, draw_programs
from go_rl.costs.tiles.measure.measure import SAMPLE_SECONDS
from go_rl.costs.tiles.stages import import_tvm
from go_rl.costs.timing.config import TimingConfig
from go_rl.costs.timing.core_speed import CoreSpeed
from go_rl.costs.timing.measuring_run import MeasuringRun, Timed
from go_rl.costs.timing.timing import has_a_core, visit


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
    """See `go_rl.costs.timing.core_speed.CoreSpeed`."""
    timing: TimingConfig


def compile_program(asked: ProgramTask) -> tuple[Timed, dict[str, Any]]:
    """Build one program.

    Returns:
        What times it, a call being a sample of about `SAMPLE_SECONDS`; and ``compile_seconds``,
        ``nest`` (JSON) and ``trace``, how the schedule came about.

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
    sample_of = _sampler(tvm, kernel, candidate.args_info)
    first = sample_of(1)()  # behind a run of TVM's own, which does not count
    sample = sample_of(max(1, ceil(SAMPLE_SECONDS / max(first, 1e-9))))
    pace, own = CoreSpeed(asked.full_pace), has_a_core()
    about = {
        "compile_seconds": spent,
        "nest": nest_to_json(nest_from_tvm(candidate.sch.mod)),
        "trace": str(candidate.sch.trace),
    }
    return lambda timing: visit(sample, timing, pace, own), about


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


def _sampler(tvm: Any, kernel: Any, operands: Any) -> Callable[[int], Callable[[], float]]:
    """Return what makes, of a number of runs, a function that runs the kernel so often and returns
    mean seconds a run."""
    device, rng = tvm.cpu(), np.random.default_rng(0)
    held = [
        tvm.runtime.tensor(rng.random(tuple(map(int, x.shape)), np.float32) + 0.5, device)
        for x in operands
    ]

    def sample_of(number: int) -> Callable[[], float]:
        timed = kernel.time_evaluator("main", device, number=number, repeat=1)
        return lambda: float(timed(*held).results[0])

    return sample_of
