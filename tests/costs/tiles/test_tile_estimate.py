"""The hand-written estimate: each part worked out by hand, and what it must prefer."""

import pytest

from go_rl.costs.tiles import CoreSheet, TiledProgram, TileError, TileProgram, Tiles, estimate_tiles
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


def test_few_sums_wait_for_each_other():
    """One register: 4 steps of 4 cycles, however little arithmetic."""
    assert body_cycles(tiled((1, 8, 4)), CORE) == 4 * 4 + 1


def test_too_many_sums_spill():
    """16 x 16 sums are 32 registers, of which 18 do not stay: 18 stores for 32 multiply-adds, and
    32 / 64 of a store of each sum at the end, one store a cycle."""
    assert body_cycles(tiled((16, 16, 1)), CORE) == 18 + 32 / 64 + 1


def test_loads_bound_a_flat_tile():
    """A row of 64 is 8 multiply-adds, 4 cycles, and so is their latency; but 8 vectors and one
    broadcast are 9 loads, and 8 / 64 of one of the sums, two a cycle."""
    tile = tiled((1, 64, 1))
    assert sum(register_loads(tile, x) for x in MATMUL.operands[:2]) == 9
    assert body_cycles(tile, CoreSheet(loads=2.0)) == (9 + 8 / 64) / 2 + 1


def test_a_tile_that_is_not_unrolled_pays_for_its_loops():
    assert body_cycles(tiled((4, 16, 4), False), CORE) == 16 + 16


def test_compute_is_cycles_of_all_register_tiles():
    """16 x 4 x 16 tiles of 17 cycles; 48 KiB do not fit an L1 of 32 KiB, and fit L2."""
    estimate = estimate_tiles(tiled((4, 16, 4)), CoreSheet(l1_bytes=32.0 * 1024))
    assert estimate.compute == pytest.approx(1024 * 17 / CORE.clock)
    assert estimate.transfers[0] > 0
    assert estimate.transfers[1:] == (0, 0)
    assert estimate.around == 0
    assert estimate.seconds == max(estimate.compute, estimate.transfers[0])


def test_an_epilogue_is_added():
    """bias and relu: two instructions on each of 512 vectors, two pipes. All sums wait for it,
    16 KiB, in L1."""
    estimate = estimate_tiles(tiled((4, 16, 4), epilogue="bias+relu"))
    assert estimate.around == pytest.approx(512 / CORE.clock)


def test_a_padded_image_is_copied():
    """2 x 4 bytes for each of 64 x 64 x 16 numbers, 512 KiB, between L1 and L2."""
    program = TileProgram("conv2d", (1, 64, 64, 16, 3, 3, 16, 1, 1))
    tiles = Tiles((1, 64, 64, 16, 3, 3, 16), (1, 1, 4, 16, 1, 1, 4), True)
    estimate = estimate_tiles(TiledProgram(program, tiles))
    assert estimate.around == pytest.approx(512 * 1024 / CORE.l1_rate)


def test_lanes_are_added_one_after_the_other():
    program = TileProgram("reduce_sum", (32, 64, 1))
    estimate = estimate_tiles(TiledProgram(program, Tiles((32, 64), (4, 16), True)))
    assert estimate.around == pytest.approx(32 * 16 * 4 / CORE.clock)
    single = estimate_tiles(TiledProgram(program, Tiles((32, 64), (4, 1))))
    assert single.around == 0


def test_overlapping_windows_load_a_pixel_once():
    """Two columns and three kernel positions, stride 1, are four pixels; stride 4, six."""
    tiles = Tiles((1, 1, 2, 8, 1, 3, 1), (1, 1, 2, 8, 1, 3, 1))
    for stride, pixels in ((1, 4), (4, 6)):
        program = TileProgram("conv2d", (1, 1, 3 + 3 * stride, 1, 1, 3, 8, stride, 0))
        tile = TiledProgram(program, tiles)
        assert register_loads(tile, program.operands[0]) == pixels


def test_vectors_and_blocking_are_preferred():
    """Of a matmul beyond L2, and with the same register tile where caches are compared."""
    program = TileProgram("matmul", (1024, 1024, 1024))

    def seconds(cache: int, register: tuple[int, int, int]) -> float:
        return estimate_tiles(
            TiledProgram(program, Tiles((cache, cache, cache), register, True))
        ).seconds

    assert seconds(64, (4, 16, 4)) < seconds(64, (4, 2, 4)) < seconds(64, (1, 1, 4))
    slow = CoreSheet(l1_rate=1e9, l2_rate=1e9)
    blocked, whole = (
        estimate_tiles(TiledProgram(program, Tiles((c, c, c), (4, 16, 4), True)), slow).seconds
        for c in (64, 1024)
    )
    assert blocked < whole


def test_a_core_s_constants_are_positive_numbers():
    for wrong in (0.0, -1.0, float("nan"), float("inf")):
        with pytest.raises(TileError, match="must be numbers > 0"):
            CoreSheet(clock=wrong)
