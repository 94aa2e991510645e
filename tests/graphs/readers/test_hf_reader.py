from __future__ import annotations

from typing import Any

import pytest
from graphs.readers.hf_models import (
    DEEPSEEK_V2_LITE,
    MLA_LITE,
    MODELS,
    SMALL,
    Read,
    S,
    stored,
)

from go_rl.graphs.readers.hf.families import FAMILIES


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


def test_latent_attention_keeps_one_vector_a_token(read: Read) -> None:
    graph = read(DEEPSEEK_V2_LITE, cache=4096, batch=2)
    cache = 27 * 2 * 4096 * (512 + 64)
    assert stored(graph) == (MODELS["DeepSeek-V2-Lite"].parameters + cache) * 2
    # Keys' and values' matrices meet the queries and the result, as often as they met each token.
    assert "model/layers.0/self_attn/kv_b_proj" not in graph.index
    products = sum(
        graph.flops[graph.index[f"model/layers.0/self_attn/{name}"]]
        for name in ("q_proj", "kv_a_proj_with_mqa", "kv_b_proj_keys", "kv_b_proj_values", "o_proj")
    )
    assert products == 2 * 2 * MLA_LITE
    attention = graph.index["model/layers.0/self_attn/attention"]
    # 16 heads read 576 channels of each key, 512 of each value; softmax is below 1 %.
    scores = 2 * 2 * 16 * 4097 * (576 + 512)
    assert graph.flops[attention] == pytest.approx(scores, rel=0.01)
    assert graph.bytes_accessed[attention] == pytest.approx(2 * 2 * 4096 * 576, rel=0.01)
    assert any("latent vectors of earlier tokens" in note for note in graph.meta["notes"])


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
