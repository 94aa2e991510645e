"""Leaf vectors: by hand, and number by number against TVM's ``PerStoreFeature``."""

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from costs.tiles import tvm_workloads

from go_rl.costs.programs.features import (
    FEATURE_NAMES,
    LEAF_NUMBERS,
    compact_ast,
    leaf_vectors,
)
from go_rl.costs.programs.features.index_range import index_stride
from go_rl.costs.programs.nests import (
    Access,
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
def test_the_stride_follows_the_form_of_the_index(index: Any, stride: int):
    assert index_stride(index, 1) == stride


def test_a_nest_that_computes_nothing_is_refused():
    nest = LoopNest((NestBuffer("A", ()),), (Statement(Access(0, ()), constant=True),))
    assert leaf_vectors(nest)[0].shape == (0, 164)
    with pytest.raises(NestError, match="computes nothing"):
        compact_ast(nest)


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
    from go_rl.costs.programs.nests.tvm_lowering import import_meta_schedule, nest_from_tvm

    context, candidates = tvm_workloads.drawn(name, target, 5)
    extractor = import_meta_schedule().feature_extractor.PerStoreFeature()
    wanted = [vectors.numpy() for vectors in extractor.extract_from(context, candidates)]
    assert len(wanted) == 5
    for candidate, vectors in zip(candidates, wanted, strict=True):
        nest = nest_from_tvm(candidate.sch.mod, target is tvm_workloads.GPU)
        assert nest_from_json(nest_to_json(nest)) == nest
        np.testing.assert_allclose(leaf_vectors(nest)[0], vectors, rtol=1e-12, atol=1e-12)
