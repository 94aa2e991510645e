"""The families of transformers that are read, by ``model_type``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from go_rl.graphs.readers.hf.family import Names, TransformerFamily

_LLAMA = TransformerFamily(
    biases={"q": "attention_bias", "k": "attention_bias", "v": "attention_bias",
            "out": "attention_bias", "mlp": "mlp_bias"},
)  # fmt: skip
_QWEN2 = TransformerFamily(biases={"q": True, "k": True, "v": True}, window="switched")
_QK_NORM = Names(q_norm="self_attn.q_norm", k_norm="self_attn.k_norm")
_QWEN3 = replace(_LLAMA, names=_QK_NORM, head_dim=128, window="switched")
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
_EXPERTS = Names(router="mlp.gate", expert="mlp.experts.{}")
_ALL_BIASES: dict[str, bool | str] = dict.fromkeys(("q", "k", "v", "out", "mlp"), True)
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
_OPT_NAMES = Names(
    root="model.decoder",
    positions="embed_positions",
    final_norm="final_layer_norm",
    attention_norm="self_attn_layer_norm",
    out="self_attn.out_proj",
    mlp_norm="final_layer_norm",
    up="fc1",
    down="fc2",
)
_BERT_NAMES = Names(
    root="bert",
    embed="embeddings.word_embeddings",
    positions="embeddings.position_embeddings",
    token_types="embeddings.token_type_embeddings",
    embed_norm="embeddings.LayerNorm",
    layers="encoder.layer",
    final_norm="",
    attention_norm="attention.output.LayerNorm",
    q="attention.self.query",
    k="attention.self.key",
    v="attention.self.value",
    out="attention.output.dense",
    mlp_norm="output.LayerNorm",
    up="intermediate.dense",
    down="output.dense",
)
_BERT = TransformerFamily(
    names=_BERT_NAMES, kind="encoder", norm="layer", order="post", gated=False, biases=_ALL_BIASES,
    positions="learned", activation="gelu", tied=True, head="cls.predictions",
    architecture="ForMaskedLM",
    only={"position_embedding_type": "absolute", "is_decoder": False},
)  # fmt: skip
_ROBERTA = replace(_BERT, names=replace(_BERT_NAMES, root="roberta"), head="lm_head",
                   reserved=2)  # fmt: skip


def _t5_names(root: str, mlp: str, cross: bool) -> Names:
    def attention(prefix: str) -> tuple[str, str, str, str]:
        return f"{prefix}.q", f"{prefix}.k", f"{prefix}.v", f"{prefix}.o"

    q, k, v, out = attention("layer.0.SelfAttention")
    return Names(
        root=root,
        layers="block",
        final_norm="final_layer_norm",
        attention_norm="layer.0.layer_norm",
        q=q,
        k=k,
        v=v,
        out=out,
        bias_table="layer.0.SelfAttention.relative_attention_bias",
        cross_norm="layer.1.layer_norm" if cross else "",
        cross=attention("layer.1.EncDecAttention") if cross else None,
        mlp_norm=f"{mlp}.layer_norm",
        gate=f"{mlp}.DenseReluDense.wi_0",
        up=f"{mlp}.DenseReluDense.wi_1",
        down=f"{mlp}.DenseReluDense.wo",
    )


_T5 = TransformerFamily(
    names=_t5_names("decoder", "layer.2", True),
    encoder=_t5_names("encoder", "layer.1", False),
    kind="encoder-decoder",
    fields={"hidden_size": "d_model", "num_hidden_layers": "num_layers", "head_dim": "d_kv",
            "num_attention_heads": "num_heads", "intermediate_size": "d_ff",
            "max_position_embeddings": "n_positions", "hidden_act": "feed_forward_proj"},
    positions="relative",
    activation="relu",
    tied=True,
    architecture="ForConditionalGeneration",
)  # fmt: skip
_VIT_NAMES = Names(
    root="vit",
    embed="embeddings.patch_embeddings.projection",
    positions="embeddings.position_embeddings",
    layers="encoder.layer",
    final_norm="layernorm",
    attention_norm="layernorm_before",
    q="attention.attention.query",
    k="attention.attention.key",
    v="attention.attention.value",
    out="attention.output.dense",
    mlp_norm="layernorm_after",
    up="intermediate.dense",
    down="output.dense",
)
_VIT = TransformerFamily(
    names=_VIT_NAMES, kind="image", norm="layer", gated=False, positions="learned",
    activation="gelu", biases={**_ALL_BIASES, "q": "qkv_bias", "k": "qkv_bias", "v": "qkv_bias"},
    head="classifier", architecture="ForImageClassification", class_token="embeddings.cls_token",
)  # fmt: skip
_WHISPER_NAMES = replace(
    _OPT_NAMES,
    final_norm="layer_norm",
    cross_norm="encoder_attn_layer_norm",
    cross=("encoder_attn.q_proj", "encoder_attn.k_proj", "encoder_attn.v_proj",
           "encoder_attn.out_proj"),
)  # fmt: skip
_WHISPER = TransformerFamily(
    names=_WHISPER_NAMES,
    encoder=replace(_WHISPER_NAMES, root="model.encoder", cross_norm="", cross=None),
    kind="speech",
    fields={"hidden_size": "d_model", "num_hidden_layers": "decoder_layers",
            "num_attention_heads": "decoder_attention_heads", "hidden_act": "activation_function",
            "intermediate_size": "decoder_ffn_dim",
            "max_position_embeddings": "max_target_positions"},
    norm="layer",
    gated=False,
    biases={"q": True, "v": True, "out": True, "mlp": True},
    positions="learned",
    activation="gelu",
    tied=True,
    head="proj_out",
    architecture="ForConditionalGeneration",
)  # fmt: skip
_DEEPSEEK = replace(
    _LLAMA, experts="n_routed_experts", sparse_from="first_k_dense_replace",
    shared_experts="n_shared_experts", names=replace(_EXPERTS, shared="mlp.shared_experts"),
)  # fmt: skip
_DEEPSEEK_V2 = replace(_DEEPSEEK, latent=True, biases=dict.fromkeys(("q", "out"), "attention_bias"))
_DEEPSEEK_V3 = replace(
    _DEEPSEEK_V2, names=replace(_DEEPSEEK.names, router_bias="mlp.gate.e_score_correction_bias")
)
_LLAMA4 = replace(
    _LLAMA,
    names=Names(
        gate="feed_forward.gate_proj", up="feed_forward.up_proj", down="feed_forward.down_proj",
        router="feed_forward.router", expert="feed_forward.experts", stacked=True,
        shared="feed_forward.shared_expert",
    ),
    fields={"intermediate_size": "intermediate_size_mlp", "expert_size": "intermediate_size",
            "sliding_window": "attention_chunk_size",
            "sliding_window_pattern": "no_rope_layer_interval",
            "decoder_sparse_step": "interleave_moe_layer_step"},
    experts="num_local_experts", moe_inner="expert_size", shared_inner="expert_size",
    window="always", full_every=4, head_dim=128,
)  # fmt: skip

FAMILIES: Mapping[str, TransformerFamily] = {
    "llama": _LLAMA,
    "mistral": TransformerFamily(window="always"),
    "qwen2": _QWEN2,
    "qwen3": _QWEN3,
    "gemma": replace(_GEMMA, fields={}),
    "gemma2": replace(_GEMMA, names=_SANDWICH, window="always", full_every=2),
    "gemma3_text": replace(
        _GEMMA, names=replace(_SANDWICH, q_norm=_QK_NORM.q_norm, k_norm=_QK_NORM.k_norm),
        window="always", full_every=6,
    ),
    "phi": TransformerFamily(
        names=Names(final_norm="final_layernorm", out="self_attn.dense", up="mlp.fc1",
                    down="mlp.fc2"),
        norm="layer", order="parallel", single_norm=True, gated=False, activation="gelu_new",
        rotary_share=0.5, biases={**_ALL_BIASES, "head": True},
        only={"qk_layernorm": False},
    ),
    "phi3": TransformerFamily(names=Names(qkv="self_attn.qkv_proj", gate_up="mlp.gate_up_proj"),
                   window="always"),
    "gpt2": TransformerFamily(
        names=_GPT2_NAMES,
        fields={"hidden_size": "n_embd", "num_hidden_layers": "n_layer",
                "num_attention_heads": "n_head", "intermediate_size": "n_inner",
                "max_position_embeddings": "n_positions", "hidden_act": "activation_function"},
        norm="layer", gated=False, biases=_ALL_BIASES, positions="learned", activation="gelu_new",
        tied=True, transposed=True, inner_multiple=4, architecture="LMHeadModel",
        only={"add_cross_attention": False},
    ),
    "gpt_neox": TransformerFamily(
        names=_NEOX_NAMES, norm="layer", order="parallel", gated=False, activation="gelu",
        biases=_ALL_BIASES, head="embed_out", rotary_share=0.25,
    ),
    "opt": TransformerFamily(
        names=_OPT_NAMES, fields={"intermediate_size": "ffn_dim",
                                  "hidden_act": "activation_function"},
        norm="layer", gated=False, biases=dict.fromkeys(_ALL_BIASES, "enable_bias"),
        positions="learned", position_offset=2, activation="relu", tied=True,
        only={"do_layer_norm_before": True, "word_embed_proj_dim": "=hidden_size"},
    ),
    "bert": _BERT,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
    "t5": _T5,
    "mt5": replace(_T5, tied=False),
    "vit": _VIT,
    "whisper": _WHISPER,
    "mixtral": TransformerFamily(
        names=Names(router="block_sparse_moe.gate", expert="block_sparse_moe.experts.{}",
                    expert_parts=("w1", "w3", "w2")),
        experts="num_local_experts", moe_inner="intermediate_size", window="always",
    ),
    "qwen2_moe": replace(
        _QWEN2, experts="num_experts", shared_inner="shared_expert_intermediate_size",
        names=replace(_EXPERTS, shared="mlp.shared_expert", shared_gate="mlp.shared_expert_gate"),
    ),
    "qwen3_moe": replace(
        _QWEN3, experts="num_experts",
        names=replace(_EXPERTS, q_norm=_QK_NORM.q_norm, k_norm=_QK_NORM.k_norm),
    ),
    "deepseek": _DEEPSEEK,
    "deepseek_v2": _DEEPSEEK_V2,
    "deepseek_v3": _DEEPSEEK_V3,
    "kimi_k2": _DEEPSEEK_V3,
    "llama4_text": _LLAMA4,
}  # fmt: skip
