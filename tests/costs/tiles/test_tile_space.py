"""Configurations: legal, distinct, the same for a seed; all of them where there are few."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.tile_programs import every_fitting

from go_rl.costs.tiles import (
    TiledProgram,
    TileError,
    TileProgram,
    Tiles,
    default_tiles,
    naive_tiles,
    tile_configurations,
)

CONV = TileProgram("conv2d", (1, 28, 28, 64, 3, 3, 128, 1, 1), "bias+relu")


SIZE = st.integers(1, 300)


@settings(max_examples=25, deadline=None)
@given(st.sampled_from(("matmul", "reduce_sum")), SIZE, SIZE, SIZE, st.integers(0, 3))
def test_configurations_fit_and_differ(op: str, first: int, second: int, third: int, seed: int):
    program = TileProgram(op, (first, second, third if op == "matmul" else third % 2))
    found = tile_configurations(program, 20, seed)
    assert found[0] == naive_tiles(program)
    shapes = [TiledProgram(program, tiles).shape for tiles in found]
    assert len(set(shapes)) == len(shapes) <= 20
    assert TiledProgram(program, default_tiles(program)).shape in shapes
    assert found == tile_configurations(program, 20, seed)


def test_a_seed_s_configurations_begin_with_those_of_a_smaller_count():
    assert tile_configurations(CONV, 30, 1)[:20] == tile_configurations(CONV, 20, 1)
    assert tile_configurations(CONV, 20, 1) != tile_configurations(CONV, 20, 2)


@pytest.mark.parametrize(
    "program",
    [
        TileProgram("matmul", (2, 4, 2)),
        TileProgram("matmul", (3, 1, 4)),
        TileProgram("reduce_sum", (4, 3, 1)),
        TileProgram("reduce_max", (1, 1, 0)),
        TileProgram("conv2d", (1, 2, 2, 2, 1, 1, 2, 1, 0)),
    ],
    ids=lambda p: p.title,
)
def test_of_a_small_program_all_are_found(program: TileProgram):
    found = tile_configurations(program, 100_000, 0)
    every = {TiledProgram(program, tiles).shape for tiles in every_fitting(program)}
    assert {TiledProgram(program, tiles).shape for tiles in found} == every


def test_the_default_fills_registers_and_fits_caches():
    """Of 28 columns 7, times two registers of 64 channels: 14 sums in 16 registers."""
    found = default_tiles(CONV)
    assert found == Tiles((1, 28, 28, 64, 3, 3, 64), (1, 1, 7, 16, 1, 1, 4), True)
    assert TiledProgram(CONV, found).accumulators == 14
    lanes = default_tiles(TileProgram("matmul", (20, 2600, 650))).register
    assert lanes == (5, 8, 2), "8 full lanes rather than 13 single ones"


def test_a_flag_that_changes_nothing_is_not_set():
    """No loop of the register tile but the vector's, or no cut reducing loop, or no cut result."""
    for tiles in tile_configurations(TileProgram("matmul", (4, 16, 4)), 500, 0):
        assert not (tiles.unroll and tiles.register[0] == tiles.register[2] == 1)
        assert not (tiles.reduction_outside and tiles.cache[2] == 4)
        assert not (tiles.reduction_outside and tiles.cache[:2] == (4, 16))


def test_fewer_than_two_are_refused():
    with pytest.raises(TileError, match="count must be at least 2"):
        tile_configurations(CONV, 1, 0)
