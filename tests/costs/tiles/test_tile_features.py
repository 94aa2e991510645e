"""Features: named, finite, and the numbers they say."""

from math import log2

import numpy as np
import pytest

from go_rl.costs.tiles import (
    TiledProgram,
    TileError,
    TileProgram,
    Tiles,
    estimate_tiles,
    feature_names,
    tile_configurations,
    tile_features,
)

PROGRAMS = [
    TileProgram("matmul", (48, 80, 30), "bias+gelu"),
    TileProgram("conv2d", (2, 12, 12, 8, 3, 3, 16, 2, 1), "bias+add+relu"),
    TileProgram("reduce_max", (40, 96, 1)),
    TileProgram("reduce_sum", (40, 96, 0), "scale"),
    TileProgram("reduce_sum", (1, 1, 0)),
]


def named(program: TileProgram, tiles: Tiles) -> dict[str, float]:
    return dict(zip(feature_names(), tile_features(program, tiles).tolist(), strict=True))


def test_every_configuration_of_every_operator_has_the_same_finite_columns():
    assert len(set(feature_names())) == len(feature_names())
    for program in PROGRAMS:
        rows = [tile_features(program, t) for t in tile_configurations(program, 10, 0)]
        table = np.stack(rows)
        assert table.shape[1] == len(feature_names())
        assert np.isfinite(table).all()
        assert len(np.unique(table, axis=0)) == len(rows), "configurations must be told apart"


def test_columns_hold_what_they_are_called():
    program = TileProgram("matmul", (8, 48, 12), "bias+relu")
    tiles = Tiles((4, 32, 6), (2, 16, 3), True)
    found = named(program, tiles)
    assert [found[f"op_{op}"] for op in ("matmul", "conv2d")] == [1, 0]
    assert [found[f"epilogue_{step}"] for step in ("bias", "gelu", "relu")] == [1, 0, 1]
    assert found["flops"] == pytest.approx(log2(2 * 8 * 48 * 12))
    assert found["kept0_extent"] == pytest.approx(log2(48))
    assert (found["kept0_cache"], found["kept0_register"]) == (5, 4)
    assert (found["kept0_cache_tiles"], found["kept0_remainder"]) == (1, 0.5)
    assert (found["kept1_cache"], found["summed0_register"]) == (2, pytest.approx(log2(3)))
    assert (found["kept2_extent"], found["summed2_cache"]) == (0, 0)
    assert found["cache_tiles"] == log2(2 * 2 * 2)
    assert found["body"] == found["unrolled_body"] == pytest.approx(log2(12))
    assert (found["vector_width"], found["vector_fill"]) == (4, 1)
    assert found["register_bytes_result"] == pytest.approx(log2(1 + 2 * 64))
    assert found["whole_bytes_right"] == pytest.approx(log2(1 + 12 * 48 * 4))
    assert found["estimate"] == pytest.approx(
        log2(estimate_tiles(TiledProgram(program, tiles)).seconds)
    )


def test_an_under_full_vector_and_a_rolled_body_show():
    program = TileProgram("matmul", (8, 48, 12))
    found = named(program, Tiles((8, 48, 12), (2, 12, 3)))
    assert (found["vector_fill"], found["vectors"]) == (0.5, pytest.approx(log2(3)))
    assert found["unrolled_body"] == pytest.approx(log2(3))
    assert found["unroll"] == 0


def test_tiles_that_do_not_fit_are_refused():
    with pytest.raises(TileError, match="2 tile sizes for the loops m, n, k"):
        tile_features(TileProgram("matmul", (1, 1, 1)), Tiles((1, 1), (1, 1)))
