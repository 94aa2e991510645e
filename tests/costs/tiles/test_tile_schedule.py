"""Scheduled programs compute what the program says, in the nest that the tiles say."""

import numpy as np
import pytest
from reference.tile_programs import compute

from go_rl.core import ExecutionError
from go_rl.costs.tiles import (
    TiledProgram,
    TileProgram,
    Tiles,
    tile_configurations,
)
from go_rl.costs.tiles import schedule as scheduling
from go_rl.costs.tiles.measure.measure import example_arguments

tvm = pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")

PROGRAMS = [
    TileProgram("matmul", (10, 48, 20), "bias+gelu"),
    TileProgram("matmul", (6, 20, 9)),
    TileProgram("conv2d", (2, 9, 8, 6, 3, 3, 16, 2, 1), "bias+add+relu"),
    TileProgram("conv2d", (1, 6, 7, 5, 2, 3, 12, 1, 0), "scale"),
    TileProgram("reduce_sum", (30, 96, 1), "add+tanh"),
    TileProgram("reduce_max", (12, 40, 0), "sigmoid"),
    TileProgram("reduce_max", (10, 24, 1)),
]


def run_once(tiled: TiledProgram, arguments: dict[str, np.ndarray]) -> np.ndarray:
    names = tiled.program.input_shapes
    result = np.full(tiled.program.output_shape, np.nan, np.float32)
    held = [tvm.runtime.tensor(array) for array in (*(arguments[n] for n in names), result)]
    scheduling.build(tiled)["main"](*held)
    return held[-1].numpy()


def agrees(program: TileProgram, tiles: Tiles) -> None:
    arguments = example_arguments(program, 3)
    found = run_once(TiledProgram(program, tiles), arguments)
    np.testing.assert_allclose(found, compute(program, arguments), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.title)
@pytest.mark.usefixtures("builder")
def test_configurations_compute_the_program(program):
    for tiles in tile_configurations(program, 5, 7):
        agrees(program, tiles)


@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.usefixtures("builder")
def test_partial_cache_tiles_compute_the_program(outside):
    """5 of 10 rows are 2 tiles of 4; 48 columns 1.5 of 32; 20 steps 1.67 of 12."""
    program = TileProgram("matmul", (10, 48, 20), "bias+tanh")
    agrees(program, Tiles((4, 32, 12), (2, 16, 4), True, outside))
    reduction = TileProgram("reduce_sum", (10, 48, 1), "scale")
    agrees(reduction, Tiles((4, 32), (2, 16), True, outside))


def test_a_processor_without_the_instructions_is_refused(monkeypatch):
    monkeypatch.setattr(scheduling.platform, "machine", lambda: "arm64")
    with pytest.raises(ExecutionError, match="for x86-64, not for arm64"):
        scheduling.check_processor()
