from __future__ import annotations

import random
import struct
from math import prod
from pathlib import Path
from typing import Any

import pytest

from go_rl.core import GoRLError, ReadError
from go_rl.graphs.readers.file_errors import UnforeseenError
from go_rl.graphs.readers.load import load

F32, Q4_K = 0, 12
Q4_K_BYTES = 144 / 256
MUTATIONS = 300
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


def write(folder: Path, data: bytes) -> Path:
    path = folder / "model.gguf"
    path.write_bytes(data)
    return path


def nbytes(arrays: Tensors) -> float:
    return sum(prod(s) * (4 if kind == F32 else Q4_K_BYTES) for s, kind in arrays.values())


@pytest.mark.parametrize("experts", [0, 4])
def test_weights_have_their_quantised_bytes(tmp_path: Path, experts: int) -> None:
    more = {"llama.expert_count": 4, "llama.expert_used_count": 2} if experts else {}
    arrays = tensors(experts)
    path = write(tmp_path, content({**METADATA, **more}, arrays))
    graph = load(path, {"sequence": 16})
    stored = graph.held_weights.own.sum() + graph.tied_bytes.sum()
    assert stored == pytest.approx(nbytes(arrays), rel=1e-12)
    met = 2 if experts else 1
    layer = 2 * 256 * 256 + 2 * 256 * 128 + met * 3 * 256 * 512 + experts * 256
    products = 2 * 16 * (100 * 256 + 2 * layer)
    assert graph.flops.sum() == pytest.approx(products + 2 * 4 * 256 * 16 * 16, rel=0.03)
    node = graph.index["model/layers.1/self_attn/q_proj"]
    assert graph.weight_itemsize[node] == Q4_K_BYTES
    assert graph.output_itemsize[node] == 2


def test_decode_keeps_the_cache_in_float16(tmp_path: Path) -> None:
    graph = load(write(tmp_path, content(METADATA, tensors())), {"cache": 100})
    node = graph.index["model/layers.0/self_attn/attention"]
    assert graph.weight_bytes[node] == 2 * 100 * 2 * 64 * 2


@pytest.mark.parametrize(
    ("metadata", "arrays", "said"),
    [
        ({"general.architecture": "lama"}, {}, "'lama' is not read; did you mean 'llama'"),
        ({"llama.block_count": 0}, {}, "llama.block_count is 0; it must be a whole number in"),
        ({"llama.block_count": 3}, {}, "no tensor 'blk.2.attn_norm.weight'"),
        ({"llama.attention.head_count_kv": ["1"]}, {}, "head_count_kv is 'an array of 1'"),
        ({}, {"blk.1.attn_q.weight": ((128, 256), F32)}, r"has shape \[128, 256\], and the meta"),
        ({}, {"token_embd.weight": ((100, 100), Q4_K)}, "rows of 100 are no blocks of 256"),
        ({}, {"token_embd.weight": ((100, 256), 99)}, "has type 99, which is not known"),
    ],
)
def test_what_does_not_fit_is_named(
    tmp_path: Path, metadata: dict[str, Any], arrays: Tensors, said: str
) -> None:
    path = write(tmp_path, content({**METADATA, **metadata}, {**tensors(), **arrays}))
    with pytest.raises(ReadError, match=said) as caught:
        load(path)
    assert str(path) in str(caught.value)


def test_versions(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="GGUF version 9; known are 2, 3"):
        load(write(tmp_path, content(METADATA, tensors(), version=9)))


def test_damaged_headers_are_refused(tmp_path: Path) -> None:
    draw, whole = random.Random(0), content(METADATA, tensors())
    for _ in range(MUTATIONS):
        data = bytearray(whole)
        for _ in range(draw.randint(1, 3)):
            data[draw.randrange(4, len(data))] = draw.randrange(256)
        if draw.random() < 0.3:
            del data[draw.randrange(4, len(data)) :]
        try:
            load(write(tmp_path, bytes(data)))
        except UnforeseenError as error:
            pytest.fail(str(error))
        except GoRLError:
            continue
