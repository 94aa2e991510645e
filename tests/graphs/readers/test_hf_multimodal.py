"""Models that read images and text: counts by hand of published ones, and what is refused."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from graphs.readers.hf_models import (
    LAYER_GEMMA,
    LAYER_QWEN,
    SMALL,
    SMALL_PARTS,
    SMALL_QUANTISED,
    stored,
)

from go_rl.core import ReadError
from go_rl.graphs.readers.hf.vision.multimodal import MULTIMODAL

S = 1024
"""Tokens of one sequence, those of an image among them."""
LAYER_7B = 4 * 4096 * 4096 + 3 * 4096 * 11008
LAYER_GEMMA3 = 2 * 2560 * 2048 + 2 * 2560 * 1024 + 3 * 2560 * 10240
"""8 heads of 256, 4 of keys and values."""
LAYER_CLIP = 4 * 1024 * 1024 + 2 * 1024 * 4096
BIASES_CLIP = 4 * 1024 + 4096 + 1024 + 2 * 2 * 1024
LAYER_SIGLIP = 4 * 1152 * 1152 + 2 * 1152 * 4304
BIASES_SIGLIP = 4 * 1152 + 4304 + 1152 + 2 * 2 * 1152
LAYER_EYE2 = 4 * 1280 * 1280 + 2 * 1280 * 5120
BIASES_EYE2 = 4 * 1280 + 5120 + 1280 + 2 * 2 * 1280
LAYER_EYE25 = 4 * 1280 * 1280 + 3 * 1280 * 3420
BIASES_EYE25 = 4 * 1280 + 2 * 3420 + 1280 + 2 * 1280
MERGER = 5120 * 5120 + 5120 * 3584
"""Towers of Qwen2-VL and Qwen2.5-VL; four patches of 1280 channels become a token."""
ATTENTION_SCOUT, EXPERT_SCOUT = 2 * 5120 * 5120 + 2 * 5120 * 1024, 3 * 5120 * 8192
LAYER_SCOUT = 4 * 1408 * 1408 + 2 * 1408 * 5632
BIASES_SCOUT = 4 * 1408 + 5632 + 1408 + 2 * 2 * 1408
ADAPTER_SCOUT = 5632 * 4096 + 4096 * 4096 + 4096 * 5120
"""Llama 4 Scout: 16 experts, one of which a token meets, and one that each does; its tower."""
TEXT_QWEN = 2 * 152064 * 3584 + 28 * (LAYER_QWEN + 3584 + 2 * 512 + 2 * 3584) + 3584
FLOPS_QWEN = 2 * S * (152064 * 3584 + 28 * LAYER_QWEN) + 28 * 4 * 3584 * S * S


@dataclass(frozen=True)
class Seeing:
    """One published model."""

    config: Mapping[str, Any]
    published: float
    parameters: int
    flops: float
    image_tokens: int
    itemsize: int = 2


SIGLIP = {"model_type": "siglip_vision_model", "hidden_size": 1152, "intermediate_size": 4304,
          "num_attention_heads": 16, "num_hidden_layers": 27, "patch_size": 14,
          "vision_use_head": False}  # fmt: skip
QWEN = {"hidden_size": 3584, "intermediate_size": 18944, "max_position_embeddings": 32768,
        "num_attention_heads": 28, "num_hidden_layers": 28, "num_key_value_heads": 4,
        "tie_word_embeddings": False, "torch_dtype": "bfloat16", "use_sliding_window": False,
        "sliding_window": 32768, "vocab_size": 152064}  # fmt: skip
EYE = {"depth": 32, "num_heads": 16, "in_chans": 3, "patch_size": 14, "spatial_merge_size": 2,
       "temporal_patch_size": 2}  # fmt: skip
LLAVA = {
    "model_type": "llava", "architectures": ["LlavaForConditionalGeneration"],
    "projector_hidden_act": "gelu", "torch_dtype": "float16", "tie_word_embeddings": False,
    "text_config": {"model_type": "llama", "architectures": ["LlamaForCausalLM"],
                    "max_position_embeddings": 4096, "vocab_size": 32064},
    "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024, "image_size": 336,
                      "intermediate_size": 4096, "num_attention_heads": 16,
                      "num_hidden_layers": 24, "patch_size": 14},
    "vision_feature_layer": -2, "vision_feature_select_strategy": "default",
}  # fmt: skip
PALIGEMMA = {
    "model_type": "paligemma", "architectures": ["PaliGemmaForConditionalGeneration"],
    "torch_dtype": "float32", "vision_config": SIGLIP,
    "text_config": {"model_type": "gemma", "hidden_size": 2048, "intermediate_size": 16384,
                    "num_attention_heads": 8, "num_hidden_layers": 18, "num_key_value_heads": 1,
                    "vocab_size": 257216},
}  # fmt: skip
GEMMA3 = {
    "model_type": "gemma3", "architectures": ["Gemma3ForConditionalGeneration"],
    "mm_tokens_per_image": 256, "torch_dtype": "bfloat16",
    "vision_config": {**SIGLIP, "image_size": 896},
    "text_config": {"model_type": "gemma3_text", "hidden_size": 2560, "intermediate_size": 10240,
                    "num_hidden_layers": 34, "sliding_window": 1024},
}  # fmt: skip
QWEN2_VL = {
    "model_type": "qwen2_vl",
    **QWEN,
    "vision_config": {**EYE, "embed_dim": 1280, "mlp_ratio": 4, "hidden_size": 3584},
}
QWEN25_VL = {"model_type": "qwen2_5_vl", **QWEN, "vision_config": {
    **EYE, "model_type": "qwen2_5_vl_vision",  # as transformers 5 writes it
    "hidden_size": 1280, "intermediate_size": 3420, "hidden_act": "silu",
    "out_hidden_size": 3584, "window_size": 112, "fullatt_block_indexes": [7, 15, 23, 31],
}}  # fmt: skip
SCOUT = {
    "model_type": "llama4", "architectures": ["Llama4ForConditionalGeneration"],
    "torch_dtype": "bfloat16",
    "text_config": {"model_type": "llama4_text", "hidden_size": 5120, "intermediate_size": 8192,
                    "intermediate_size_mlp": 16384, "num_hidden_layers": 48, "head_dim": 128,
                    "num_attention_heads": 40, "num_key_value_heads": 8, "num_local_experts": 16,
                    "num_experts_per_tok": 1, "interleave_moe_layer_step": 1,
                    "no_rope_layers": [], "attention_chunk_size": 8192, "vocab_size": 202048,
                    "max_position_embeddings": 10485760},
    "vision_config": {"model_type": "llama4_vision_model", "hidden_size": 1408, "image_size": 336,
                      "intermediate_size": 5632, "num_attention_heads": 16, "patch_size": 14,
                      "num_hidden_layers": 34, "pixel_shuffle_ratio": 0.5,
                      "projector_input_dim": 4096, "projector_output_dim": 4096,
                      "vision_output_dim": 4096},
}  # fmt: skip

MODELS: dict[str, Seeing] = {
    # 23 of the tower's 24 blocks run; 336 / 14 = 24 patches a side, and the class token.
    "LLaVA-1.5-7B": Seeing(
        LLAVA, 7.06e9,
        2 * 32064 * 4096 + 32 * (LAYER_7B + 2 * 4096) + 4096
        + (3 * 14 * 14 + 1 + 577 + 2) * 1024 + 23 * (LAYER_CLIP + BIASES_CLIP)
        + (1024 + 1) * 4096 + (4096 + 1) * 4096,
        2 * S * (32064 * 4096 + 32 * LAYER_7B) + 32 * 4 * 4096 * S * S
        + 2 * 576 * 3 * 14 * 14 * 1024 + 23 * (2 * 577 * LAYER_CLIP + 4 * 1024 * 577 * 577)
        + 2 * 576 * (1024 * 4096 + 4096 * 4096),
        576,
    ),
    # 224 / 14 = 16 patches a side; a tied table.
    "PaliGemma-3B": Seeing(
        PALIGEMMA, 2.92e9,
        257216 * 2048 + 18 * (LAYER_GEMMA + 2 * 2048) + 2048
        + (3 * 14 * 14 + 1 + 256 + 2) * 1152 + 27 * (LAYER_SIGLIP + BIASES_SIGLIP)
        + (1152 + 1) * 2048,
        2 * S * (257216 * 2048 + 18 * LAYER_GEMMA) + 18 * 4 * 2048 * S * S
        + 2 * 256 * 3 * 14 * 14 * 1152 + 27 * (2 * 256 * LAYER_SIGLIP + 4 * 1152 * 256 * 256)
        + 2 * 256 * 1152 * 2048,
        256, itemsize=4,
    ),
    # 896 / 14 = 64 patches a side, of which 4 x 4 become a token; two norms of 256 for heads.
    "Gemma-3-4B": Seeing(
        GEMMA3, 4.30e9,
        262208 * 2560 + 34 * (LAYER_GEMMA3 + 4 * 2560 + 2 * 256) + 2560
        + (3 * 14 * 14 + 1 + 4096 + 2) * 1152 + 27 * (LAYER_SIGLIP + BIASES_SIGLIP)
        + 1152 + 1152 * 2560,
        2 * S * (262208 * 2560 + 34 * LAYER_GEMMA3) + 34 * 4 * 2048 * S * S
        + 2 * 4096 * 3 * 14 * 14 * 1152 + 27 * (2 * 4096 * LAYER_SIGLIP + 4 * 1152 * 4096 * 4096)
        + 2 * 256 * 1152 * 2560,
        256,
    ),
    # 448 / 14 = 32 patches a side, each of two frames; 2 x 2 become a token.
    "Qwen2-VL-7B": Seeing(
        QWEN2_VL, 8.29e9,
        TEXT_QWEN + 3 * 2 * 14 * 14 * 1280 + 32 * (LAYER_EYE2 + BIASES_EYE2) + 2 * 1280
        + MERGER + 5120 + 3584,
        FLOPS_QWEN + 2 * 1024 * 3 * 2 * 14 * 14 * 1280
        + 32 * (2 * 1024 * LAYER_EYE2 + 4 * 1280 * 1024 * 1024) + 2 * 256 * MERGER,
        256,
    ),
    # 336 / 14 = 24 patches a side, of which 2 x 2 become a token, and the class token.
    "Llama-4-Scout": Seeing(
        SCOUT, 108.6e9,
        2 * 202048 * 5120 + 5120
        + 48 * (ATTENTION_SCOUT + 17 * EXPERT_SCOUT + 16 * 5120 + 2 * 5120)
        + (3 * 14 * 14 + 1 + 577 + 2 * 2) * 1408 + 34 * (LAYER_SCOUT + BIASES_SCOUT)
        + ADAPTER_SCOUT,
        2 * S * (202048 * 5120 + 48 * (ATTENTION_SCOUT + 2 * EXPERT_SCOUT + 16 * 5120))
        + 48 * 4 * 5120 * S * S
        + 2 * 576 * 3 * 14 * 14 * 1408 + 34 * (2 * 577 * LAYER_SCOUT + 4 * 1408 * 577 * 577)
        + 2 * 144 * ADAPTER_SCOUT,
        144,
    ),
    # 28 of 32 blocks attend to windows of 8 x 8 patches.
    "Qwen2.5-VL-7B": Seeing(
        QWEN25_VL, 8.29e9,
        TEXT_QWEN + 3 * 2 * 14 * 14 * 1280 + 32 * (LAYER_EYE25 + BIASES_EYE25) + 1280
        + MERGER + 5120 + 3584,
        FLOPS_QWEN + 2 * 1024 * 3 * 2 * 14 * 14 * 1280
        + 32 * 2 * 1024 * LAYER_EYE25 + 4 * 1280 * 1024 * (4 * 1024 + 28 * 64)
        + 2 * 256 * MERGER,
        256,
    ),
}  # fmt: skip


def stored_width(config: Mapping[str, Any]) -> int:
    """Width of the text's tokens; 4096 is that of Llama's class."""
    return config.get("text_config", config).get("hidden_size", 4096)


@pytest.mark.parametrize("name", MODELS)
def test_counts_of_published_models(name, read):
    model = MODELS[name]
    graph = read(model.config, sequence=S)
    assert stored(graph) == model.parameters * model.itemsize
    assert model.parameters == pytest.approx(model.published, rel=0.01)
    assert graph.flops.sum() == pytest.approx(model.flops, rel=0.01)
    assert graph.is_output.sum() == 1
    assert set(graph.senders) | set(graph.is_output.nonzero()[0]) == set(range(graph.num_nodes))
    arrived = graph.edge_bytes[graph.receivers == graph.index["images"]] / model.itemsize
    width = stored_width(model.config)
    assert sorted(arrived.tolist()) == [model.image_tokens * width, S * width]


@pytest.mark.parametrize(
    ("config", "change", "said"),
    [
        (LLAVA, {"vision_config": None}, "no field 'vision_config'"),
        (LLAVA, {"vision_config": 3}, "vision_config is 3; it must be an object"),
        (LLAVA, {"vision_config": {"model_type": "vit"}},
         "vision_config: model_type 'vit' is not read; llava has clip_vision_model or siglip"),
        (LLAVA, {"text_config": {"model_type": "lama"}},
         "text_config: model_type 'lama' is no language model that is read; did you mean 'llama'"),
        (LLAVA, {"text_config": {"model_type": "bert"}}, "model_type 'bert' is no language model"),
        (LLAVA, {"text_config": {"model_type": "llama", "hidden_size": -1}},
         "config.json: text_config: hidden_size is -1"),
        (LLAVA, {"vision_feature_layer": [-2, -5]}, r"vision_feature_layer is \[-2, -5\]"),
        (LLAVA, {"vision_feature_layer": -30}, "vision_feature_layer is -30"),
        (LLAVA, {"vision_feature_select_strategy": "cls"}, "it must be 'default' or 'full'"),
        (LLAVA, {"projector_hidden_act": "gelo"}, "projector_hidden_act is 'gelo'"),
        (GEMMA3, {"mm_tokens_per_image": 200}, "a square whose root divides 64"),
        (GEMMA3, {"mm_tokens_per_image": None, "vision_config": {**SIGLIP, "image_size": 336}},
         "mm_tokens_per_image is None; it must be"),
        (LLAVA, {"vision_config": {"model_type": []}}, r"model_type is \[\]; it must be a text"),
        (LLAVA, {"model_type": "x", "text_config": {"model_type": {}}}, "model_type 'x' is not"),
        (QWEN2_VL, {"vision_config": {**QWEN2_VL["vision_config"], "mlp_ratio": 3}},
         "vision_config: mlp_ratio is 3"),
        (QWEN2_VL, {"vision_config": {**QWEN2_VL["vision_config"], "hidden_size": 1536}},
         "hidden_size is 1536; it must be the width of the text, 3584"),
        (SCOUT, {"vision_config": {**SCOUT["vision_config"], "vision_output_dim": 7680}},
         "vision_output_dim is 7680; it must be projector_output_dim, 4096"),
        (SCOUT, {"vision_config": {**SCOUT["vision_config"], "intermediate_size": 1408}},
         "intermediate_size is 1408; it must be 5632"),
        (SCOUT, {"vision_config": {**SCOUT["vision_config"], "pixel_shuffle_ratio": 0.3}},
         "pixel_shuffle_ratio is 0.3"),
        (LLAVA, {"model_type": "llava_next"}, "model_type 'llava_next' is not read.* "
         "Its text_config is read, in a file of its own"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named(config, change, said, read):
    with pytest.raises(ReadError, match=said):
        read({**config, **change}, sequence=S)


@pytest.mark.parametrize(
    ("kind", "settings"),
    [*((kind, None) for kind in MULTIMODAL), *zip(MULTIMODAL, SMALL_QUANTISED, strict=False)],
)
def test_every_family_is_read(kind, settings, read):
    size = {"height": 32, "width": 32} if kind.startswith("qwen") else {}
    config = {**SMALL, **SMALL_PARTS, "model_type": kind, "quantization_config": settings}
    if kind == "llama4":
        config["vision_config"] = {**config["vision_config"], "intermediate_size": 256}
    graph = read(config, **size)
    assert graph.flops.sum() > 0
    assert set(graph.senders) | set(graph.is_output.nonzero()[0]) == set(range(graph.num_nodes))


def test_every_family_is_among_the_published():
    assert {model.config["model_type"] for model in MODELS.values()} == set(MULTIMODAL)
