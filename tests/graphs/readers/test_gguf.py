from math import prod

import pytest
from graphs.readers.gguf_files import (
    DEEPSEEK,
    F32,
    METADATA,
    Q4_K,
    Q4_K_BYTES,
    Tensors,
    content,
    deepseek_tensors,
    tensors,
)


def nbytes(arrays: Tensors) -> float:
    return sum(prod(s) * (4 if kind == F32 else Q4_K_BYTES) for s, kind in arrays.values())


@pytest.mark.parametrize("experts", [0, 4])
def test_weights_have_their_quantised_bytes(experts, loaded):
    more = {"llama.expert_count": 4, "llama.expert_used_count": 2} if experts else {}
    arrays = tensors(experts)
    graph = loaded(content({**METADATA, **more}, arrays), dims={"sequence": 16})
    stored = graph.held_weights.own.sum() + graph.tied_bytes.sum()
    assert stored == pytest.approx(nbytes(arrays), rel=1e-12)
    met = 2 if experts else 1
    layer = 2 * 256 * 256 + 2 * 256 * 128 + met * 3 * 256 * 512 + experts * 256
    products = 2 * 16 * (100 * 256 + 2 * layer)
    assert graph.flops.sum() == pytest.approx(products + 2 * 4 * 256 * 16 * 16, rel=0.03)
    node = graph.index["model/layers.1/self_attn/q_proj"]
    assert graph.weight_itemsize[node] == Q4_K_BYTES
    assert graph.output_itemsize[node] == 2


@pytest.mark.parametrize("halves", [False, True])
@pytest.mark.parametrize("dims", [{"sequence": 16}, {"cache": 100}])
def test_latent_attention(halves, dims, loaded):
    arrays = deepseek_tensors(halves)
    older = {k: v for k, v in DEEPSEEK.items() if not k.endswith("_mla")}
    older |= {"deepseek2.attention.key_length": 192, "deepseek2.attention.value_length": 128}
    graph = loaded(content(DEEPSEEK if halves else older, arrays), dims=dims)
    # The vector of a token in the cache, in float16, of each block.
    kept = 2 * dims.get("cache", 0) * (256 + 64) * 2
    stored = graph.held_weights.own.sum() + graph.tied_bytes.sum()
    assert stored == pytest.approx(nbytes(arrays) + kept, rel=1e-12)
    assert not any("not in the graph" in note for note in graph.meta["notes"])


@pytest.mark.parametrize(
    ("metadata", "arrays", "said"),
    [
        ({"general.architecture": "lama"}, {}, "'lama' is not read; did you mean 'llama'"),
        ({"llama.block_count": 0}, {}, "llama.block_count is 0; it must be a whole number in"),
        ({"llama.block_count": 3}, {}, "no tensor 'blk.2.attn_norm.weight'"),
        ({"general.architecture": "deepseek2", **DEEPSEEK, "deepseek2.rope.dimension_count": 192},
         deepseek_tensors(True), "key_length_mla is 192; it must be a whole number in 193"),
        (DEEPSEEK, deepseek_tensors(True) | {"blk.0.attn_k_b.weight": ((4, 256, 64), F32)},
         "no tensor 'blk.0.attn_kv_b.weight'"),
        ({"llama.attention.head_count_kv": ["1"]}, {}, "head_count_kv is 'an array of 1'"),
        ({}, {"blk.1.attn_q.weight": ((128, 256), F32)}, r"has shape \[128, 256\], and the meta"),
        ({}, {"token_embd.weight": ((100, 100), Q4_K)}, "rows of 100 are no blocks of 256"),
        ({}, {"token_embd.weight": ((100, 256), 99)}, "has type 99, which is not known"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named(metadata, arrays, said, refused):
    refused(content({**METADATA, **metadata}, {**tensors(), **arrays}), said)
