"""Nests of GPU kernels and of the benchmark hub."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from experiments.programs.nests.benchmark_hub import hub_records, nest_from_hub
from experiments.programs.nests.gpu_nests import (
    ProductTiling,
    nest_of_product,
    operation_counts,
)
from go_rl.costs.programs.features import compact_ast
from go_rl.costs.programs.nests import LoopNest, NestError
from go_rl.costs.programs.nests.nest import OPERATION_NAMES
from go_rl.runtime import array_file

FLOAT = tuple(OPERATION_NAMES.index(name) for name in ("float_add_sub", "float_mul"))


def flops(nest: LoopNest) -> int:
    return sum(sum(x.statement.operations[i] for i in FLOAT) * x.executions for x in nest.leaves)


def bound(nest: LoopNest) -> dict[str, int]:
    return {x.annotation: x.extent for x in nest.loops if "." in x.annotation}


def test_a_product_does_its_work_on_its_blocks_and_threads():
    nest = nest_of_product(3, 128, 256, 64, ProductTiling((64, 32), (4, 8), 16))
    assert flops(nest) == 2 * 3 * 128 * 256 * 64
    threads = {"thread.y": 16, "thread.x": 4}
    assert bound(nest) == {"block.z": 3, "block.y": 2, "block.x": 8, **threads}
    assert compact_ast(nest).num_leaves == 4


def test_a_partial_tile_counts_as_a_whole_one():
    assert flops(nest_of_product(1, 65, 64, 8)) == 2 * 128 * 64 * 8


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: ProductTiling((64, 64), (3, 4)), "threads' divide blocks'"),
        (lambda: nest_of_product(1, 0, 8, 8), "extent must be"),
        (lambda: operation_counts(float_sin=1), "unknown operation"),
    ],
)
def test_nests_that_cannot_be_are_refused(make: Any, said: str):
    with pytest.raises(NestError, match=said):
        make()


GEMM = {"MWG": 64, "NWG": 32, "KWG": 32, "MDIMC": 16, "NDIMC": 8}
TILES = {"block_size_x": 32, "block_size_y": 4, "tile_size_x": 2, "tile_size_y": 1}
CONVOLUTION = {**TILES, "use_padding": 1, "use_shmem": 1, "filter_height": 15, "filter_width": 15}
STRIDES = {"tile_stride_x": 1, "tile_stride_y": 0, "loop_unroll_factor_channel": 0}


def test_the_hub_s_kernels_do_their_work():
    assert flops(nest_from_hub("Xgemm", (4096, 4096), GEMM)) == 2 * 4096**3
    for shared in (0, 1):
        nest = nest_from_hub(
            "convolution_kernel", (4096, 4096), CONVOLUTION | {"use_shmem": shared}
        )
        assert flops(nest) == 2 * 4096**2 * 225
        assert len(nest.leaves) == 2 + shared
    nest = nest_from_hub("dedispersion_kernel", (4096, 2048, 1), TILES | STRIDES)
    assert flops(nest) == 2 * 1536 * 4096 * 2048
    assert compact_ast(nest).num_leaves == 2


def test_the_hub_s_files_are_read(tmp_path: Path):
    cache = {"a": {**GEMM, "time": 2.5}, "b": {**GEMM, "time": "CompilationFailedConfig"}}
    document = {
        "kernel_name": "Xgemm", "device_name": "some GPU", "problem_size": [4096, 4096],
        "tune_params_keys": list(GEMM), "cache": cache,
    }  # fmt: skip
    path = tmp_path / "gpu.json.gz"
    path.write_bytes(gzip.compress(json.dumps(document).encode()))
    kernel, device, size, records = hub_records(path)
    assert (kernel, device, size) == ("Xgemm", "some GPU", (4096, 4096))
    assert [(r.parameters, r.seconds) for r in records] == [(GEMM, 2.5e-3), (GEMM, None)]
    path.write_bytes(b"nothing")
    with pytest.raises(NestError, match="not a cache file"):
        hub_records(path)
    with pytest.raises(NestError, match="unknown kernel"):
        nest_from_hub("hotspot", (1, 1), {})
    with pytest.raises(NestError, match="parameter 'MDIMC' is missing"):
        nest_from_hub("Xgemm", (1, 1), {"MWG": 1})


def test_a_hub_file_that_grows_a_thousandfold_is_refused(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(array_file, "FREE_BYTES", 1 << 16)
    path = tmp_path / "gpu.json.gz"
    path.write_bytes(gzip.compress(b"0" * (1 << 20)))
    with pytest.raises(NestError, match=r"gpu\.json\.gz.*it unpacks to more than"):
        hub_records(path)
