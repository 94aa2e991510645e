"""Programs that are tiled: their loops, tiles and traffic."""

import json
from collections import Counter
from itertools import product

import jax.numpy as jnp
import numpy as np
import pytest
from reference.tile_programs import compute, walk

from go_rl.costs.tiles import TiledProgram, TileError, TileProgram, Tiles, tile_configurations
from go_rl.costs.tiles.graph import program_function
from go_rl.costs.tiles.traffic import fitting_depth, footprints, ranges_inside, traffic

MATMUL = TileProgram("matmul", (8, 16, 32), "bias+relu")
CONV = TileProgram("conv2d", (1, 9, 8, 3, 3, 2, 16, 2, 1), "bias+add+relu")
PROGRAMS = [
    MATMUL,
    CONV,
    TileProgram("matmul", (3, 5, 7), "gelu+scale"),
    TileProgram("reduce_sum", (6, 10, 1), "add+sigmoid"),
    TileProgram("reduce_sum", (6, 10, 0)),
    TileProgram("reduce_max", (6, 10, 0), "tanh"),
]


def test_a_matmul_has_its_loops_arrays_and_costs():
    """2 * 8 * 16 * 32 FLOP; 8 * 32 + 32 * 16 + 16 + 8 * 16 numbers."""
    assert [(x.name, x.extent, x.reduces) for x in MATMUL.loops] == [
        ("m", 8, False), ("n", 16, False), ("k", 32, True),
    ]  # fmt: skip
    assert MATMUL.vector_loop == "n"
    assert MATMUL.input_shapes == {"left": (8, 32), "right": (32, 16), "bias": (16,)}
    assert MATMUL.output_shape == (8, 16)
    assert MATMUL.flops == 8192
    assert MATMUL.bytes_accessed == 4 * (256 + 512 + 16 + 128)
    assert MATMUL.title == "matmul 8x16x32 bias+relu"


def test_a_convolution_counts_its_positions():
    """(9 + 2 - 3) // 2 + 1 = 5 rows and (8 + 2 - 2) // 2 + 1 = 5 columns."""
    assert CONV.output_shape == (1, 5, 5, 16)
    assert [x.name for x in CONV.loops] == ["n", "oh", "ow", "co", "kh", "kw", "ci"]
    assert CONV.flops == 2 * 25 * 16 * 3 * 2 * 3
    assert CONV.input_shapes["right"] == (3, 2, 3, 16)
    assert CONV.input_shapes["add"] == (1, 5, 5, 16)
    assert CONV.operands[0].index[1] == (("oh", 2), ("kh", 1))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.title)
def test_documents_come_back_the_same_and_hash_the_same(program):
    shuffled = json.dumps(dict(reversed(json.loads(program.to_json()).items())), indent=2)
    assert TileProgram.from_json(shuffled) == program
    assert TileProgram.from_json(shuffled).workload == program.workload
    assert len({p.workload for p in PROGRAMS}) == len(PROGRAMS)


@pytest.mark.parametrize(
    ("op", "sizes", "epilogue", "said"),
    [
        ("matmull", (1, 1, 1), "none", "unknown op 'matmull'; did you mean 'matmul'"),
        ("matmul", (1, 1), "none", "has sizes m, n, k, not 2"),
        ("matmul", (1, 0, 1), "none", "n must be a whole number >= 1, not 0"),
        ("matmul", (1, 1, True), "none", "k must be a whole number >= 1, not True"),
        ("reduce_sum", (4, 4, 2), "none", "axis must be 0 or 1, not 2"),
        ("reduce_sum", (4, 4, 1), "bias", "use 'add', not 'bias'"),
        ("conv2d", (1, 3, 3, 1, 5, 5, 1, 1, 0), "none", "exceeds the padded image"),
        ("conv2d", (1, 8, 8, 1, 3, 3, 1, 1, 3), "none", "padding must be smaller"),
        ("matmul", (1, 1, 1), "bias+rellu", "step 'rellu'; did you mean 'relu'"),
        ("matmul", (1, 1, 1), "relu+relu", "has a step twice"),
        ("matmul", (1, 1, 1), "", "unknown epilogue step ''"),
    ],
)
def test_what_cannot_be_is_named(op, sizes, epilogue, said):
    with pytest.raises(TileError, match=said.replace("(", r"\(")):
        TileProgram(op, sizes, epilogue)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "a JSON object of dtype, epilogue, op, sizes"),
        ('{"op": "matmul"}', "a JSON object of dtype, epilogue, op, sizes"),
        ('{"op": "matmul", "sizes": {"m": 1}, "epilogue": "none", "dtype": "float32"}', "m, n, k"),
        ('{"op": "lu", "sizes": {}, "epilogue": "none", "dtype": "float32"}', "unknown op 'lu'"),
        (MATMUL.to_json().replace("float32", "float16"), "dtype must be 'float32'"),
        (MATMUL.to_json().replace("32,", '"a",'), "k must be a whole number"),
    ],
)
def test_what_cannot_be_read_is_named(text, said):
    with pytest.raises(TileError, match=said):
        TileProgram.from_json(text)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.title)
def test_the_graph_s_function_computes_the_program(program):
    rng = np.random.default_rng(0)
    arrays = {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in program.input_shapes.items()
    }
    found = program_function(program)(**{name: jnp.asarray(a) for name, a in arrays.items()})
    np.testing.assert_allclose(found, compute(program, arrays), rtol=1e-4, atol=1e-5)


LARGE = TileProgram("matmul", (8, 48, 12))
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
def test_the_nest_visits_every_iteration_once(program):
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
def test_tiles_that_do_not_fit_are_named(cache, register, said):
    with pytest.raises(TileError, match=said):
        TiledProgram(LARGE, Tiles(cache, register))


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
def test_tiles_that_cannot_be_read_are_named(text, said):
    with pytest.raises(TileError, match=said):
        Tiles.from_json(text)


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
def test_footprints_are_the_lines_touched(program):
    for tiles in tile_configurations(program, 5, 1):
        tiled = TiledProgram(program, tiles)
        if tiled.has_partial_sums:
            continue
        for depth in range(len(tiled.nest) + 1):
            expected = touched_lines(tiled, ranges_inside(tiled, depth))
            assert footprints(tiled)[depth] == tuple(64 * count for count in expected)


TILED_MATMUL = TiledProgram(TileProgram("matmul", (64, 64, 64)), Tiles((16, 32, 64), (4, 16, 1)))
"""Cache tiles of 16 x 64 (4 KiB) and 64 x 32 (8 KiB) for 16 x 32 sums (2 KiB)."""


def test_data_that_fit_move_nothing():
    assert fitting_depth(TILED_MATMUL, 3.0 * 64 * 64 * 4) == 0
    assert traffic(TILED_MATMUL, 3.0 * 64 * 64 * 4) == 0


def test_traffic_of_cache_tiles_by_hand():
    """Inside the rows' loop: 4 KiB of left, all 16 KiB of right, 4 KiB of sums. Inside the
    columns' loop: 4 + 8 + 2 KiB. A cache of 14 KiB loads left once a row tile, right's 8 KiB for
    each of 4 x 2 tiles, and each tile of sums twice."""
    assert [sum(size) for size in footprints(TILED_MATMUL)[:3]] == [48 * 1024, 24 * 1024, 14 * 1024]
    assert fitting_depth(TILED_MATMUL, 14.0 * 1024) == 2
    left, right, sums = 4 * 4096, 8 * 8192, 2 * 8 * 2048
    assert traffic(TILED_MATMUL, 14.0 * 1024) == left + right + sums
