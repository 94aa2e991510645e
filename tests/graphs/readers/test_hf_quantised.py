"""Quantised configurations: bytes of matrices with their scales, counted by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from graphs.readers.hf_models import (
    LLAMA_8B,
    stored,
)

from go_rl.core import OpGraph
from go_rl.graphs.readers.load import load

MATRICES_8B = {(4096, 4096): 2, (1024, 4096): 2, (14336, 4096): 2, (4096, 14336): 1}
"""Matrices of one block of Llama-3-8B: results and inputs, and how many there are."""
TWO_LAYERS = {**LLAMA_8B, "num_hidden_layers": 2}
REST_8B = 2 * (2 * 128256 * 4096 + (2 * 2 + 1) * 4096)
"""Bytes of tables, head and normalisations, which stay bfloat16."""


def read(folder: Path, config: Any, method: str, **settings: Any) -> OpGraph:
    quantised = {**config, "quantization_config": {"quant_method": method, **settings}}
    path = folder / "config.json"
    path.write_text(json.dumps(quantised))
    return load(path, {"sequence": 8})


def blocks_8b(matrix: Any) -> float:
    return 2 * sum(count * matrix(*shape) for shape, count in MATRICES_8B.items())


@pytest.mark.parametrize(
    ("method", "settings", "matrix", "said"),
    [
        # A float32 scale for each 128 x 128.
        ("fp8", {"weight_block_size": [128, 128], "activation_scheme": "dynamic"},
         lambda r, c: r * c + 4 * (r // 128) * (c // 128), "float8, scales of 128 x 128"),
        # One for the matrix, one for its inputs.
        ("fp8", {"activation_scheme": "static"}, lambda r, c: r * c + 8, "of whole matrices"),
        # Half bytes; for each 128 inputs of a result a float16 scale and half a byte of zero point;
        # the group of each input as int32.
        ("gptq", {"bits": 4, "group_size": 128},
         lambda r, c: r * c / 2 + c / 128 * r * 2.5 + 4 * c, "GPTQ, 4 bits, groups of 128 inputs"),
        ("gptq", {"bits": 8, "group_size": -1},
         lambda r, c: r * c + 3 * r + 4 * c, "GPTQ, 8 bits, groups of all inputs"),
        ("awq", {"bits": 4, "group_size": 128, "zero_point": True},
         lambda r, c: r * c / 2 + c / 128 * r * 2.5, "AWQ, 4 bits"),
        ("awq", {"bits": 4, "group_size": 64, "zero_point": False},
         lambda r, c: r * c / 2 + c / 64 * r * 2, "AWQ, 4 bits"),
        ("bitsandbytes", {"load_in_8bit": True}, lambda r, c: r * c + 4 * r, "8 bits"),
        ("bitsandbytes", {"load_in_4bit": True}, lambda r, c: r * c / 2 + 4 * r * c / 64, "4 bits"),
        # A byte for each 64, a float32 for each 256 of them.
        ("bitsandbytes", {"load_in_4bit": True, "bnb_4bit_use_double_quant": True},
         lambda r, c: r * c / 2 + r * c / 64 + 4 * r * c / 64 / 256, "4 bits"),
    ],
)  # fmt: skip
def test_bytes_with_scales(
    tmp_path: Path, method: str, settings: dict[str, Any], matrix: Any, said: str
) -> None:
    graph = read(tmp_path, TWO_LAYERS, method, **settings)
    assert stored(graph) == pytest.approx(blocks_8b(matrix) + REST_8B, rel=1e-12)
    assert said in " ".join(graph.meta["notes"])
    # Results and FLOP are those of bfloat16.
    (tmp_path / "config.json").write_text(json.dumps(TWO_LAYERS))
    plain = load(tmp_path / "config.json", {"sequence": 8})
    assert graph.output_bytes.tolist() == plain.output_bytes.tolist()
    assert graph.flops.tolist() == plain.flops.tolist()
    assert graph.bytes_accessed.sum() < plain.bytes_accessed.sum()
