"""Configurations: legal, distinct, the same for a seed; all of them where there are few."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from go_rl.costs.tiles import (
    TiledProgram,
    TileError,
    TileProgram,
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


def test_fewer_than_two_are_refused():
    with pytest.raises(TileError, match="count must be at least 2"):
        tile_configurations(CONV, 1, 0)
