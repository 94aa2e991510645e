"""Result types of ONNX Runtime's fused attention: the attended values and the cache of keys.

Letters: B batch, S queries, P keys in the cache, H heads, G heads of keys and values, D width of a
head. Source: ``docs/ContribOperators.md`` of ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Sequence

from go_rl.graphs.readers.onnx.shapes.rule import Attributes, Inputs, Result, Rule, given


def packed(past: int, element_of: int = 0) -> Rule:
    """`Attention` and `QAttention`: queries, keys and values by one product; ``past`` operand."""

    def rule(attributes: Attributes, inputs: Inputs) -> Sequence[Result | None]:
        shape, element = inputs[0][1], inputs[element_of][0]
        total, heads = inputs[1][1][-1], attributes["num_heads"]
        widths = attributes.get("qkv_hidden_sizes") or [total // 3] * 3
        batch, length = shape[0], shape[-2]
        cached = given(inputs, past)
        keys = length + (cached[1][3] if cached else 0)
        present = (element, (2, batch, heads, keys, widths[2] // heads))
        return [(element, (*shape[:-1], widths[2])), present]

    return rule


def multi_head(past: int) -> Rule:
    """Query (B, S, H * D) with keys and values, or all three packed as (B, S, H, 3, D)."""

    def rule(attributes: Attributes, inputs: Inputs) -> Sequence[Result | None]:
        element, query = inputs[0]
        key, value = given(inputs, 1), given(inputs, 2)
        batch, length = query[:2]
        heads, width, depth, keys = attributes["num_heads"], query[-1], query[-1], length
        depth //= heads
        if len(query) == 5:
            width, depth = query[2] * query[4], query[4]
        if key and len(key[1]) == 4:  # (B, H, P, D)
            keys = key[1][2]
        elif key:
            keys = key[1][1]
        if value:
            width = value[1][1] * value[1][3] if len(value[1]) == 4 else value[1][2]
        cached = given(inputs, past)
        keys += cached[1][2] if cached else 0
        presents = [(element, (batch, heads, keys, d)) for d in (depth, width // heads)]
        return [(element, (batch, length, width)), *presents]

    return rule


def grouped(attributes: Attributes, inputs: Inputs) -> Sequence[Result | None]:
    """`GroupQueryAttention`: G heads of keys serve H of queries.

    The cache grows by the new keys, an upper bound: a buffer with room for them keeps its size.
    """
    element, (batch, length, width) = inputs[0]
    heads, groups = attributes["num_heads"], attributes["kv_num_heads"]
    if not given(inputs, 1):
        width = width * heads // (heads + 2 * groups)
    past = given(inputs, 3)
    keys = max(length, past[1][2] + length if past else 0)
    cache = (past[0] if past else element, (batch, groups, keys, width // heads))
    return [(element, (batch, length, width)), cache, cache]


def decoder(attributes: Attributes, inputs: Inputs) -> Sequence[Result | None]:
    """`DecoderAttention`: query (S, B, width); caches of keys and of values."""
    element, (_, batch, width) = inputs[0]
    heads = attributes["num_heads"]
    cache = (element, (batch, heads, inputs[1][1][0], width // heads))
    return [inputs[0], cache, cache]


ATTENTION_SHAPES: dict[str, Rule] = {
    "Attention": packed(past=4),
    "DecoderAttention": decoder,
    "DecoderMaskedMultiHeadAttention": multi_head(past=5),
    "GroupQueryAttention": grouped,
    "MultiHeadAttention": multi_head(past=6),
    "PackedAttention": packed(past=10),
    "QAttention": packed(past=8, element_of=2),
    "SparseAttention": grouped,
}
"""Result types by operator type."""
