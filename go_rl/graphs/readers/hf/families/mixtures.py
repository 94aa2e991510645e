"""Decoders with mixtures of experts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from go_rl.graphs.readers.hf.families.dense import LLAMA, QK_NORM, QWEN2, QWEN3
from go_rl.graphs.readers.hf.family import Names, TransformerFamily

_EXPERTS = Names(router="mlp.gate", expert="mlp.experts.{}")
_DEEPSEEK = replace(
    LLAMA, experts="n_routed_experts", sparse_from="first_k_dense_replace",
    shared_experts="n_shared_experts", names=replace(_EXPERTS, shared="mlp.shared_experts"),
)  # fmt: skip
_DEEPSEEK_V2 = replace(_DEEPSEEK, latent=True, biases=dict.fromkeys(("q", "out"), "attention_bias"))
_DEEPSEEK_V3 = replace(
    _DEEPSEEK_V2, names=replace(_DEEPSEEK.names, router_bias="mlp.gate.e_score_correction_bias")
)
_LLAMA4 = replace(
    LLAMA,
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
    window="always", full_every=4, unrotated="listed", head_dim=128,
)  # fmt: skip

MIXTURES: Mapping[str, TransformerFamily] = {
    "mixtral": TransformerFamily(
        names=Names(router="block_sparse_moe.gate", expert="block_sparse_moe.experts.{}",
                    expert_parts=("w1", "w3", "w2")),
        experts="num_local_experts", moe_inner="intermediate_size", window="always",
    ),
    "gpt_oss": TransformerFamily(
        names=Names(router="mlp.router", expert="mlp.experts", stacked=True,
                    sinks="self_attn.sinks"),
        biases={**dict.fromkeys(("q", "k", "v", "out"), "attention_bias"), "router": True,
                "expert": True},
        biased=True, experts="num_local_experts", moe_inner="intermediate_size", head_dim=64,
        window="always", full_every=2,
    ),
    "qwen2_moe": replace(
        QWEN2, experts="num_experts", shared_inner="shared_expert_intermediate_size",
        names=replace(_EXPERTS, shared="mlp.shared_expert", shared_gate="mlp.shared_expert_gate"),
    ),
    "qwen3_moe": replace(
        QWEN3, experts="num_experts",
        names=replace(_EXPERTS, q_norm=QK_NORM.q_norm, k_norm=QK_NORM.k_norm),
    ),
    "deepseek": _DEEPSEEK,
    "deepseek_v2": _DEEPSEEK_V2,
    "deepseek_v3": _DEEPSEEK_V3,
    "kimi_k2": _DEEPSEEK_V3,
    "llama4_text": _LLAMA4,
}  # fmt: skip
