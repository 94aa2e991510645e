"""Features of programs: leaves and code."""

import gzip
import json
from itertools import product
from math import log2
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from costs.programs import tvm_workloads

from go_rl.costs.programs.features import FEATURE_NAMES, LEAF_NUMBERS, compact_ast, leaf_vectors
from go_rl.costs.programs.features.code_features import CODE_NAMES, CODE_NUMBERS, code_features
from go_rl.costs.programs.features.index_range import index_stride
from go_rl.costs.programs.features.loop_roles import LeafLoops, leaf_loops
from go_rl.costs.programs.features.register_tile import Processor
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


def test_the_layout_is_that_of_the_paper():
    starts = ("float_mad", "vectorised_count", "is_gpu", "buffer0_read", "intensity0",
              "allocated_bytes", "iterations")  # fmt: skip
    assert [FEATURE_NAMES.index(name) for name in starts] == [0, 16, 49, 57, 147, 157, 161]
    assert LEAF_NUMBERS == len(set(FEATURE_NAMES)) == 164


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
def test_the_stride_follows_the_form_of_the_index(index, stride):
    assert index_stride(index, 1) == stride


def test_a_nest_that_computes_nothing_is_refused():
    nest = LoopNest((NestBuffer("A", ()),), (Statement(Access(0, ()), constant=True),))
    assert leaf_vectors(nest)[0].shape == (0, 164)
    with pytest.raises(NestError, match="computes nothing"):
        compact_ast(nest)


def recorded() -> list[dict[str, Any]]:
    return [json.loads(line) for line in gzip.decompress(RECORDED.read_bytes()).splitlines()]


@pytest.mark.parametrize("name", tvm_workloads.NAMES)
def test_vectors_are_those_that_tvm_was_recorded_with(name):
    cases = [case for case in recorded() if case["workload"] == name]
    assert {case["nest"]["gpu"] for case in cases} == {False, True}
    for case in cases:
        nest = nest_from_json(json.dumps(case["nest"]))
        np.testing.assert_allclose(leaf_vectors(nest)[0], case["vectors"], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("target", [tvm_workloads.CPU, tvm_workloads.GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("name", tvm_workloads.NAMES)
def test_vectors_are_those_of_tvm(name, target):
    pytest.importorskip("tvm", reason="TVM is an optional extra: pip install 'go_rl[tvm]'")
    from go_rl.costs.programs.nests.tvm_lowering import import_meta_schedule, nest_from_tvm

    context, candidates = tvm_workloads.drawn(name, target, 5)
    extractor = import_meta_schedule().feature_extractor.PerStoreFeature()
    wanted = [vectors.numpy() for vectors in extractor.extract_from(context, candidates)]
    assert len(wanted) == 5
    for candidate, vectors in zip(candidates, wanted, strict=True):
        nest = nest_from_tvm(candidate.sch.mod, target is tvm_workloads.GPU)
        assert nest_from_json(nest_to_json(nest)) == nest
        np.testing.assert_allclose(leaf_vectors(nest)[0], vectors, rtol=1e-12, atol=1e-12)


AVX2 = Processor(lanes=8, registers=16)
MULTIPLY_ADD = tuple(int(name in ("float_mul", "float_add_sub")) for name in OPERATION_NAMES)


def product_nest(extents: tuple[int, int, int], innermost: str = "serial") -> LoopNest:
    """C[i, j] += A[i, k] B[k, j], loops i (parallel), k, j."""
    rows, depth, columns = extents
    buffers = (
        NestBuffer("C", (rows, columns)), NestBuffer("A", (rows, depth)),
        NestBuffer("B", (depth, columns)),
    )  # fmt: skip
    c = Access(0, (I0, I2))
    add = Statement(c, (c, Access(1, (I0, I1)), Access(2, (I1, I2))), MULTIPLY_ADD)
    loops = ForLoop(depth, "serial", (ForLoop(columns, innermost, (add,)),))
    return LoopNest(buffers, (ForLoop(rows, "parallel", (loops,)),))


def leaves_of(nest: LoopNest) -> list[LeafLoops]:
    return [leaf_loops(nest, leaf) for leaf in nest.leaves]


def test_roles_of_a_product():
    (leaf,) = leaves_of(product_nest((4, 16, 8)))
    assert leaf.extents == (4, 16, 8)
    assert leaf.reduces == (False, True, False)
    assert leaf.strides.tolist() == [[8, 0, 1], [16, 1, 0], [0, 8, 1]]
    # C: a row of 8 in a line; all 32 elements in 2. A: a row of 16 is a line. B: 128 elements.
    assert leaf.lines.tolist() == [[2, 1, 1], [4, 1, 1], [8, 8, 1]]
    assert [leaf.walks(loop) for loop in range(3)] == [False, False, True]


@pytest.mark.parametrize("extents", [(4, 16, 8), (3, 5, 32), (2, 48, 16)])
def test_lines_are_those_touched_one_by_one(extents):
    nest = product_nest(extents)
    (leaf,) = leaves_of(nest)
    for a, (buffer, index) in enumerate([(0, (0, 2)), (1, (0, 1)), (2, (1, 2))]):
        columns = nest.buffers[buffer].shape[1]
        seen = {(i[index[0]] * columns + i[index[1]]) // 16 for i in product(*map(range, extents))}
        assert leaf.lines[a, 0] == len(seen)


def test_features_of_a_product():
    found = code_features(product_nest((4, 16, 8), "vectorised"), AVX2)
    assert found.shape == (1, CODE_NUMBERS)
    numbers = dict(zip(CODE_NAMES, found[0].tolist(), strict=True))
    assert (numbers["loop0_extent"], numbers["loop0_vectorised"]) == (3, 1)
    assert (numbers["loop1_extent"], numbers["loop1_reduces"]) == (4, 1)
    # Reads by lines: B (stride 8 along k), then A (1), behind the write.
    strides = [
        numbers[f"loop1_{name}"] for name in ("write_stride", "read0_stride", "read1_stride")
    ]
    assert strides == pytest.approx([0, log2(9), 1])
    assert numbers["arithmetic_cycles"] == pytest.approx(log2(64 / 2 + 1))
    assert numbers["chain_cycles"] == pytest.approx(log2(4 * 16 + 1))
    assert numbers["loads_cycles"] == pytest.approx(log2(84 / 2 + 1))
    assert numbers["cycles"] == numbers["chain_cycles"]
    assert numbers["power_of_two"] == 1
