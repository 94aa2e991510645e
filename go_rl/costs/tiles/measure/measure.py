"""`compile_tiles`: build one configuration and time it in this process.

Needs TVM, an optional extra: ``pip install 'go_rl[tvm]'``. Isolation in a worker
process is the caller's.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from go_rl.costs.tiles.program import TileProgram
from go_rl.costs.tiles.schedule import build
from go_rl.costs.tiles.tiled_program import TiledProgram, Tiles
from go_rl.costs.timing.config import TimingConfig
from go_rl.costs.timing.measuring_run import MeasuringRun, Timed
from go_rl.costs.timing.tvm_calls import timed_calls


@dataclass(frozen=True)
class TileRequest:
    """One configuration to be measured."""

    program: str
    """JSON (``TileProgram.to_json``)."""
    tiles: str
    """JSON (``Tiles.setting``)."""
    full_pace: float
    """Full pace of the core; see `go_rl.costs.timing.core_speed.CoreSpeed`."""
    timing: TimingConfig


def compile_tiles(request: TileRequest) -> tuple[Timed, dict[str, Any]]:
    """Build one configuration.

    Returns:
        What times it (`timed_calls`), and ``compile_seconds``:
        scheduling and compiling.

    Raises:
        TileError: the request is malformed, or the tiles do not fit the program.
        MissingDependencyError: TVM is not installed.
        ExecutionError: this processor lacks AVX2 or FMA.
    """
    program = TileProgram.from_json(request.program)
    tiled = TiledProgram(program, Tiles.from_json(request.tiles))
    start = time.perf_counter()
    kernel = build(tiled)
    spent = time.perf_counter() - start
    result = np.zeros(program.output_shape, np.float32)
    operands = [*example_arguments(program).values(), result]
    return timed_calls(kernel, operands, request.full_pace), {"compile_seconds": spent}


answer = MeasuringRun(compile_tiles).answer
"""Entry point of a worker process."""


def example_arguments(program: TileProgram, seed: int = 0) -> dict[str, np.ndarray]:
    """Return arrays of the arguments' shapes, even in [-1, 1)."""
    rng = np.random.default_rng(seed)
    return {
        name: 2 * rng.random(shape, np.float32) - 1 for name, shape in program.input_shapes.items()
    }
