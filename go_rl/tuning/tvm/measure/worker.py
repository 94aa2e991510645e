"""Builds and times operators and whole networks in a worker process.

A call that takes longer than `SLOW_SECONDS` is timed once: candidates that slow are far from the
best, and a few of them would take most of the time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.costs.programs.nests.tvm_lowering import import_meta_schedule
from go_rl.costs.timing.config import TimingConfig
from go_rl.costs.timing.core_speed import CoreSpeed
from go_rl.costs.timing.measuring_run import MeasuringRun, Timed
from go_rl.costs.timing.timing import TimingSamples, visit
from go_rl.costs.timing.tvm_calls import SAMPLE_SECONDS, import_tvm
from go_rl.runtime.address_space import bound_memory
from go_rl.tuning.tvm.codegen import CodeTarget
from go_rl.tuning.tvm.models.model import ModelInput, Rival
from go_rl.tuning.tvm.space import scheduled, with_packed_weights

SLOW_SECONDS = 0.1
"""Seconds of a call above which it is not repeated."""
FLUSHED_RUNS = 4
"""Runs of a sample, at most, between which caches are flushed."""
PROBES = 4
"""Further calls that say how many make a sample: the first may have been disturbed."""


@dataclass(frozen=True)
class Measuring:
    """Settings common to all measurements of a process."""

    memory: float
    """Bytes that this process may address."""
    full_pace: float
    """Reference speed of the core (`go_rl.costs.timing.core_speed.CoreSpeed`)."""
    flushed: int = 0
    """Bytes that are written between two runs of an operator: in the network, the weights of all
    others are read between them, and its own are not in the caches when it comes."""


@dataclass(frozen=True)
class CandidateRequest:
    """Candidate of an operator to be measured."""

    operator: str
    """JSON of the module (`NetworkFunction.text`)."""
    document: Any
    """Document of the candidate; None: the loops as they are."""
    code: CodeTarget
    """Target of code generation."""
    measuring: Measuring
    timing: TimingConfig


@dataclass(frozen=True)
class NetworkRequest:
    """Compiled network to be measured."""

    path: str
    """Path of the shared library."""
    inputs: tuple[ModelInput, ...]
    measuring: Measuring
    timing: TimingConfig


@dataclass(frozen=True)
class RivalRequest:
    """Another implementation of a network to be measured."""

    rival: Rival
    inputs: tuple[ModelInput, ...]
    measuring: Measuring
    timing: TimingConfig
    cores: int = 1


def compile_program(
    asked: CandidateRequest | NetworkRequest | RivalRequest,
) -> tuple[Timed, dict[str, Any]]:
    """Build what is asked.

    Returns:
        What times it, a call being a sample of about `SAMPLE_SECONDS` or longer; and
        ``compile_seconds``.

    Raises:
        MissingDependencyError: TVM is not installed.
    """
    bound_memory(int(asked.measuring.memory))
    start = time.perf_counter()
    sample_of = _made(asked)
    about = {"compile_seconds": time.perf_counter() - start}
    pace = CoreSpeed(asked.measuring.full_pace)
    run = sample_of(1)
    first = run()  # behind a run of TVM's own, which does not count
    if first < SLOW_SECONDS:
        first = min(first, *(run() for _ in range(PROBES)))
    if isinstance(asked, CandidateRequest) and first > SLOW_SECONDS:
        once = TimingSamples(np.array([first]), np.array([pace()]), np.zeros(1))
        return lambda timing: once, about
    sample = sample_of(max(1, ceil(SAMPLE_SECONDS / max(first, 1e-9))))
    return lambda timing: visit(sample, timing, pace), about


_run = MeasuringRun(compile_program)


def answer(request: Any) -> Any:
    """Do as asked (`MeasuringRun.answer`); what a worker process calls. The first request, whatever
    it is, imports TVM."""
    import_meta_schedule()
    return _run.answer(request)


SampleOf = Callable[[int], Callable[[], float]]
"""Factory that makes, of a number of runs, a function that runs so often and returns mean
seconds a run."""


def _made(asked: CandidateRequest | NetworkRequest | RivalRequest) -> SampleOf:
    match asked:
        case CandidateRequest():
            return _candidate(asked)
        case NetworkRequest():
            return _network(asked)
    return _rival(asked)


def _candidate(asked: CandidateRequest) -> SampleOf:
    tvm, module = import_tvm(), _operator(asked.operator)
    made = with_packed_weights(scheduled(module, asked.document).mod)
    kernel = tvm.compile(made, target=asked.code.tvm()).jit()
    operands = [_operand(tvm, buffer) for buffer in made["main"].params]
    if asked.measuring.flushed:
        return _flushed_sampler(kernel["main"], operands, asked.measuring.flushed)
    return _sampler(tvm, kernel, operands)


def _network(asked: NetworkRequest) -> SampleOf:
    tvm, rng = import_tvm(), np.random.default_rng(0)
    machine = tvm.relax.VirtualMachine(tvm.runtime.load_module(asked.path), tvm.cpu())
    operands = [tvm.runtime.tensor(each.random(rng), tvm.cpu()) for each in asked.inputs]
    machine.set_input("main", *operands)
    return _sampler(tvm, machine, None)


def _rival(asked: RivalRequest) -> SampleOf:
    """Time runs as `_sampler` does; what calling one costs is counted."""
    rng = np.random.default_rng(0)
    operands = [each.random(rng) for each in asked.inputs]
    run = _onnx_runtime(asked, operands) if asked.rival.kind == "onnx" else _xla(asked, operands)

    def sample_of(number: int) -> Callable[[], float]:
        def sample() -> float:
            busy, began = time.process_time(), time.perf_counter()
            for _ in range(number):
                run()
            seconds = (time.perf_counter() - began) / number
            return min(seconds, (time.process_time() - busy) / number)

        return sample

    return sample_of


def _onnx_runtime(asked: RivalRequest, operands: list[np.ndarray]) -> Callable[[], Any]:
    import onnxruntime  # pyright: ignore[reportMissingImports]

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = asked.cores, 1
    options.log_severity_level = 3  # errors
    session = onnxruntime.InferenceSession(
        asked.rival.path, options, providers=["CPUExecutionProvider"]
    )
    feed = {given.name: array for given, array in zip(asked.inputs, operands, strict=True)}
    return lambda: session.run(None, feed)


def _xla(asked: RivalRequest, operands: list[np.ndarray]) -> Callable[[], Any]:
    from go_rl.tuning.tvm.models.hlo_network import compiled_by_xla

    with np.load(asked.rival.weights) as file:
        known = {int(name): file[name] for name in file}
    more = iter(operands)
    count = len(known) + len(operands)
    given = [known[i] if i in known else next(more) for i in range(count)]
    return compiled_by_xla(Path(asked.rival.path).read_bytes(), given)


@lru_cache(maxsize=64)
def _operator(text: str) -> Any:
    return import_tvm().ir.load_json(text)


def _operand(tvm: Any, buffer: Any) -> Any:
    """A random array; zeros where it holds indices or truth values."""
    shape, dtype = tuple(int(size) for size in buffer.shape), np.dtype(str(buffer.dtype))
    if np.issubdtype(dtype, np.floating):
        made = np.random.default_rng(0).random(shape, np.float32).astype(dtype) + dtype.type(0.5)
    else:
        made = np.zeros(shape, dtype)
    return tvm.runtime.tensor(made, tvm.cpu())


def _sampler(tvm: Any, runnable: Any, operands: list[Any] | None) -> SampleOf:
    """Time runs by TVM's clock, which starts behind a run that does not count. No run takes more
    than the process had the core for: where that is less, others had it in the midst of the runs.
    """

    def sample_of(number: int) -> Callable[[], float]:
        what = "main" if operands is not None else "invoke_stateful"
        timed = runnable.time_evaluator(what, tvm.cpu(), number=number, repeat=1)
        given = operands if operands is not None else ["main"]

        def sample() -> float:
            busy = time.process_time()
            seconds = float(timed(*given).results[0])
            return min(seconds, (time.process_time() - busy) / number)

        return sample

    return sample_of


def _flushed_sampler(run: Callable[..., Any], operands: list[Any], flushed: int) -> SampleOf:
    """Time single runs, some bytes being written before each; what calling one costs is counted, as
    it is in the network."""
    scratch = np.zeros(flushed, np.uint8)

    def once() -> float:
        scratch.fill(1)
        busy, began = time.process_time(), time.perf_counter()
        run(*operands)
        seconds = time.perf_counter() - began
        return min(seconds, time.process_time() - busy)

    def sample_of(number: int) -> Callable[[], float]:
        runs = min(number, FLUSHED_RUNS)
        return lambda: sum(once() for _ in range(runs)) / runs

    return sample_of
