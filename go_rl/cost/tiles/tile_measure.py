"""`measure_tiles`: build one configuration and time it in this process.

Needs TVM, an optional extra: ``pip install 'go_rl[tiles]'``. One picklable payload in, one plain
dictionary out, so that a worker process can be asked for it; isolation is the caller's.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, comb, isfinite
from typing import Any

import numpy as np
from jaxtyping import Float32

from go_rl.cost.tiles.tile_loops import TileError
from go_rl.cost.tiles.tile_program import TileProgram
from go_rl.cost.tiles.tile_schedule import build
from go_rl.cost.tiles.tile_sizes import Tiles
from go_rl.cost.tiles.tile_stages import import_tvm
from go_rl.cost.tiles.tiled_program import TiledProgram

SLOW_SECONDS = 0.3
"""A run this long is repeated once only: nothing short can disturb it much."""
PAYLOAD = ("program", "tiles", "least_seconds", "repeats")


@dataclass(frozen=True)
class Timing:
    """What repeats of one kernel say."""

    seconds: float
    """Median."""
    spread: float
    """Half the width of the 95 % interval of the median, relative to it; see `time_runs`."""
    repeats: int
    """Samples."""


def measure_tiles(payload: dict[str, Any]) -> dict[str, Any]:
    """Build and time one configuration.

    Args:
        payload: ``program`` and ``tiles``: their JSON (``TileProgram.to_json``,
            ``Tiles.setting``); ``least_seconds``: time to spend in the kernel at least;
            ``repeats``: samples to spread that time over.

    Returns:
        ``seconds``, ``spread`` and ``repeats`` as in `Timing`, and ``build_seconds``: scheduling
        and compiling.

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
    build_seconds = time.perf_counter() - start
    runs = _runner(kernel, program)
    timing = time_runs(runs, float(payload["least_seconds"]), int(payload["repeats"]))
    return {
        "seconds": timing.seconds,
        "spread": timing.spread,
        "repeats": timing.repeats,
        "build_seconds": build_seconds,
    }


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


def time_runs(run: Callable[[int], float], least_seconds: float, repeats: int) -> Timing:
    """Time a kernel until ``least_seconds`` are spread over ``repeats`` samples.

    Each sample is the mean of equally many runs; a first run warms up and tells how many. If that
    takes `SLOW_SECONDS` it is itself the first of two samples. The interval is that of order
    statistics (David and Nagaraja, "Order statistics", 2003, section 7.1), which assumes nothing
    about the distribution; with fewer than six samples it is their range, which holds the median
    less surely (two samples: 50 %).

    Args:
        run: takes a number of runs and returns their mean seconds.

    Raises:
        TileError: ``repeats`` < 1 or ``least_seconds`` is not a number >= 0.
    """
    if repeats < 1 or not (isfinite(least_seconds) and least_seconds >= 0):
        raise TileError(
            f"repeats must be >= 1 and least_seconds >= 0, not {repeats} and {least_seconds}"
        )
    first = run(1)
    if first >= SLOW_SECONDS:
        return summarise([first, run(1)])
    number = max(1, ceil(least_seconds / repeats / max(min(first, run(1)), 1e-9)))
    return summarise([run(number) for _ in range(repeats)])


def summarise(samples: Sequence[float]) -> Timing:
    """Return the median of samples in seconds and its relative 95 % interval."""
    ordered = np.sort(np.asarray(samples, np.float64))
    low = interval_rank(len(ordered))
    median = float(np.median(ordered))
    return Timing(median, float(ordered[-1 - low] - ordered[low]) / 2 / median, len(ordered))


def interval_rank(count: int) -> int:
    """Return the largest r such that the samples of rank r and count - 1 - r, from 0, hold the
    median with 95 % at least; 0 where no pair does."""
    rank, outside = 0, 2 * 0.5**count
    while rank + 1 < count - 2 - rank:
        outside += 2 * comb(count, rank + 1) * 0.5**count
        if outside > 0.05:
            break
        rank += 1
    return rank
