"""A GGUF file without its tensors: a small Llama, as llama.cpp writes one."""

import struct
from typing import Any

F32, Q4_K = 0, 12
Q4_K_BYTES = 144 / 256
Tensors = dict[str, tuple[tuple[int, ...], int]]
"""Shape, the extent that varies fastest last, and type of each tensor."""
METADATA: dict[str, Any] = {
    "general.architecture": "llama", "llama.block_count": 2, "llama.embedding_length": 256,
    "llama.feed_forward_length": 512, "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2, "llama.context_length": 128,
    "tokenizer.ggml.tokens": ["a", "bc"],
}  # fmt: skip


def tensors(experts: int = 0) -> Tensors:
    """A Llama of two blocks, its head tied, its matrices of 4.5 bits an element."""
    found: Tensors = {"token_embd.weight": ((100, 256), Q4_K), "output_norm.weight": ((256,), F32)}
    kind, several = ("_exps", (experts,)) if experts else ("", ())
    for layer in range(2):
        block = {"attn_norm": (256,), "ffn_norm": (256,), "attn_q": (256, 256),
                 "attn_k": (128, 256), "attn_v": (128, 256), "attn_output": (256, 256),
                 f"ffn_gate{kind}": (*several, 512, 256), f"ffn_up{kind}": (*several, 512, 256),
                 f"ffn_down{kind}": (*several, 256, 512)}  # fmt: skip
        if experts:
            block["ffn_gate_inp"] = (experts, 256)
        found |= {f"blk.{layer}.{name}.weight": (shape, F32 if "norm" in name else Q4_K)
                  for name, shape in block.items()}  # fmt: skip
    return found


DEEPSEEK: dict[str, Any] = {
    "general.architecture": "deepseek2", "deepseek2.block_count": 2,
    "deepseek2.embedding_length": 256, "deepseek2.feed_forward_length": 512,
    "deepseek2.attention.head_count": 4, "deepseek2.attention.head_count_kv": 1,
    "deepseek2.context_length": 128, "deepseek2.attention.q_lora_rank": 256,
    "deepseek2.attention.kv_lora_rank": 256, "deepseek2.attention.key_length": 320,
    "deepseek2.attention.value_length": 256, "deepseek2.attention.key_length_mla": 192,
    "deepseek2.attention.value_length_mla": 128, "deepseek2.rope.dimension_count": 64,
    "deepseek2.leading_dense_block_count": 1, "deepseek2.expert_count": 8,
    "deepseek2.expert_used_count": 2, "deepseek2.expert_shared_count": 1,
    "deepseek2.expert_feed_forward_length": 256,
}  # fmt: skip


def deepseek_tensors(halves: bool) -> Tensors:
    """A DeepSeek-V3 of a dense block and one of experts; ``halves``: as newer files have it."""
    found: Tensors = {"token_embd.weight": ((100, 256), Q4_K), "output_norm.weight": ((256,), F32),
                      "output.weight": ((100, 256), Q4_K)}  # fmt: skip
    attention = {
        "attn_norm": (256,), "ffn_norm": (256,), "attn_q_a": (256, 256), "attn_q_a_norm": (256,),
        "attn_q_b": (4 * 192, 256), "attn_kv_a_mqa": (256 + 64, 256), "attn_kv_a_norm": (256,),
        "attn_output": (256, 4 * 128),
    }  # fmt: skip
    split = {"attn_k_b": (4, 256, 128), "attn_v_b": (4, 128, 256)}
    attention |= split if halves else {"attn_kv_b": (4 * (128 + 128), 256)}
    dense = {"ffn_gate": (512, 256), "ffn_up": (512, 256), "ffn_down": (256, 512)}
    sparse = {f"ffn_{part}_exps": (8, 256, 256) for part in ("gate", "up", "down")}
    sparse |= {f"ffn_{part}_shexp": (256, 256) for part in ("gate", "up", "down")}
    sparse |= {"ffn_gate_inp": (8, 256)}
    for layer, block in enumerate(({**attention, **dense}, {**attention, **sparse})):
        found |= {f"blk.{layer}.{name}.weight": (shape, F32 if "norm" in name or "_k_b" in name
                  else Q4_K) for name, shape in block.items()}  # fmt: skip
    found["blk.1.exp_probs_b.bias"] = ((8,), F32)
    return found


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def metadatum(name: str, value: Any) -> bytes:
    if isinstance(value, str):
        return text(name) + struct.pack("<I", 8) + text(value)
    if isinstance(value, list):
        items = b"".join(map(text, value))
        return text(name) + struct.pack("<IIQ", 9, 8, len(value)) + items
    return text(name) + struct.pack("<II", 4, value)


def content(metadata: dict[str, Any], arrays: Tensors, version: int = 3) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, len(arrays), len(metadata))
    body = b"".join(metadatum(*each) for each in metadata.items())
    for name, (shape, kind) in arrays.items():
        sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape[::-1])
        body += text(name) + sizes + struct.pack("<IQ", kind, 0)
    return head + body
