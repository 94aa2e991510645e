"""Attention to latent keys and values, as operators: "multi-head latent attention".

Keys and values of all heads are products of one vector a token, which is all that a cache keeps,
beside the channels of keys that are rotated by position. A prefill computes keys and values of each
head. With a cache it would compute them of all earlier tokens; their matrices go to the queries and
to the result instead, and the heads attend to the latent vectors themselves. Source: DeepSeek-AI,
"DeepSeek-V2: A Strong, Economical, and Efficient Mixture-of-Experts Language Model", 2024,
section 2.1.

Dimension letters as in `block`; ``l`` latent channels, ``p`` plain and ``r`` rotated channels of a
head, ``v`` channels of its values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.hf.family import BlockSizes, LatentSizes, Names, Tokens
from go_rl.graphs.readers.hf.network import Counted, Held, NetworkBuilder, Shape
from go_rl.graphs.readers.operand import Operand


@dataclass(frozen=True)
class _LatentParts:
    """Operands of attention."""

    query: Operand
    """Queries without position, [b, s, h, p]."""
    rotated_query: Operand
    """Queries with rotary position, [b, s, h, r]."""
    latent: Operand
    """Latent of keys and values, [b, s, l]."""
    rotated_key: Operand
    """Keys with rotary position, [b, s, 1, r]."""


def latent_attention(
    net: NetworkBuilder, names: Names, sizes: BlockSizes, tokens: Tokens, root: str, x: Operand
) -> Operand:
    """Add self-attention: new tokens read the cache, and each other."""
    assert sizes.latent is not None
    scope = f"{root}self_attn."
    rotated, latent = _latents(net, sizes, scope, x), sizes.latent
    query, rotated_query = _queries(net, sizes, scope, x)
    parts = _LatentParts(query, rotated_query, *rotated)
    matrix = net.array(
        f"{scope}kv_b_proj.weight", (sizes.heads * (latent.plain + latent.value), latent.rank)
    )
    attend = _absorbed if tokens.cache else _expanded
    made = attend(net, latent, tokens, scope, parts, matrix)
    return net.linear(root + names.out, made, sizes.hidden, "out" in sizes.biases)


def _queries(
    net: NetworkBuilder, sizes: BlockSizes, scope: str, x: Operand
) -> tuple[Operand, Operand]:
    """Return queries ``[b, s, h, p]`` and, rotated, ``[b, s, h, r]``."""
    latent = sizes.latent
    assert latent is not None
    width = sizes.heads * (latent.plain + latent.rotated)
    if latent.query_rank:
        x = net.linear(f"{scope}q_a_proj", x, latent.query_rank, "q" in sizes.biases)
        x = net.norm(f"{scope}q_a_layernorm", x, "rms")
    whole = net.linear(f"{scope}{'q_b_proj' if latent.query_rank else 'q_proj'}", x, width)
    batch, new = whole.shape[:2]
    rotated = _view(whole, (batch, new, sizes.heads, latent.rotated), 1)
    return (
        _view(whole, (batch, new, sizes.heads, latent.plain)),
        net.rotate(f"{scope}q_rotary", rotated),
    )


def _latents(
    net: NetworkBuilder, sizes: BlockSizes, scope: str, x: Operand
) -> tuple[Operand, Operand]:
    """Return latent vectors ``[b, s, l]`` and the rotated channels of keys ``[b, s, 1, r]``."""
    latent = sizes.latent
    assert latent is not None
    width = latent.rank + latent.rotated
    whole = net.linear(f"{scope}kv_a_proj_with_mqa", x, width, "q" in sizes.biases)
    batch, new = whole.shape[:2]
    rotated = _view(whole, (batch, new, 1, latent.rotated), 1)
    return (
        net.norm(f"{scope}kv_a_layernorm", _view(whole, (batch, new, latent.rank)), "rms"),
        net.rotate(f"{scope}k_rotary", rotated),
    )


def _view(x: Operand, shape: Shape, output: int = 0) -> Operand:
    return replace(x, tensor=Tensor(shape, x.tensor.itemsize), output=output)


def _expanded(
    net: NetworkBuilder,
    latent: LatentSizes,
    tokens: Tokens,
    scope: str,
    parts: _LatentParts,
    matrix: str,
) -> Operand:
    """Attend to keys and values of each head; return ``[b, s, h * v]``."""
    batch, new, heads, plain = parts.query.shape
    width = heads * (plain + latent.value)
    held = Held({"weight": matrix})
    whole = net.add(
        f"{scope}kv_b_proj", "linear", {"input": parts.latent}, (batch, new, width), held
    )
    key = _view(whole, (batch, new, heads, plain))
    value = _view(whole, (batch, new, heads, latent.value), 1)
    depth = plain + latent.rotated
    types = {
        "query": Tensor((batch, heads, new, depth), net.itemsize),
        "key": Tensor((batch, heads, new, depth), net.itemsize),
        "value": Tensor((batch, heads, new, latent.value), net.itemsize),
    }
    operands = {"query": parts.query, "key": key, "value": value,
                "query_rotated": parts.rotated_query, "key_rotated": parts.rotated_key}  # fmt: skip
    return _attention(net, scope, operands, types, (batch, new, heads * latent.value), 0.0)


def _absorbed(
    net: NetworkBuilder,
    latent: LatentSizes,
    tokens: Tokens,
    scope: str,
    parts: _LatentParts,
    matrix: str,
) -> Operand:
    """Attend to the latent vectors, kept and new; return ``[b, s, h * v]``."""
    batch, new, heads, _ = parts.query.shape
    keys, rank, depth = tokens.cache + new, latent.rank, latent.rank + latent.rotated
    query = _by_head(net, f"{scope}kv_b_proj_keys", parts.query, heads, rank, matrix)
    types = {
        "query": Tensor((batch, heads, new, depth), net.itemsize),
        "key": Tensor((batch, 1, keys, depth), net.itemsize),
        "value": Tensor((batch, 1, keys, rank), net.itemsize),
    }
    operands = {"query": query, "key": parts.latent, "query_rotated": parts.rotated_query,
                "key_rotated": parts.rotated_key}  # fmt: skip
    kept = float(batch * tokens.cache * depth) * net.itemsize
    made = _attention(net, scope, operands, types, (batch, new, heads * rank), kept)
    made = _view(made, (batch, new, heads, rank))
    made = _by_head(net, f"{scope}kv_b_proj_values", made, heads, latent.value, matrix)
    return _view(made, (batch, new, heads * latent.value))


def _by_head(
    net: NetworkBuilder, path: str, x: Operand, heads: int, width: int, matrix: str
) -> Operand:
    """Add the product of each head's channels with its part of ``matrix``."""
    batch, new, _, depth = x.shape
    types = {
        "self": Tensor((heads, batch * new, depth), net.itemsize),
        "mat2": Tensor((heads, depth, width), net.stored[matrix].itemsize),
    }
    shape = (batch, new, heads, width)
    moved = x.tensor.nbytes + types["mat2"].nbytes + Tensor(shape, net.itemsize).nbytes
    return net.add(
        path, "bmm", {"self": x, "mat2": types["mat2"]}, shape, Held(others=(matrix,)),
        Counted(moved, types=types),
    )  # fmt: skip


def _attention(
    net: NetworkBuilder, scope: str, operands: dict[str, Operand], types: dict[str, Tensor],
    shape: Shape, kept: float,
) -> Operand:  # fmt: skip
    """Add attention; ``kept`` bytes of earlier tokens stay on the device."""
    arrived = sum(each.tensor.nbytes for each in operands.values())
    given: dict[str, Any] = {**operands, "is_causal": True}
    return net.add(
        f"{scope}attention", "scaled_dot_product_attention", given, shape, Held(state_bytes=kept),
        Counted(arrived + kept + Tensor(shape, net.itemsize).nbytes, types=types),
    )  # fmt: skip
