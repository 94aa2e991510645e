"""Published transformers: their configurations, and counts by hand.

``S`` new tokens of one sequence. Parameters are matrices, tables, biases and normalisations; FLOP
are 2 for each multiply-add of the products and 4 for each channel of each score of attention
(``QK^T`` and ``PV``). What is left out (activations, softmax, normalisations) is below 1 %.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from go_rl.core import OpGraph

"""Reads a configuration, with dims by name."""
S = 128
LAYER_8B = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336
"""Queries and result, keys and values of 8 heads, gated MLP; Llama-3-8B and Mistral-7B."""
LAYER_QWEN = 2 * 3584 * 3584 + 2 * 3584 * 512 + 3 * 3584 * 18944
LAYER_GEMMA = 2 * 2048 * 2048 + 2 * 2048 * 256 + 3 * 2048 * 16384
LAYER_768 = 4 * 768 * 768 + 2 * 768 * 3072
"""GPT-2, BERT-base, ViT-base."""
BIASES_768 = 4 * 768 + 3072 + 768 + 2 * 2 * 768
"""Four of attention, two of the MLP, two normalisations of scale and bias."""
LAYER_OPT = 4 * 2048 * 2048 + 2 * 2048 * 8192
BIASES_OPT = 4 * 2048 + 8192 + 2048 + 2 * 2 * 2048
ATTENTION_T5, MLP_T5 = 4 * 512 * 512, 2 * 512 * 2048
ATTENTION_384, MLP_384 = 4 * 384 * 384, 2 * 384 * 1536
BIASES_ATTENTION_384, BIASES_MLP_384 = 3 * 384 + 2 * 384, 1536 + 384 + 2 * 384
"""No bias of keys; each with its normalisation."""
ATTENTION_MIXTRAL, EXPERT = 2 * 4096 * 4096 + 2 * 4096 * 1024, 3 * 4096 * 14336

MLA_V3 = 7168 * 1536 + 1536 * 128 * 192 + 7168 * 576 + 512 * 128 * 256 + 128 * 128 * 7168
"""Queries by way of 1536 channels, 128 heads of 128 + 64; 512 latent channels and 64 rotated ones;
keys and values of 128 + 128; result."""
EXPERT_V3 = 3 * 7168 * 2048
MLA_LITE = 2048 * 16 * 192 + 2048 * 576 + 512 * 16 * 256 + 16 * 128 * 2048
EXPERT_LITE = 3 * 2048 * 1408


@dataclass(frozen=True)
class Published:
    """One model."""

    config: Mapping[str, Any]
    published: float
    """Parameters that its authors state."""
    parameters: int
    flops: float
    itemsize: int = 2
    dims: Mapping[str, int] | None = None


def _config(kind: str, hidden: int, layers: int, heads: int, **more: Any) -> dict[str, Any]:
    sizes = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": heads}
    return {"model_type": kind, **sizes, **more}


LLAMA_8B = _config(
    "llama", 4096, 32, 32, num_key_value_heads=8, intermediate_size=14336, vocab_size=128256,
    max_position_embeddings=8192, hidden_act="silu", torch_dtype="bfloat16",
    architectures=["LlamaForCausalLM"],
)  # fmt: skip
MIXTRAL = _config(
    "mixtral", 4096, 32, 32, num_key_value_heads=8, intermediate_size=14336, vocab_size=32000,
    max_position_embeddings=32768, num_local_experts=8, num_experts_per_tok=2,
    torch_dtype="bfloat16",
)  # fmt: skip
GPT2 = {
    "model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "n_positions": 1024,
    "vocab_size": 50257, "architectures": ["GPT2LMHeadModel"],
}  # fmt: skip
T5_SMALL = {
    "model_type": "t5", "d_model": 512, "d_ff": 2048, "d_kv": 64, "num_heads": 8, "num_layers": 6,
    "vocab_size": 32128, "architectures": ["T5ForConditionalGeneration"],
}  # fmt: skip
WHISPER_TINY = {
    "model_type": "whisper", "d_model": 384, "encoder_layers": 4, "decoder_layers": 4,
    "encoder_attention_heads": 6, "decoder_attention_heads": 6, "encoder_ffn_dim": 1536,
    "decoder_ffn_dim": 1536, "max_source_positions": 1500, "max_target_positions": 448,
    "num_mel_bins": 80, "vocab_size": 51865, "torch_dtype": "float32",
}  # fmt: skip
BERT_BASE = _config(
    "bert", 768, 12, 12, intermediate_size=3072, max_position_embeddings=512, vocab_size=30522,
    type_vocab_size=2, hidden_act="gelu", architectures=["BertForMaskedLM"],
)  # fmt: skip
DEEPSEEK_V3 = _config(
    "deepseek_v3", 7168, 61, 128, num_key_value_heads=128, intermediate_size=18432,
    moe_intermediate_size=2048, n_routed_experts=256, n_shared_experts=1, num_experts_per_tok=8,
    first_k_dense_replace=3, moe_layer_freq=1, q_lora_rank=1536, kv_lora_rank=512,
    qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, vocab_size=129280,
    max_position_embeddings=163840, num_nextn_predict_layers=1, torch_dtype="bfloat16",
    architectures=["DeepseekV3ForCausalLM"], tie_word_embeddings=False,
)  # fmt: skip
DEEPSEEK_V2_LITE = _config(
    "deepseek_v2", 2048, 27, 16, num_key_value_heads=16, intermediate_size=10944,
    moe_intermediate_size=1408, n_routed_experts=64, n_shared_experts=2, num_experts_per_tok=6,
    first_k_dense_replace=1, moe_layer_freq=1, q_lora_rank=None, kv_lora_rank=512,
    qk_nope_head_dim=128, qk_rope_head_dim=64, v_head_dim=128, vocab_size=102400,
    max_position_embeddings=163840, torch_dtype="bfloat16",
)  # fmt: skip

MODELS: dict[str, Published] = {
    "Llama-3-8B": Published(
        LLAMA_8B, 8.03e9, 2 * 128256 * 4096 + 32 * (LAYER_8B + 2 * 4096) + 4096,
        2 * S * (128256 * 4096 + 32 * LAYER_8B) + 32 * 4 * 4096 * S * S,
    ),
    "Mistral-7B": Published(
        {**LLAMA_8B, "model_type": "mistral", "vocab_size": 32000, "sliding_window": 4096,
         "architectures": ["MistralForCausalLM"]}, 7.24e9,
        2 * 32000 * 4096 + 32 * (LAYER_8B + 2 * 4096) + 4096,
        2 * S * (32000 * 4096 + 32 * LAYER_8B) + 32 * 4 * 4096 * S * S,
    ),
    "Qwen2-7B": Published(
        _config("qwen2", 3584, 28, 28, num_key_value_heads=4, intermediate_size=18944,
                vocab_size=152064, max_position_embeddings=131072, torch_dtype="bfloat16"), 7.62e9,
        2 * 152064 * 3584 + 28 * (LAYER_QWEN + 3584 + 2 * 512 + 2 * 3584) + 3584,
        2 * S * (152064 * 3584 + 28 * LAYER_QWEN) + 28 * 4 * 3584 * S * S,
    ),
    "Gemma-2B": Published(
        _config("gemma", 2048, 18, 8, num_key_value_heads=1, head_dim=256, hidden_act="gelu",
                intermediate_size=16384, vocab_size=256000, max_position_embeddings=8192,
                torch_dtype="bfloat16"), 2.51e9,
        256000 * 2048 + 18 * (LAYER_GEMMA + 2 * 2048) + 2048,
        2 * S * (256000 * 2048 + 18 * LAYER_GEMMA) + 18 * 4 * 2048 * S * S,
    ),
    "GPT-2": Published(
        GPT2, 124e6, (50257 + 1024) * 768 + 12 * (LAYER_768 + BIASES_768) + 2 * 768,
        2 * S * (50257 * 768 + 12 * LAYER_768) + 12 * 4 * 768 * S * S, itemsize=4,
    ),
    "OPT-1.3B": Published(
        _config("opt", 2048, 24, 32, ffn_dim=8192, vocab_size=50272, max_position_embeddings=2048,
                torch_dtype="float16"), 1.32e9,
        (50272 + 2048 + 2) * 2048 + 24 * (LAYER_OPT + BIASES_OPT) + 2 * 2048,
        2 * S * (50272 * 2048 + 24 * LAYER_OPT) + 24 * 4 * 2048 * S * S,
    ),
    "BERT-base": Published(
        BERT_BASE, 110e6,
        (30522 + 512 + 2 + 2) * 768 + 12 * (LAYER_768 + BIASES_768) + 768 * 768 + 3 * 768 + 30522,
        2 * S * (30522 * 768 + 768 * 768 + 12 * LAYER_768) + 12 * 4 * 768 * S * S, itemsize=4,
    ),
    "T5-small": Published(
        T5_SMALL, 60.5e6,
        32128 * 512 + 2 * 32 * 8 + 6 * (3 * ATTENTION_T5 + 2 * MLP_T5 + 5 * 512) + 2 * 512,
        2 * S * (32128 * 512 + 6 * (3 * ATTENTION_T5 + 2 * MLP_T5)) + 6 * 3 * 4 * 512 * S * S,
        itemsize=4, dims={"sequence": S, "source": S},
    ),
    "ViT-base": Published(
        _config("vit", 768, 12, 12, intermediate_size=3072, image_size=224, patch_size=16,
                id2label={str(i): "" for i in range(1000)}), 86.6e6,
        (3 * 16 * 16 + 1) * 768 + (197 + 1) * 768 + 12 * (LAYER_768 + BIASES_768) + 2 * 768
        + 1000 * 769,
        2 * 196 * 768 * 768 + 12 * (2 * 197 * LAYER_768 + 4 * 768 * 197 * 197) + 2 * 1000 * 768,
        itemsize=4, dims={},
    ),
    "Whisper-tiny": Published(
        WHISPER_TINY, 37.8e6,
        (3 * 80 + 1) * 384 + (3 * 384 + 1) * 384 + (1500 + 448 + 51865) * 384
        + 4 * (3 * (ATTENTION_384 + BIASES_ATTENTION_384) + 2 * (MLP_384 + BIASES_MLP_384))
        + 2 * 2 * 384,
        2 * 3000 * 3 * 80 * 384 + 2 * 1500 * 3 * 384 * 384  # convolutions
        + 4 * (2 * 1500 * (ATTENTION_384 + MLP_384) + 4 * 384 * 1500 * 1500)  # encoder
        + 4 * (2 * S * (ATTENTION_384 + MLP_384) + 4 * 384 * S * S)  # decoder
        + 4 * (2 * (S + 1500) * ATTENTION_384 // 2 + 4 * 384 * S * 1500)  # between the two
        + 2 * S * 51865 * 384,
        itemsize=4,
    ),
    "Mixtral-8x7B": Published(
        MIXTRAL, 46.7e9,
        2 * 32000 * 4096 + 32 * (ATTENTION_MIXTRAL + 8 * EXPERT + 8 * 4096 + 2 * 4096) + 4096,
        2 * S * (32000 * 4096 + 32 * (ATTENTION_MIXTRAL + 2 * EXPERT + 8 * 4096))
        + 32 * 4 * 4096 * S * S,
    ),
    "DeepSeek-V3": Published(
        DEEPSEEK_V3, 671e9,
        2 * 129280 * 7168 + 61 * (MLA_V3 + 1536 + 512 + 2 * 7168) + 7168 + 3 * 3 * 7168 * 18432
        + 58 * (257 * EXPERT_V3 + 256 * 7168 + 256),
        2 * S * (129280 * 7168 + 61 * MLA_V3 + 3 * 3 * 7168 * 18432
                 + 58 * (9 * EXPERT_V3 + 256 * 7168))
        + 61 * 2 * 128 * (192 + 128) * S * S,
    ),
    "DeepSeek-V2-Lite": Published(
        DEEPSEEK_V2_LITE, 15.7e9,
        2 * 102400 * 2048 + 27 * (MLA_LITE + 512 + 2 * 2048) + 2048 + 3 * 2048 * 10944
        + 26 * (66 * EXPERT_LITE + 64 * 2048),
        2 * S * (102400 * 2048 + 27 * MLA_LITE + 3 * 2048 * 10944
                 + 26 * (8 * EXPERT_LITE + 64 * 2048))
        + 27 * 2 * 16 * (192 + 128) * S * S,
    ),
}  # fmt: skip
SMALL: dict[str, Any] = {
    "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 100,
    "intermediate_size": 128, "max_position_embeddings": 64, "n_embd": 64, "n_layer": 2,
    "n_head": 4, "n_positions": 64, "ffn_dim": 128, "d_model": 64, "d_ff": 128, "d_kv": 16,
    "num_heads": 4, "num_layers": 2, "image_size": 32, "patch_size": 8, "encoder_layers": 2,
    "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
    "encoder_ffn_dim": 128, "decoder_ffn_dim": 128, "max_target_positions": 64,
    "max_source_positions": 100, "num_local_experts": 4, "num_experts": 4, "n_routed_experts": 4,
    "num_experts_per_tok": 2, "moe_intermediate_size": 32, "shared_expert_intermediate_size": 32,
    "n_shared_experts": 2, "first_k_dense_replace": 1, "torch_dtype": "bfloat16",
    "q_lora_rank": 24, "kv_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
    "v_head_dim": 16, "intermediate_size_mlp": 256, "attention_chunk_size": 16, "dim": 64,
    "n_layers": 2, "n_heads": 4, "hidden_dim": 128,
}  # fmt: skip
"""Fields of every family of text."""
SMALL_PARTS: dict[str, Any] = {
    "text_config": {**SMALL, "num_key_value_heads": 2},
    "vision_config": {
        "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 32,
        "intermediate_size": 128, "patch_size": 8, "depth": 2, "embed_dim": 64, "num_heads": 4,
        "out_hidden_size": 64, "window_size": 16, "fullatt_block_indexes": [1],
        "spatial_merge_size": 2, "vision_output_dim": 48, "projector_input_dim": 32,
        "projector_output_dim": 48,
    },
    "mm_tokens_per_image": 4, "vision_feature_layer": -2, "hidden_size": 64,
}  # fmt: skip
"""Fields of every family that reads images, too."""
SMALL_QUANTISED: list[dict[str, Any]] = [
    {"quant_method": "fp8", "weight_block_size": [16, 16], "activation_scheme": "dynamic"},
    {"quant_method": "gptq", "bits": 4, "group_size": 16, "modules_to_not_convert": ["lm_head"]},
    {"quant_method": "awq", "bits": 4, "group_size": 16, "zero_point": True},
    {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_use_double_quant": True},
]  # fmt: skip
"""A ``quantization_config`` of every method that all families take."""


def stored(graph: OpGraph) -> float:
    """Return the bytes of weights, each array once."""
    return float(graph.held_weights.own.sum() + graph.tied_bytes.sum())
