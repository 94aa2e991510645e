"""`measure_tiles`: build one configuration and time it in this process.

Needs TVM, an optional extra: ``pip install 'go_rl[tiles]'``. One picklable payload in, one plain
dictionary out, so that a worker process can be asked for it; isolation is the caller's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict
from math import ceil
from typing import Any

import numpy as np
from jaxtyping import Float32

from go_rl.cost.collect_config import TimingConfig
from go_rl.cost.kernel_timing import timing_of, visit
from go_rl.cost.pace import Pace
from go_rl.cost.tiles.tile_loops import TileError
from go_rl.cost.tiles.tile_program import TileProgram
from go_rl.cost.tiles.tile_schedule import build
from go_rl.cost.tiles.tile_sizes import Tiles
from go_rl.cost.tiles.tile_stages import import_tvm
from go_rl.cost.tiles.tiled_program import TiledProgram

SAMPLE_SECONDS = 1e-3
"""A sample is the mean of so many runs that it takes about this long."""
PAYLOAD = ("program", "tiles", "timing", "full_pace")


def measure_tiles(payload: dict[str, Any]) -> dict[str, Any]:
    """Build and time one configuration.

    Args:
        payload: ``program`` and ``tiles``: their JSON (``TileProgram.to_json``,
            ``Tiles.setting``); ``timing``: the fields of `go_rl.cost.collect_config.TimingConfig`;
            ``full_pace``: see `go_rl.cost.pace.Pace`.

    Returns:
        ``seconds``, ``spread``, ``calls`` and ``slowed`` as in `go_rl.cost.kernel_timing.Timing`, a
        call being a sample of about `SAMPLE_SECONDS`, and ``compile_seconds``: scheduling and
        compiling.

    Raises:
        TileError: the payload is malformed, or the tiles do not fit the program.
        MissingDependencyError: TVM is not installed.
        ExecutionError: this processor lacks AVX2 or FMA.
    """
    missing = sorted(set(PAYLOAD) - set(payload))
    if missing:
        raise TileError(f"the payload lacks {', '.join(missing)}")
    program = TileProgram.from_json(payload["program"])
    tiled = TiledProgram(program, Tiles.from_json(payload["tiles"]))
    start = time.perf_counter()
    kernel = build(tiled)
    spent = time.perf_counter() - start
    run = _runner(kernel, program)
    first = run(1)  # behind a run of TVM's own, which does not count
    number = max(1, ceil(SAMPLE_SECONDS / max(first, 1e-9)))
    pace = Pace(payload["full_pace"])
    timing = timing_of(visit(lambda: run(number), TimingConfig(**payload["timing"]), pace))
    return {**asdict(timing), "compile_seconds": spent}


def run_once(
    tiled: TiledProgram, arguments: dict[str, Float32[np.ndarray, "..."]]
) -> Float32[np.ndarray, "..."]:
    """Return what the scheduled program computes from its arguments by name."""
    tvm = import_tvm()
    names = tiled.program.input_shapes
    result = np.full(tiled.program.output_shape, np.nan, np.float32)
    held = [tvm.runtime.tensor(array) for array in (*(arguments[n] for n in names), result)]
    build(tiled)["main"](*held)
    return held[-1].numpy()


def example_arguments(program: TileProgram, seed: int = 0) -> dict[str, np.ndarray]:
    """Return arrays of the arguments' shapes, even in [-1, 1)."""
    rng = np.random.default_rng(seed)
    return {
        name: 2 * rng.random(shape, np.float32) - 1 for name, shape in program.input_shapes.items()
    }


def _runner(kernel: Any, program: TileProgram) -> Callable[[int], float]:
    """Return a function that runs the kernel some times and returns mean seconds a run."""
    tvm = import_tvm()
    device = tvm.cpu()
    result = np.zeros(program.output_shape, np.float32)
    arrays = (*example_arguments(program).values(), result)
    held = [tvm.runtime.tensor(array, device) for array in arrays]

    def run(number: int) -> float:
        timed = kernel.time_evaluator("main", device, number=number, repeat=1)
        return float(timed(*held).results[0])

    return run
