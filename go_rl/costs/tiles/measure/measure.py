"""`compile_tiles`: build one configuration and time it in this process.

Needs TVM, an optional extra: ``pip install 'go_rl[tvm]'``. Isolation in a worker
process is the caller's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np

from go_rl.costs.tiles.program import TileProgram
from go_rl.costs.tiles.schedule import build
from go_rl.costs.tiles.sizes import Tiles
from go_rl.costs.tiles.stages import import_tvm
from go_rl.costs.tiles.tiled_program import TiledProgram
from go_rl.costs.timing.config import TimingConfig
from go_rl.costs.timing.core_speed import CoreSpeed
from go_rl.costs.timing.measuring_run import MeasuringRun, Timed
from go_rl.costs.timing.timing import has_a_core, visit

SAMPLE_SECONDS = 2e-4
"""A sample is the mean of so many runs that it takes about this long."""


@dataclass(frozen=True)
class TileTask:
    """One configuration to be measured."""

    program: str
    """JSON (``TileProgram.to_json``)."""
    tiles: str
    """JSON (``Tiles.setting``)."""
    full_pace: float
    """See `go_rl.costs.timing.core_speed.CoreSpeed`."""
    timing: TimingConfig


def compile_tiles(task: TileTask) -> tuple[Timed, dict[str, Any]]:
    """Build one configuration.

    Returns:
        What times it, a call being a sample of about `SAMPLE_SECONDS`; and ``compile_seconds``:
        scheduling and compiling.

    Raises:
        TileError: the task is malformed, or the tiles do not fit the program.
        MissingDependencyError: TVM is not installed.
        ExecutionError: this processor lacks AVX2 or FMA.
    """
    program = TileProgram.from_json(task.program)
    tiled = TiledProgram(program, Tiles.from_json(task.tiles))
    start = time.perf_counter()
    kernel = build(tiled)
    spent = time.perf_counter() - start
    sample_of = _sampler(kernel, program)
    first = sample_of(1)()  # behind a run of TVM's own, which does not count
    sample = sample_of(max(1, ceil(SAMPLE_SECONDS / max(first, 1e-9))))
    pace, own = CoreSpeed(task.full_pace), has_a_core()
    return lambda timing: visit(sample, timing, pace, own), {"compile_seconds": spent}


answer = MeasuringRun(compile_tiles).answer
"""What a worker process calls."""


def example_arguments(program: TileProgram, seed: int = 0) -> dict[str, np.ndarray]:
    """Return arrays of the arguments' shapes, even in [-1, 1)."""
    rng = np.random.default_rng(seed)
    return {
        name: 2 * rng.random(shape, np.float32) - 1 for name, shape in program.input_shapes.items()
    }


def _sampler(kernel: Any, program: TileProgram) -> Callable[[int], Callable[[], float]]:
    """Return what makes, of a number of runs, a function that runs the kernel so often and returns
    mean seconds a run."""
    tvm = import_tvm()
    device = tvm.cpu()
    result = np.zeros(program.output_shape, np.float32)
    arrays = (*example_arguments(program).values(), result)
    held = [tvm.runtime.tensor(array, device) for array in arrays]

    def sample_of(number: int) -> Callable[[], float]:
        timed = kernel.time_evaluator("main", device, number=number, repeat=1)
        return lambda: float(timed(*held).results[0])

    return sample_of
