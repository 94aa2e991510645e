"""Decoders without experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from go_rl.graphs.readers.hf.family import Names, TransformerFamily

LLAMA = TransformerFamily(
    biases={"q": "attention_bias", "k": "attention_bias", "v": "attention_bias",
            "out": "attention_bias", "mlp": "mlp_bias"},
)  # fmt: skip
QWEN2 = TransformerFamily(biases={"q": True, "k": True, "v": True}, window="switched")
QK_NORM = Names(q_norm="self_attn.q_norm", k_norm="self_attn.k_norm")
QWEN3 = replace(LLAMA, names=QK_NORM, head_dim=128, window="switched")
_GEMMA = TransformerFamily(
    biases=dict.fromkeys(("q", "k", "v", "out"), "attention_bias"),
    activation="gelu_pytorch_tanh",
    fields={"hidden_act": "hidden_activation"},
    tied=True,
    head_dim=256,
)
_SANDWICH = Names(
    post_attention_norm="post_attention_layernorm",
    mlp_norm="pre_feedforward_layernorm",
    post_mlp_norm="post_feedforward_layernorm",
)
ALL_BIASES: dict[str, bool | str] = dict.fromkeys(("q", "k", "v", "out", "mlp"), True)
_GPT2_NAMES = Names(
    root="transformer",
    embed="wte",
    positions="wpe",
    layers="h",
    final_norm="ln_f",
    attention_norm="ln_1",
    qkv="attn.c_attn",
    out="attn.c_proj",
    mlp_norm="ln_2",
    up="mlp.c_fc",
    down="mlp.c_proj",
)
_NEOX_NAMES = Names(
    root="gpt_neox",
    embed="embed_in",
    final_norm="final_layer_norm",
    qkv="attention.query_key_value",
    out="attention.dense",
    up="mlp.dense_h_to_4h",
    down="mlp.dense_4h_to_h",
)
OPT_NAMES = Names(
    root="model.decoder",
    positions="embed_positions",
    final_norm="final_layer_norm",
    attention_norm="self_attn_layer_norm",
    out="self_attn.out_proj",
    mlp_norm="final_layer_norm",
    up="fc1",
    down="fc2",
)
_NORMS_OF_RESULTS = Names(
    attention_norm="", post_attention_norm="post_attention_layernorm",
    mlp_norm="", post_mlp_norm="post_feedforward_layernorm",
    q_norm=QK_NORM.q_norm, k_norm=QK_NORM.k_norm,
)  # fmt: skip
_OLMO2 = TransformerFamily(
    names=_NORMS_OF_RESULTS, joint_qk_norm=True,
    biases=dict.fromkeys(("q", "k", "v", "out"), "attention_bias"),
)  # fmt: skip

DENSE: Mapping[str, TransformerFamily] = {
    "llama": LLAMA,
    "mistral": TransformerFamily(window="always"),
    "qwen2": QWEN2,
    "qwen3": QWEN3,
    "gemma": replace(_GEMMA, fields={}),
    "gemma2": replace(_GEMMA, names=_SANDWICH, window="always", full_every=2),
    "gemma3_text": replace(
        _GEMMA, names=replace(_SANDWICH, q_norm=QK_NORM.q_norm, k_norm=QK_NORM.k_norm),
        window="always", full_every=6,
    ),
    "phi": TransformerFamily(
        names=Names(final_norm="final_layernorm", out="self_attn.dense", up="mlp.fc1",
                    down="mlp.fc2"),
        norm="layer", order="parallel", single_norm=True, gated=False, activation="gelu_new",
        rotary_share=0.5, biases={**ALL_BIASES, "head": True},
        only={"qk_layernorm": False},
    ),
    "phi3": TransformerFamily(names=Names(qkv="self_attn.qkv_proj", gate_up="mlp.gate_up_proj"),
                   window="always"),
    "smollm3": replace(LLAMA, unrotated="listed", tied=True, only={"use_sliding_window": False}),
    "olmo2": _OLMO2,
    "olmo3": replace(_OLMO2, window="always", full_every=4),
    "granite": LLAMA,
    "exaone4": TransformerFamily(
        names=_NORMS_OF_RESULTS, window="always", full_every=4, unrotated="without window",
    ),
    "glm4": TransformerFamily(
        names=Names(
            post_attention_norm="post_self_attn_layernorm", post_mlp_norm="post_mlp_layernorm",
            gate_up="mlp.gate_up_proj",
        ),
        biases=dict.fromkeys(("q", "k", "v"), "attention_bias"), biased=True,
        head_dim=128, rotary_share=0.5,
    ),
    "cohere2": TransformerFamily(
        norm="layer-no-bias", order="parallel", single_norm=True, tied=True,
        biases=dict.fromkeys(("q", "k", "v", "out"), "attention_bias"),
        window="always", full_every=4, unrotated="without window",
    ),
    "gpt2": TransformerFamily(
        names=_GPT2_NAMES,
        fields={"hidden_size": "n_embd", "num_hidden_layers": "n_layer",
                "num_attention_heads": "n_head", "intermediate_size": "n_inner",
                "max_position_embeddings": "n_positions", "hidden_act": "activation_function"},
        norm="layer", gated=False, biases=ALL_BIASES, positions="learned", activation="gelu_new",
        tied=True, transposed=True, inner_multiple=4, architecture="LMHeadModel",
        only={"add_cross_attention": False},
    ),
    "gpt_neox": TransformerFamily(
        names=_NEOX_NAMES, norm="layer", order="parallel", gated=False, activation="gelu",
        biases=ALL_BIASES, head="embed_out", rotary_share=0.25,
    ),
    "opt": TransformerFamily(
        names=OPT_NAMES, fields={"intermediate_size": "ffn_dim",
                                  "hidden_act": "activation_function"},
        norm="layer", gated=False, biases=dict.fromkeys(ALL_BIASES, "enable_bias"),
        biased=True, positions="learned", position_offset=2, activation="relu", tied=True,
        only={"do_layer_norm_before": True, "word_embed_proj_dim": "=hidden_size"},
    ),
}  # fmt: skip
