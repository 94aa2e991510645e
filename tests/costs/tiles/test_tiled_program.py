"""Tiles: their documents, the rules they keep, and the nest that follows."""

from collections import Counter

import pytest
from reference.tile_programs import walk

from go_rl.costs.tiles import TiledProgram, TileError, TileProgram, Tiles, tile_configurations

MATMUL = TileProgram("matmul", (8, 48, 12))
TILES = Tiles((4, 32, 6), (2, 16, 3), True)


@pytest.mark.parametrize(
    "program",
    [
        TileProgram("matmul", (5, 12, 6)),
        TileProgram("conv2d", (2, 5, 5, 2, 3, 1, 4, 1, 0)),
        TileProgram("reduce_max", (6, 9, 1)),
    ],
    ids=lambda p: p.title,
)
def test_the_nest_visits_every_iteration_once(program: TileProgram):
    total = 1
    for loop in program.loops:
        total *= loop.extent
    for tiles in tile_configurations(program, 12, 5):
        visits = Counter(tuple(at.values()) for at in walk(TiledProgram(program, tiles)))
        assert set(visits.values()) == {1}
        assert len(visits) == total


def test_documents_come_back_the_same():
    assert TILES.setting == (
        '{"cache":[4,32,6],"reduction_outside":false,"register":[2,16,3],"unroll":true}'
    )
    assert Tiles.from_json(TILES.setting) == TILES


@pytest.mark.parametrize(
    ("cache", "register", "said"),
    [
        ((4, 32), (2, 16), "2 tile sizes for the loops m, n, k"),
        ((16, 32, 6), (2, 16, 3), "loop 'm' of 8: the cache tile 16 exceeds it"),
        ((4, 32, 6), (2, 16, 5), "register tile 5 must divide it and the cache tile 6"),
        ((6, 32, 6), (3, 16, 3), "loop 'm' of 8: the register tile 3 must divide"),
    ],
)
def test_tiles_that_do_not_fit_are_named(cache, register, said: str):
    with pytest.raises(TileError, match=said):
        TiledProgram(MATMUL, Tiles(cache, register))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("3", "a JSON object of cache, reduction_outside, register, unroll"),
        (TILES.setting.replace("[4,32,6]", "4"), "cache must be a list"),
        (TILES.setting.replace("[4,32,6]", "[4,32]"), "2 cache tiles but 3 register tiles"),
        (TILES.setting.replace("[4,32,6]", "[4,32,0]"), "a whole number >= 1, not 0"),
        (TILES.setting.replace("[4,32,6]", '[4,"b",6]'), "a whole number >= 1, not 'b'"),
        (TILES.setting.replace("true", "1"), "unroll must be true or false"),
    ],
)
def test_tiles_that_cannot_be_read_are_named(text: str, said: str):
    with pytest.raises(TileError, match=said):
        Tiles.from_json(text)
