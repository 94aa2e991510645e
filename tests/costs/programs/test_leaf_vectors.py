"""Leaf vectors: by hand, and number by number against TVM's ``PerStoreFeature``."""

import gzip
import json
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from costs.tiles import tvm_workloads

from go_rl.costs.programs.features import (
    FEATURE_NAMES,
    LEAF_NUMBERS,
    compact_ast,
    group_slices,
    leaf_vectors,
    positional_encoding,
)
from go_rl.costs.programs.features.index_range import bounds_by_level, index_bounds, index_stride
from go_rl.costs.programs.nests import (
    OPERATION_NAMES,
    Access,
    ForLoop,
    IndexOperation,
    LoopNest,
    LoopVariable,
    NestBuffer,
    NestError,
    Statement,
    nest_from_json,
    nest_to_json,
)

RECORDED = Path(__file__).parent / "data" / "per_store_features.jsonl.gz"
"""Nests of 24 random schedules for a CPU and a GPU, and what TVM 0.27 makes of them."""
I0, I1, I2 = map(LoopVariable, range(3))


def matmul() -> LoopNest:
    """C[4, 8] = A[4, 16] B[16, 8]."""
    buffers = (NestBuffer("A", (4, 16)), NestBuffer("B", (16, 8)), NestBuffer("C", (4, 8)))
    c = Access(2, (I0, I1))
    counts = tuple(int(name in ("float_mul", "float_add_sub")) for name in OPERATION_NAMES)
    add = Statement(c, (c, Access(0, (I0, I2)), Access(1, (I2, I1))), counts)
    inner = ForLoop(16, "unrolled", (add,))
    clear = Statement(c, constant=True)
    body = ForLoop(4, "parallel", (ForLoop(8, "serial", (clear, inner), auto_unroll=64),))
    return LoopNest(buffers, (body,))


def numbers(nest: LoopNest) -> dict[str, float]:
    vectors, _ = leaf_vectors(nest)
    return dict(zip(FEATURE_NAMES, vectors[-1].tolist(), strict=True))


def scaled(x: float) -> float:
    return log2(x + 1)


def test_the_layout_is_that_of_the_paper():
    sizes = {name: s.stop - s.start for name, s in group_slices().items()}
    assert list(sizes.values()) == [16, 11, 11, 11, 8, 90, 10, 4, 3]
    assert LEAF_NUMBERS == len(set(FEATURE_NAMES)) == 164


def test_a_product_by_hand():
    vectors, leaves = leaf_vectors(matmul())
    assert vectors.shape == (1, 164)
    assert leaves[0].leaf == 1
    found = numbers(matmul())
    told = {
        "float_mul": 512, "float_add_sub": 512, "int_mul": 0, "parallel_count": 1,
        "parallel_iterations": 4, "unrolled_innermost": 16, "vectorised_count": 0,
        "iterations": 512, "loops": 3, "auto_unroll": 64, "allocated_bytes": 4 * 32,
        "allocated_iterations": 32, "outer_allocations": 1, "inner_iterations": 512,
        # B, whose lines are the most: 512 times half a line
        "buffer0_bytes": 2048, "buffer0_unique_bytes": 512, "buffer0_lines": 256,
        "buffer0_unique_lines": 512 / 32, "buffer0_stride": 8,
        "buffer0_reuse_count": 4, "buffer0_reuse_iterations": 128,
        "buffer0_reuse_bytes": 4 * (8 + 16 + 128), "buffer0_bytes_per_reuse": 512,
        # A: 512 / 16 lines; used again in the loop over 8
        "buffer1_lines": 32, "buffer1_unique_bytes": 256, "buffer1_reuse_count": 8,
        "buffer1_reuse_iterations": 16, "buffer1_reuse_bytes": 4 * (1 + 16 + 16),
        # C: the loop over 16 does not move it
        "buffer2_lines": 2, "buffer2_stride": 0, "buffer2_reuse_bytes": 4 * 3,
        "buffer2_reuse_iterations": 1, "buffer2_unique_bytes_per_reuse": 128 / 16,
        # 2 FLOP a step; 1 + 16 + 16 elements in the innermost loop
        "intensity0": (102.4 - 32) * ((256 / 608 - 32 / 132) / 224) + 32 / 132,
        "intensity9": 1024 / (4 * (64 + 128 + 32)),
    }  # fmt: skip
    assert found | {name: scaled(x) for name, x in told.items()} == pytest.approx(found)
    assert [name for name in FEATURE_NAMES if name.startswith("buffer3") and found[name]] == []
    ones = ("buffer0_read", "buffer0_loop_reuse", "buffer2_read_write", "parallel_mixed")
    assert [found[name] for name in ones] == [1.0] * 4
    assert found["vectorised_none"] == 1.0
    assert found["is_gpu"] == 0.0


def test_a_remainder_is_taken_where_loops_stand_at_0():
    fused = IndexOperation("%", IndexOperation("+", I0, 3), 4)
    assert index_bounds(fused, {0: (0, 9)}) == (3, 3)
    assert index_bounds(IndexOperation("//", I0, 4), {0: (0, 9)}) == (0, 2)
    assert index_bounds(IndexOperation("%", IndexOperation("%", I0, 6), 4), {0: (0, 9)}) == (0, 2)
    assert index_bounds(IndexOperation("%", IndexOperation("%", I0, 3), 2), {0: (0, 9)}) == (0, 0)


def test_bounds_widen_from_the_innermost_loop_outwards():
    index = IndexOperation("-", IndexOperation("+", IndexOperation("*", I0, 4), I1), 1)
    assert bounds_by_level(index, [(0, 3), (2, 5), (1, 4)]) == [(-1, 10), (-1, 2), (-1, 2)]


@pytest.mark.parametrize(
    ("index", "stride"),
    [
        (I1, 1),
        (7, 0),
        (I0, 0),
        (IndexOperation("*", I1, 4), 4),
        (IndexOperation("+", I1, I0), 1),
        (IndexOperation("+", IndexOperation("*", I0, 8), I1), 1),
        (IndexOperation("+", I1, IndexOperation("*", I0, 8)), 8),
        (IndexOperation("*", IndexOperation("*", I1, 4), 7), 7),
        (IndexOperation("*", IndexOperation("+", I1, I0), 7), 1),
        (IndexOperation("//", I1, 4), 1),
    ],
)
def test_the_stride_follows_the_form_of_the_index(index: Any, stride: int):
    assert index_stride(index, 1) == stride


def test_a_statement_outside_of_all_loops_has_a_vector():
    nest = LoopNest((NestBuffer("A", (2,)),), (Statement(Access(0, (1,)), (Access(0, (0,)),)),))
    found = numbers(nest)
    assert (found["buffer0_unique_bytes"], found["buffer0_lines"]) == (1.0, 1.0)
    assert found["intensity9"] == 0.0
    assert found["loops"] == 0.0


def test_the_ordering_counts_loops_leaves_and_ends_of_leaves():
    # i0, i1, clear, -1, i2, add
    assert compact_ast(matmul()).ordering.tolist() == [5]
    read = Statement(Access(0, (0, 0)), (Access(1, (0, 0)),))
    write = Statement(Access(2, (0, 0)), (Access(1, (0, 0)),))
    nest = LoopNest(matmul().buffers, (read, ForLoop(4, body=(write, write)), read))
    # read, -1, i0, write, -1, write, -1, read: a buffer's last write counts
    assert compact_ast(nest).ordering.tolist() == [5, 7]
    assert compact_ast(nest).vectors.dtype == np.float32


def test_a_nest_that_computes_nothing_is_refused():
    nest = LoopNest((NestBuffer("A", ()),), (Statement(Access(0, ()), constant=True),))
    assert leaf_vectors(nest)[0].shape == (0, 164)
    with pytest.raises(NestError, match="computes nothing"):
        compact_ast(nest)


def test_the_positional_encoding_is_that_of_the_paper():
    found = positional_encoding(np.array([0, 3]), numbers=4, theta=100.0)
    assert found[0].tolist() == [0, 1, 0, 1]
    third = [np.sin(3), np.cos(3), np.sin(0.3), np.cos(0.3)]
    np.testing.assert_allclose(found[1], third, rtol=1e-12)
    assert positional_encoding(np.zeros((2, 5), np.int64)).shape == (2, 5, 164)


def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]


@pytest.mark.parametrize("name", tvm_workloads.NAMES)
def test_vectors_are_those_that_tvm_was_recorded_with(name: str):
    cases = [case for case in recorded() if case["workload"] == name]
    assert {case["nest"]["gpu"] for case in cases} == {False, True}
    for case in cases:
        nest = nest_from_json(json.dumps(case["nest"]))
        np.testing.assert_allclose(leaf_vectors(nest)[0], case["vectors"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("target", [tvm_workloads.CPU, tvm_workloads.GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("name", tvm_workloads.NAMES)
def test_vectors_are_those_of_tvm(name: str, target: dict[str, Any]):
    pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")
    from go_rl.costs.programs.nests.tvm_lowering import import_meta_schedule, is_gpu, nest_from_tvm

    context, candidates = tvm_workloads.drawn(name, target, 5)
    extractor = import_meta_schedule().feature_extractor.PerStoreFeature()
    wanted = [vectors.numpy() for vectors in extractor.extract_from(context, candidates)]
    assert len(wanted) == 5
    for candidate, vectors in zip(candidates, wanted, strict=True):
        nest = nest_from_tvm(candidate.sch.mod, is_gpu(context.target))
        assert nest_from_json(nest_to_json(nest)) == nest
        np.testing.assert_allclose(leaf_vectors(nest)[0], vectors, rtol=1e-12, atol=1e-12)
