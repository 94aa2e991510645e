"""`build`: draw the schedules of a task and build one of them, in a process of its own; `answer`:
time it, in another.

Needs TVM, an optional extra: ``pip install 'go_rl[tvm]'``.
"""

from __future__ import annotations

import gc
import os
import subprocess
import time
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from go_rl.costs.programs.machine_code.tvm_code import code_numbers
from go_rl.costs.programs.nests import NestError, nest_from_json, nest_to_json
from go_rl.costs.programs.nests.tvm_lowering import import_meta_schedule, nest_from_tvm
from go_rl.costs.programs.workloads.drawn_programs import (
    Drawing,
    codegen_target,
    draw_programs,
)
from go_rl.costs.timing.config import TimingConfig
from go_rl.costs.timing.measuring_run import MeasuringRun, Timed
from go_rl.costs.timing.tvm_calls import import_tvm, timed_calls
from go_rl.runtime.address_space import bound_memory

BUILD_NICE = 15
"""Niceness of the process that builds: it has 3 % of a core on which another one measures."""
MEMORY_BYTES, MEMORY_REPEATS = 1 << 26, 5
"""Bytes that the idle check reads from memory, more than a cache holds, and how often."""


@dataclass(frozen=True)
class DrawnNest:
    """A schedule that was drawn."""

    nest: str
    """Loop nest (JSON); "" where go_rl knows none."""
    operand_bytes: int
    """Bytes of the operands and the result."""
    reason: str = ""
    """Reason why there is none."""


@dataclass(frozen=True)
class IdleCheck:
    """Request for the seconds that reading `MEMORY_BYTES` takes just now."""


@dataclass(frozen=True)
class BuildRequest:
    """Request for a program as a library that another process loads."""

    drawing: Drawing
    draw: int
    """Number of the random schedule, from 0."""
    library: str
    """Path of the file to be written."""


@dataclass(frozen=True)
class BuiltProgram:
    """A program that was built."""

    library: str
    """Path of its file."""
    shapes: tuple[tuple[int, ...], ...]
    """Shapes of the operands and of the result."""
    nest: str
    """Loop nest (JSON)."""
    trace: str
    """Trace of TVM that makes the schedule."""
    machine: tuple[float, ...]
    """Numbers of its machine code (`MACHINE_NAMES`)."""
    compile_seconds: float


@dataclass(frozen=True)
class ProgramRequest:
    """One program to be measured."""

    built: BuiltProgram
    memory: float
    """Bytes that this process may address."""
    most_seconds: float
    """Seconds that one run may take."""
    full_pace: float
    """Full pace of the core; see `go_rl.costs.timing.core_speed.CoreSpeed`."""
    timing: TimingConfig


def build(request: Any) -> Any:
    """Do as asked; what the process that builds calls. It yields to any other on its core.

    Returns:
        For `Drawing`: a `DrawnNest` for each schedule. For `BuildRequest`: `BuiltProgram`.
    """
    _imported()
    os.setpriority(os.PRIO_PROCESS, 0, BUILD_NICE)
    return drawn(request)[1] if isinstance(request, Drawing) else _built(request)


def _built(asked: BuildRequest) -> BuiltProgram:
    """Build one program."""
    candidates, nests = drawn(asked.drawing)
    candidate, tvm = candidates[asked.draw], import_tvm()
    start = time.perf_counter()
    target = codegen_target(asked.drawing.codegen)
    kernel = tvm.compile(candidate.sch.mod, target=target)
    kernel.export_library(asked.library, fcompile=_linked)
    spent = time.perf_counter() - start
    nest, trace = nests[asked.draw].nest, str(candidate.sch.trace)
    machine = code_numbers(kernel, nest_from_json(nest))
    return BuiltProgram(asked.library, tuple(_shapes(candidate)), nest, trace, machine, spent)


def _linked(library: str, objects: list[str], **_: Any) -> None:
    """Link object files; what they call is found where TVM is loaded."""
    subprocess.run(["ld", "-shared", "-o", library, *objects], check=True)


def load_program(asked: ProgramRequest) -> tuple[Timed, dict[str, Any]]:
    """Load one program.

    Returns:
        What times it (`timed_calls`), and ``compile_seconds``, ``nest`` (JSON), ``trace``, how the
        schedule came about, and ``machine``, numbers of the code.

    Raises:
        ExecutionError: the program is too slow.
        MissingDependencyError: TVM is not installed.
    """
    bound_memory(int(asked.memory))
    built = asked.built
    kernel = import_tvm().runtime.load_module(built.library)
    rng = np.random.default_rng(0)
    operands = [rng.random(shape, np.float32) + 0.5 for shape in built.shapes]
    timed = timed_calls(kernel, operands, asked.full_pace, asked.most_seconds)
    about = {
        "compile_seconds": built.compile_seconds, "nest": built.nest, "trace": built.trace,
        "machine": built.machine,
    }  # fmt: skip
    return timed, about


def memory_seconds() -> float:
    """Return the median seconds of reading `MEMORY_BYTES`: what a neighbour in the memory and the
    shared cache slows, and the fixed work of `go_rl.costs.timing.core_speed` does not show."""
    array, seconds = np.ones(MEMORY_BYTES // 8), []
    for _ in range(MEMORY_REPEATS):
        began = time.perf_counter()
        array.sum()
        seconds.append(time.perf_counter() - began)
    return float(np.median(seconds))


_run = MeasuringRun(load_program)


def answer(request: Any) -> Any:
    """Do as asked; what the process that measures calls.

    Returns:
        For `IdleCheck`: `memory_seconds`. For any other: `MeasuringRun.answer`. The first request,
        whatever it is, imports TVM.
    """
    _imported()
    return memory_seconds() if isinstance(request, IdleCheck) else _run.answer(request)


@lru_cache(maxsize=1)
def _imported() -> None:
    """Import TVM, once; what was imported is no garbage, and looking for it is a fifth of the time
    in which a small program is compiled."""
    import_meta_schedule()
    gc.freeze()


@lru_cache(maxsize=16)
def drawn(drawing: Drawing) -> tuple[list[Any], list[DrawnNest]]:
    """Return the candidates of a drawing, and their loop nests."""
    candidates = draw_programs(drawing)
    return candidates, [_nest(each) for each in candidates]


def _nest(candidate: Any) -> DrawnNest:
    size = 4 * sum(map(prod, _shapes(candidate)))
    try:
        return DrawnNest(nest_to_json(nest_from_tvm(candidate.sch.mod)), size)
    except NestError as error:
        return DrawnNest("", size, f"NestError: {error}")


def _shapes(candidate: Any) -> list[tuple[int, ...]]:
    return [tuple(map(int, each.shape)) for each in candidate.args_info]
