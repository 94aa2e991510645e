"""GGUF files of llama.cpp as `OpGraph`: from the header, each tensor with its quantised bytes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any

from go_rl.core.errors import ReadError, nearest
from go_rl.core.graph.element_type import ElementType
from go_rl.core.graph.op_graph import OpGraph
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.hf.build import NetworkFile, build_graph
from go_rl.graphs.readers.hf.families.known import FAMILIES
from go_rl.graphs.readers.hf.family import Names, TransformerFamily
from go_rl.graphs.readers.hf.gguf.gguf_header import GgufHeader, read_gguf_header
from go_rl.graphs.readers.hf.model_config import ModelConfig

RESULT_BYTES = 2.0
"""Bytes of an element between operators: float16."""
ARCHITECTURES = {"llama": "llama", "qwen2": "qwen2", "qwen3": "qwen3", "gemma": "gemma",
                 "gemma2": "gemma2", "gemma3": "gemma3_text", "phi3": "phi3",
                 "qwen2moe": "qwen2_moe", "qwen3moe": "qwen3_moe",
                 "deepseek2": "deepseek_v2"}  # fmt: skip
"""Family by ``general.architecture``; a llama with experts is a Mixtral, a deepseek2 with biases of
experts a DeepSeek-V3."""
_FIELDS = {
    "hidden_size": "embedding_length",
    "num_hidden_layers": "block_count",
    "intermediate_size": "feed_forward_length",
    "num_attention_heads": "attention.head_count",
    "num_key_value_heads": "attention.head_count_kv",
    "head_dim": "attention.key_length",
    "max_position_embeddings": "context_length",
    "sliding_window": "attention.sliding_window",
    "num_local_experts": "expert_count",
    "num_experts": "expert_count",
    "num_experts_per_tok": "expert_used_count",
    "moe_intermediate_size": "expert_feed_forward_length",
    "shared_expert_intermediate_size": "expert_shared_feed_forward_length",
    "n_shared_experts": "expert_shared_count",
    "first_k_dense_replace": "leading_dense_block_count",
    "q_lora_rank": "attention.q_lora_rank",
    "kv_lora_rank": "attention.kv_lora_rank",
    "qk_rope_head_dim": "rope.dimension_count",
}
"""Metadata, after the architecture and a dot, by field of a configuration."""
BLOCK_TENSORS = {
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.qkv_proj": "attn_qkv",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm",
    "pre_feedforward_layernorm": "ffn_norm",
    "post_feedforward_layernorm": "post_ffw_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.gate_up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "mlp.gate": "ffn_gate_inp",
    "mlp.experts.gate_proj": "ffn_gate_exps",
    "mlp.experts.up_proj": "ffn_up_exps",
    "mlp.experts.down_proj": "ffn_down_exps",
    "mlp.shared_expert_gate": "ffn_gate_inp_shexp",
    "mlp.shared_experts.gate_proj": "ffn_gate_shexp",
    "mlp.shared_experts.up_proj": "ffn_up_shexp",
    "mlp.shared_experts.down_proj": "ffn_down_shexp",
    "self_attn.q_a_proj": "attn_q_a",
    "self_attn.q_a_layernorm": "attn_q_a_norm",
    "self_attn.q_b_proj": "attn_q_b",
    "self_attn.kv_a_proj_with_mqa": "attn_kv_a_mqa",
    "self_attn.kv_a_layernorm": "attn_kv_a_norm",
    "self_attn.kv_b_proj": "attn_kv_b",
}
"""Tensors by the modules of a block, each expert without its number."""
OUTER_TENSORS = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
}
"""Tensors by the modules outside all blocks."""
_HALVES = ("attn_k_b", "attn_v_b")
"""Two tensors that newer files have for ``attn_kv_b``."""
_EXPERTS = Names(router="mlp.gate", expert="mlp.experts.{}")


def read_gguf(path: str | Path, dims: Mapping[str, int] | None = None) -> OpGraph:
    """Read the header of the GGUF file at ``path``; dims as in `read_hf`.

    Raises:
        ReadError: a damaged header, an unknown architecture, metadata missing or wrong, or tensors
            that do not fit it.
    """
    path = Path(path)
    header = read_gguf_header(path)
    config, family = _configuration(str(path), header)
    stored = _Stored(str(path), header, bool(family.names.post_attention_norm))
    notes = ["float16 between operators; weights as they are stored"]
    source = NetworkFile(
        "gguf",
        path.stem,
        config,
        family,
        RESULT_BYTES,
        ElementType.FLOAT16,
        stored.others,
        stored.itemsize,
    )
    return build_graph(source, dims or {}, notes)


def _configuration(where: str, header: GgufHeader) -> tuple[ModelConfig, TransformerFamily]:
    found = header.metadata.get("general.architecture")
    if found not in ARCHITECTURES:
        raise ReadError(
            f"{where}: general.architecture {found!r} is not read{nearest(found, ARCHITECTURES)} "
            f"Known are {', '.join(ARCHITECTURES)}"
        )
    kind = ARCHITECTURES[found]
    if kind == "llama" and header.metadata.get("llama.expert_count"):
        family = replace(FAMILIES["mixtral"], names=_EXPERTS)
    elif any(name.endswith(".exp_probs_b.bias") for name in header.tensors):
        family = FAMILIES["deepseek_v3"]
    else:
        family = FAMILIES[kind]
    aliases = {field: f"{found}.{name}" for field, name in _FIELDS.items()}
    table = header.tensors.get("token_embd.weight")
    if table is None:
        raise ReadError(f"{where}: no tensor 'token_embd.weight'")
    fields: dict[str, Any] = {
        **header.metadata,
        "vocab_size": table.shape[0],
        "tie_word_embeddings": "output.weight" not in header.tensors,
        "attention_bias": "blk.0.attn_q.bias" in header.tensors,
    }
    if family.experts:
        aliases[family.experts] = aliases["num_experts"]
    config = ModelConfig(where, fields, aliases)
    return (_with_heads(config, found) if family.latent else config), family


def _with_heads(config: ModelConfig, prefix: str) -> ModelConfig:
    """Add the channels of a head: newer files keep those of the latent vectors elsewhere."""
    key, value = (
        next((name for name in (f"{stem}_mla", stem) if config.has(name)), stem)
        for stem in (f"{prefix}.attention.key_length", f"{prefix}.attention.value_length")
    )
    rotated = config.count("qk_rope_head_dim")
    plain = config.count(key, least=rotated + 1) - rotated
    heads = {"qk_nope_head_dim": plain, "v_head_dim": config.count(value)}
    return replace(config, fields={**config.fields, **heads})


@dataclass(frozen=True)
class _Stored:
    """Tensors of a file, by the names that safetensors have."""

    where: str
    header: GgufHeader
    has_sandwich: bool
    """Whether the normalisation after attention comes before the sum."""

    def name(self, name: str) -> str:
        """Return the name in the file."""
        module, _, part = name.rpartition(".")
        if module in OUTER_TENSORS:
            return f"{OUTER_TENSORS[module]}.{part}"
        layer, _, inside = module.removeprefix("model.layers.").partition(".")
        if part == "e_score_correction_bias":
            return f"blk.{layer}.exp_probs_b.bias"
        inside = re.sub(r"experts\.\d+", "experts", inside).replace("_expert.", "_experts.")
        found = BLOCK_TENSORS.get(inside, inside)
        if self.has_sandwich and inside == "post_attention_layernorm":
            found = "post_attention_norm"
        return f"blk.{layer}.{found}.{part}"

    def itemsize(self, name: str, shape: tuple[int, ...]) -> float:
        """Return bytes of an element of an array, which must be in the file in this shape."""
        stored = self.name(name)
        halves = [t for t in map(self.header.tensors.get, self._halves(stored)) if t is not None]
        if halves and sum(prod(half.shape) for half in halves) == prod(shape):
            return sum(half.num_bytes for half in halves) / prod(shape)
        if stored not in self.header.tensors:
            raise ReadError(
                f"{self.where}: no tensor {stored!r}{nearest(stored, self.header.tensors)}"
            )
        tensor = self.header.tensors[stored]
        there = tensor.shape[1:] if "_exps." in stored else tensor.shape
        if prod(there) != prod(shape) or there[-1] != shape[-1]:
            raise ReadError(
                f"{self.where}: tensor {stored!r} has shape {list(tensor.shape)}, and the metadata "
                f"make it {list(shape)}"
            )
        return tensor.itemsize

    def _halves(self, stored: str) -> list[str]:
        """Return names of the tensors that a file may have in place of one."""
        return [stored.replace("attn_kv_b", half) for half in _HALVES if "attn_kv_b" in stored]

    def others(self, arrays: Mapping[str, Tensor], is_part: bool) -> list[str]:
        """Return a note of the tensors that the graph does not have."""
        names = [self.name(each) for each in arrays]
        names += [half for each in names for half in self._halves(each)]
        left = sorted(set(self.header.tensors).difference(names))
        shown = ", ".join(left[:3])
        return [f"{len(left)} tensors not in the graph: {shown}"] if left else []
