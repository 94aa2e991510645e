"""Footprints against counted cache lines, traffic worked out by hand."""

from itertools import product

import pytest

from go_rl.costs.tiles import TiledProgram, TileProgram, Tiles, tile_configurations
from go_rl.costs.tiles.traffic import fitting_depth, footprints, ranges_inside, traffic

LINE = 16
"""Elements of a cache line."""


def touched_lines(tiled: TiledProgram, ranges: dict[str, int]) -> list[int]:
    """Distinct cache lines that the first ``ranges`` iterations touch, operand by operand."""
    counts = []
    for operand in tiled.program.operands:
        lines = set()
        for at in product(*(range(ranges[loop.name]) for loop in tiled.program.loops)):
            place = dict(zip((loop.name for loop in tiled.program.loops), at, strict=True))
            index = [sum(step * place[name] for name, step in d) for d in operand.index]
            lines.add((*index[:-1], index[-1] // LINE))
        counts.append(len(lines))
    return counts


@pytest.mark.parametrize(
    "program",
    [
        TileProgram("matmul", (4, 48, 20)),
    ],
    ids=lambda p: p.title,
)
def test_footprints_are_the_lines_touched(program: TileProgram):
    for tiles in tile_configurations(program, 5, 1):
        tiled = TiledProgram(program, tiles)
        if tiled.has_partial_sums:
            continue
        for depth in range(len(tiled.nest) + 1):
            expected = touched_lines(tiled, ranges_inside(tiled, depth))
            assert footprints(tiled)[depth] == tuple(64 * count for count in expected)


MATMUL = TiledProgram(TileProgram("matmul", (64, 64, 64)), Tiles((16, 32, 64), (4, 16, 1)))
"""Cache tiles of 16 x 64 (4 KiB) and 64 x 32 (8 KiB) for 16 x 32 sums (2 KiB)."""


def test_data_that_fit_move_nothing():
    assert fitting_depth(MATMUL, 3.0 * 64 * 64 * 4) == 0
    assert traffic(MATMUL, 3.0 * 64 * 64 * 4) == 0


def test_traffic_of_cache_tiles_by_hand():
    """Inside the rows' loop: 4 KiB of left, all 16 KiB of right, 4 KiB of sums. Inside the
    columns' loop: 4 + 8 + 2 KiB. A cache of 14 KiB loads left once a row tile, right's 8 KiB for
    each of 4 x 2 tiles, and each tile of sums twice."""
    assert [sum(size) for size in footprints(MATMUL)[:3]] == [48 * 1024, 24 * 1024, 14 * 1024]
    assert fitting_depth(MATMUL, 14.0 * 1024) == 2
    left, right, sums = 4 * 4096, 8 * 8192, 2 * 8 * 2048
    assert traffic(MATMUL, 14.0 * 1024) == left + right + sums
