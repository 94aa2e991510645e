from __future__ import annotations

from typing import Any

import pytest
from graphs.readers.hf_models import (
    MODELS,
    SMALL,
    Read,
    S,
    stored,
)

from go_rl.graphs.readers.hf.families.known import FAMILIES


@pytest.mark.parametrize(
    "name",
    [n if n != "DeepSeek-V3" else pytest.param(n, marks=pytest.mark.slow) for n in MODELS],
)
def test_counts_of_published_models(name: str, read: Read) -> None:
    model = MODELS[name]
    graph = read(model.config, **({"sequence": S} if model.dims is None else model.dims))
    assert stored(graph) == model.parameters * model.itemsize
    assert model.parameters == pytest.approx(model.published, rel=0.01)
    assert graph.flops.sum() == pytest.approx(model.flops, rel=0.01)


@pytest.mark.parametrize(
    ("kind", "pattern", "sparse"),
    [
        ("qwen2_moe", {}, {0, 1, 2, 3, 4, 5}),
        ("qwen2_moe", {"decoder_sparse_step": 2}, {1, 3, 5}),
        ("qwen3_moe", {"mlp_only_layers": [0, 4]}, {1, 2, 3, 5}),
        ("deepseek_v2", {"moe_layer_freq": 2}, {2, 4}),
        ("llama4_text", {"interleave_moe_layer_step": 3}, {2, 5}),
        ("llama4_text", {"moe_layers": [1]}, {1}),
    ],
)  # fmt: skip
def test_blocks_that_have_experts(
    kind: str, pattern: dict[str, Any], sparse: set[int], read: Read
) -> None:
    graph = read({**SMALL, "model_type": kind, "num_hidden_layers": 6, **pattern}, sequence=8)
    with_router = {
        int(str(name).split("layers.")[1].split("/")[0])
        for name in graph.names
        if str(name).endswith("/topk")
    }
    assert with_router == sparse


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_family_is_read(kind: str, read: Read) -> None:
    graph = read({**SMALL, "model_type": kind})
    assert graph.flops.sum() > 0
    assert graph.is_output.sum() == 1
    # Every operator leads to the result.
    assert set(graph.senders) | set(graph.is_output.nonzero()[0]) == set(range(graph.num_nodes))


@pytest.mark.parametrize(
    ("kind", "before", "since"),
    [
        ("qwen3_moe", {"num_experts": 4}, {"num_experts": None, "num_local_experts": 4}),
        ("qwen2_moe", {"use_sliding_window": False}, {"sliding_window": 0}),
        *((kind, {name: 0.75}, {"rope_parameters": {"partial_rotary_factor": 0.75}})
          for kind, name in (("phi3", "partial_rotary_factor"), ("gpt_neox", "rotary_pct"))),
    ],
)  # fmt: skip
def test_fields_as_transformers_5_writes_them(
    kind: str, before: dict[str, Any], since: dict[str, Any], read: Read
) -> None:
    def same(change: dict[str, Any]) -> tuple[object, ...]:
        fields = {**SMALL, "model_type": kind, **change}
        graph = read({k: v for k, v in fields.items() if v is not None}, sequence=8)
        return graph.names, graph.flops.tolist(), graph.weight_bytes.tolist()

    assert same(before) == same(since)
