"""Compiles and times kernels; runs in a worker process (`go_rl.runtime.warm_worker`).

A kernel arrives as a serialised `jax.export` program, for closures do not travel. Its operands are
random, and lie in the caches after the first call as they would behind their producer, if they fit.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from go_rl.costs.timing.config import TimingConfig
from go_rl.costs.timing.core_speed import CoreSpeed
from go_rl.costs.timing.measuring_run import MeasuringRun, Timed
from go_rl.costs.timing.timing import clocked, has_a_core, visit

ArrayType = tuple[tuple[int, ...], str]
"""Shape and type of an array."""
XLA_COSTS = ("flops", "transcendentals", "bytes accessed")
"""Entries kept of XLA's cost analysis."""
LARGEST_INDEX = 1000
"""Integers are drawn below this: rows of an embedding, say. JAX clamps what lies outside."""


MEMORY: Mapping[str, str] = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_MAX_": "0",
    "MALLOC_TOP_PAD_": str(64 << 20),
    "MALLOC_TRIM_THRESHOLD_": str(1 << 40),
}
"""Environment for glibc: the process keeps memory that it has freed. Otherwise each call with a
large result gets fresh pages, whose first touch takes longer than the kernel, or not, by what ran
before."""


@dataclass(frozen=True)
class KernelRequest:
    """One kernel to be measured."""

    program: bytes
    """Serialised `jax.export.Exported` of a function of two tuples of arrays."""
    weights: tuple[ArrayType, ...]
    inputs: tuple[ArrayType, ...]
    full_pace: float
    """Full pace of the core; see `go_rl.costs.timing.core_speed.CoreSpeed`."""
    flags: Mapping[str, Any] = field(default_factory=dict)
    """XLA options of this compilation alone."""
    layouts: tuple[tuple[int, ...] | None, ...] = ()
    """Layouts of weights, then inputs: dimensions from the slowest to the fastest in memory; None,
    or left out: as XLA has it."""
    timing: TimingConfig = field(default_factory=TimingConfig)

    @property
    def operand_bytes(self) -> float:
        """Bytes of weights and inputs."""
        return float(sum(_bytes(each) for each in (*self.weights, *self.inputs)))


def compile_kernel(request: KernelRequest) -> tuple[Timed, dict[str, Any]]:
    """Return the compiled kernel, ``compile_seconds``, and what XLA's own cost analysis says of the
    compiled program (``xla``)."""
    import jax

    began = time.perf_counter()
    formats = _formats((*request.weights, *request.inputs), request.layouts)
    split = len(request.weights)
    jitted = jax.jit(
        jax.export.deserialize(bytearray(request.program)).call,
        in_shardings=(tuple(formats[:split]), tuple(formats[split:])),
        compiler_options=dict(request.flags),
    )
    arrays = [jax.device_put(_random(o), f) for o, f in zip(
        (*request.weights, *request.inputs), formats, strict=True)]  # fmt: skip
    operands = tuple(arrays[:split]), tuple(arrays[split:])
    compiled = jitted.lower(*operands).compile()
    spent = time.perf_counter() - began
    sample = clocked(lambda: jax.block_until_ready(compiled(*operands)))
    pace = CoreSpeed(request.full_pace)
    said: Mapping[str, float] = compiled.cost_analysis() or {}
    known = {name: float(said[name]) for name in XLA_COSTS if name in said}
    about = {"compile_seconds": spent, "xla": known}
    own = has_a_core() and jax.default_backend() == "cpu"
    return lambda timing: visit(sample, timing, pace, own), about


answer = MeasuringRun(compile_kernel).answer
"""Entry point of a worker process."""


def _formats(operands: Sequence[ArrayType], layouts: Sequence[tuple[int, ...] | None]) -> list[Any]:
    import jax
    from jax.experimental.layout import Format, Layout
    from jax.sharding import SingleDeviceSharding

    sharding = SingleDeviceSharding(jax.devices()[0])
    given = [*layouts, *[None] * (len(operands) - len(layouts))]
    return [sharding if order is None else Format(Layout(order), sharding) for order in given]


def _bytes(operand: ArrayType) -> int:
    return prod(operand[0]) * np.dtype(operand[1]).itemsize


def _random(operand: ArrayType) -> Any:
    shape, dtype = operand[0], np.dtype(operand[1])
    rng = np.random.default_rng(0)
    if dtype == np.bool_:
        return rng.random(shape) < 0.5
    if np.issubdtype(dtype, np.integer):
        return rng.integers(0, min(LARGEST_INDEX, np.iinfo(dtype).max), shape).astype(dtype)
    if np.issubdtype(dtype, np.complexfloating):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    return rng.standard_normal(shape, np.float32).astype(dtype)
