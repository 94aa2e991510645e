"""The tile task's kernels: enough, distinct, of many networks, of sensible size."""

from collections import Counter

from go_rl.costs.tiles import (
    TiledProgram,
    TileProgram,
    default_tiles,
    estimate_tiles,
    tile_workloads,
)


def test_there_are_enough_distinct_programs_of_many_networks():
    programs = [workload.program for workload in tile_workloads()]
    assert len(programs) >= 320
    assert len({program.workload for program in programs}) == len(programs)
    by_model = Counter(workload.model for workload in tile_workloads())
    assert len(by_model) >= 30
    assert max(by_model.values()) < len(programs) / 10


def test_every_operator_and_many_epilogues_occur():
    ops = Counter(workload.program.op for workload in tile_workloads())
    assert min(ops.values()) >= 10
    assert ops["matmul"] >= 100 <= ops["conv2d"]
    assert len({workload.program.epilogue for workload in tile_workloads()}) >= 10


def test_well_known_kernels_are_among_them():
    known = {(workload.model, workload.program) for workload in tile_workloads()}
    assert ("bert-base", TileProgram("matmul", (128, 3072, 768), "bias+gelu")) in known
    square = TileProgram("conv2d", (1, 56, 56, 64, 3, 3, 64, 1, 1), "bias+add+relu")
    assert ("resnet18", square) in known


def test_defaults_take_20_us_to_20_ms_by_the_estimate():
    """The estimate is optimistic: the least of them measure 50 us."""
    for workload in tile_workloads():
        tiled = TiledProgram(workload.program, default_tiles(workload.program))
        assert 2e-5 < estimate_tiles(tiled).seconds < 2e-2, workload
