from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from graphs.readers.hf_models import (
    BERT_BASE,
    DEEPSEEK_V2_LITE,
    DEEPSEEK_V3,
    GPT2,
    LAYER_8B,
    LLAMA_8B,
    MIXTRAL,
    MLA_LITE,
    MODELS,
    SMALL,
    T5_SMALL,
    WHISPER_TINY,
    Read,
    S,
    stored,
)

from go_rl.core.graph.element_type import ElementType
from go_rl.graphs.cutting.layers import layer_names
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


def test_operators_compute_in_the_type_of_the_configuration(read: Read) -> None:
    graph = read({**SMALL, "model_type": "llama"}, sequence=8)
    assert graph.element_type is not None
    types = {str(name): ElementType(each) for name, each in
             zip(graph.names, graph.element_type.tolist(), strict=True)}  # fmt: skip
    assert types.pop("input_ids") is ElementType.INT64
    assert set(types.values()) == {ElementType.BFLOAT16}
    plain = read({**SMALL, "model_type": "llama", "torch_dtype": None}, sequence=8)
    assert not plain.product_type.any()


def test_decode_reads_each_weight_and_the_cache_once(read: Read) -> None:
    graph = read(LLAMA_8B, cache=4096, batch=2)
    cache = 2 * 2 * 32 * 4096 * 8 * 128
    products = 128256 * 4096 + 32 * LAYER_8B
    assert stored(graph) == (MODELS["Llama-3-8B"].parameters + cache) * 2
    assert graph.bytes_accessed.sum() == pytest.approx(2 * (products + cache), rel=0.01)
    flops = 2 * (2 * products + 32 * 4 * 4096 * 4097)
    assert graph.flops.sum() == pytest.approx(flops, rel=0.01)


def test_tokens_decoded_cost_what_their_prefill_does(read: Read) -> None:
    whole = read(GPT2, sequence=512).flops.sum()
    first = read(GPT2, sequence=256).flops.sum()
    second = read(GPT2, sequence=256, cache=256).flops.sum()
    # The first half attends to itself only; a prefill computes the masked scores, too.
    masked = 12 * 12 * 256 * 256 * (4 * 64 + 6)
    assert first + second + masked == pytest.approx(whole, rel=1e-9)


def test_decode_reads_only_the_experts_that_tokens_meet(read: Read) -> None:
    one, many = read(MIXTRAL, cache=16), read(MIXTRAL, cache=16, batch=64)
    expert = one.index["model/layers.0/block_sparse_moe/experts/w1"]
    matrix = 4096 * 14336 * 2
    assert one.bytes_accessed[expert] == pytest.approx(2 * matrix, rel=0.01)
    assert many.bytes_accessed[expert] == pytest.approx(8 * matrix, rel=0.05)
    assert one.weight_bytes[expert] == 8 * matrix


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


def test_parameters_that_a_token_of_deepseek_meets(read: Read) -> None:
    graph = read(DEEPSEEK_V3, sequence=1)
    # 37e9 of 671e9, as published; the table of embeddings, 0.93e9, is looked up.
    assert graph.flops.sum() / 2 + 129280 * 7168 == pytest.approx(37.5e9, rel=0.01)
    assert "num_nextn_predict_layers: 1" in " ".join(graph.meta["notes"])


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


def test_two_stacks_decode_without_their_encoder(read: Read) -> None:
    for config in (T5_SMALL, WHISPER_TINY):
        names = read(config, cache=64).names
        assert not any("encoder/" in str(name).replace("decoder/", "") for name in names)


def test_a_tied_table_is_one_array(read: Read) -> None:
    tied = read(GPT2, sequence=8)
    assert tied.tied_bytes.tolist() == [50257 * 768 * 4]
    assert [tied.names[i] for i in tied.tied_node] == ["transformer/wte", "lm_head"]
    untied = read({**GPT2, "tie_word_embeddings": False}, sequence=8)
    assert stored(untied) - stored(tied) == 50257 * 768 * 4


def test_a_window_bounds_the_tokens_attended_to(read: Read) -> None:
    def cached(**more: Any) -> float:
        graph = read({**LLAMA_8B, **more, "architectures": None}, cache=8000)
        return graph.weight_bytes[graph.index["model/layers.0/self_attn/attention"]]

    windowed = {"sliding_window": 1000, "model_type": "mistral"}
    assert cached() == 2 * 8000 * 1024 * 2
    assert cached(**windowed) == 2 * 1000 * 1024 * 2
    assert cached(**{**windowed, "model_type": "qwen2"}) == 2 * 8000 * 1024 * 2


def test_names_are_scopes_of_modules(read: Read) -> None:
    graph = read({**LLAMA_8B, "num_hidden_layers": 2}, sequence=8)
    assert "model/layers.1/self_attn/q_proj" in graph.names
    assert {"model/layers.0/self_attn", "model/layers.1/mlp"} <= set(layer_names(graph))
    assert [graph.names[i] for i in graph.is_output.nonzero()[0]] == ["lm_head"]


@pytest.mark.parametrize(
    ("config", "dims"),
    [(LLAMA_8B, {"sequence": 2048}), (GPT2, {"sequence": 1024}),
     (WHISPER_TINY, {"sequence": 448}), (T5_SMALL, {"sequence": 512, "source": 512})],
)  # fmt: skip
def test_dims_that_were_left_out_are_said(
    config: Mapping[str, Any], dims: dict[str, int], read: Read
) -> None:
    graph = read(config)
    assert graph.meta["dims"] == {"batch": 1, **dims}
    said = ", ".join(f"{name}={size}" for name, size in graph.meta["dims"].items())
    assert f"dims that were not given: {said}" in graph.meta["notes"]
    assert read(config, **graph.meta["dims"]).digest == graph.digest


@pytest.mark.parametrize(
    ("architecture", "last", "width"),
    [("BertModel", "bert/pooler/activation", 768),
     ("BertForSequenceClassification", "classifier", 2), ("BertForMaskedLM", None, 30522)],
)  # fmt: skip
def test_heads_by_class(architecture: str, last: str | None, width: int, read: Read) -> None:
    graph = read({**BERT_BASE, "architectures": [architecture]}, sequence=8)
    (end,) = graph.is_output.nonzero()[0]
    assert last is None or graph.names[end] == last
    assert width in graph.output_shape[end]


@pytest.mark.parametrize("kind", FAMILIES)
def test_every_family_is_read(kind: str, read: Read) -> None:
    graph = read({**SMALL, "model_type": kind})
    assert graph.flops.sum() > 0
    assert graph.is_output.sum() == 1
    # Every operator leads to the result.
    assert set(graph.senders) | set(graph.is_output.nonzero()[0]) == set(range(graph.num_nodes))
