"""The hand-written estimate: each part worked out by hand, and what it must prefer."""

import pytest

from go_rl.costs.tiles import CoreSheet, TiledProgram, TileProgram, Tiles, estimate_tiles
from go_rl.costs.tiles.estimate import body_cycles, register_loads, sum_trips

CORE = CoreSheet()
MATMUL = TileProgram("matmul", (64, 64, 64))
WHOLE = (64, 64, 64)


def tiled(register: tuple[int, int, int], unroll: bool = True, epilogue: str = "none"):
    program = TileProgram("matmul", WHOLE, epilogue)
    return TiledProgram(program, Tiles(WHOLE, register, unroll))


def test_the_core_s_peak_is_the_data_sheet_s():
    """Two multiply-adds of eight numbers at 3.2 GHz."""
    assert CORE.peak_flops == pytest.approx(102.4e9)


def test_a_register_tile_takes_its_slowest_part():
    """4 x 16 sums are 8 registers, k = 4 makes 32 multiply-adds: 16 cycles on two pipes, as many
    by latency (4 dependent steps of 4); 16 broadcasts and 8 vectors are 24 loads, 8 cycles, and
    8 / 16 of a load and store of each sum."""
    tile = tiled((4, 16, 4))
    assert tile.body == 32
    assert sum(register_loads(tile, x) for x in MATMUL.operands[:2]) == 24
    assert sum_trips(tile) == 16
    assert body_cycles(tile, CORE) == 16 + 1


def test_compute_is_cycles_of_all_register_tiles():
    """16 x 4 x 16 tiles of 17 cycles; 48 KiB do not fit an L1 of 32 KiB, and fit L2."""
    estimate = estimate_tiles(tiled((4, 16, 4)), CoreSheet(l1_bytes=32.0 * 1024))
    assert estimate.compute == pytest.approx(1024 * 17 / CORE.clock)
    assert estimate.transfers[0] > 0
    assert estimate.transfers[1:] == (0, 0)
    assert estimate.around == 0
    assert estimate.seconds == max(estimate.compute, estimate.transfers[0])
