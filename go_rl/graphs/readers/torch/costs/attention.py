"""FLOP of attention and of recurrent cells, forward and backward."""

from __future__ import annotations

import math
from collections.abc import Callable

from go_rl.graphs.readers import decompositions as dense
from go_rl.graphs.readers.cost_rules import Costs, Formula
from go_rl.graphs.readers.torch.call import TorchCall

Sizes = tuple[int, int, int, int, int]
"""Heads of all sequences, queries, keys, depth of keys, depth of values."""
BACKWARD_FLOPS = 8.0
"""FLOP a score of the backward pass beside its products: softmax again, its gradient, scaling."""


def sizes(call: TorchCall) -> Sizes:
    """Return heads of all sequences, queries, keys, and the depths of keys and of values.

    Operands are ``[..., heads, queries, depth]``.
    """
    query, key, value = (call.operand(name).shape for name in ("query", "key", "value"))
    return math.prod(query[:-2]), query[-2], key[-2], query[-1], value[-1]


def sequence_first_sizes(call: TorchCall) -> Sizes:
    """Return `sizes` of operands ``[batch, queries, heads, depth]``, or ``[tokens, heads, depth]``
    of sequences one after the other, each at most as long as the operator is told."""
    query, key, value = (call.operand(name).shape for name in ("query", "key", "value"))
    batch = query[0] if len(query) == 4 else 1
    longest = call.get("max_k", call.get("max_seqlen_k"))
    packed = len(query) == 3 and isinstance(longest, int)
    return batch * query[-2], query[-3], longest if packed else key[-3], query[-1], value[-1]


def attention(read: Callable[[TorchCall], Sizes]) -> Formula:
    """`decompositions.attention`, with a FLOP a score for a mask."""

    def flops(call: TorchCall) -> float:
        masked = any(map(call.has, ("attn_mask", "attn_bias", "bias"))) or call.get("is_causal")
        return dense.attention(*read(call), int(bool(masked)))

    return flops


def attention_backward(read: Callable[[TorchCall], Sizes]) -> Formula:
    """Scores again, the gradients of values, probabilities, queries and keys: 5 products."""

    def flops(call: TorchCall) -> float:
        heads, queries, keys, depth, depth_value = read(call)
        return heads * queries * keys * (6.0 * depth + 4.0 * depth_value + BACKWARD_FLOPS)

    return flops


def multi_head_attention(call: TorchCall) -> float:
    """Projections of queries, keys and values, attention, and the projection of the result."""
    query, key = call.operand("query").shape, call.operand("key").shape
    heads, width = call.get("num_head", call.get("num_heads", 1)), call.get("embed_dim", query[-1])
    rows, columns = math.prod(query[:-1]), math.prod(key[:-1])
    projections = 2.0 * width * width * (2 * rows + 2 * columns) + width * (2 * rows + 2 * columns)
    depth, batch = width // max(1, heads), query[0]
    return projections + dense.attention(
        batch * heads, query[1], key[1], depth, depth, int(call.has("mask"))
    )


def encoder_layer(call: TorchCall) -> float:
    """`multi_head_attention` of one input, two products, two normalisations, two sums."""
    x, width = call.operand("src").shape, call.get("embed_dim", 1)
    rows, hidden = math.prod(x[:-1]), call.operand("ffn_weight_1").shape[0]
    heads = max(1, call.get("num_heads", 1))
    products = 2.0 * rows * width * (4 * width + 2 * hidden)
    scores = dense.attention(x[0] * heads, x[1], x[1], width // heads, width // heads, 1)
    return products + scores + rows * (5.0 * width + 2.0 * hidden + 16.0 * width)


def cell(layer: str) -> Formula:
    """One step of a recurrent layer."""

    def flops(call: TorchCall) -> float:
        x, hidden = call.operand("input"), call.operand("w_hh").shape[-1]
        each = dense.recurrent_step(layer, x.shape[-1], hidden, call.has("b_ih"))
        return x.size // max(1, x.shape[-1]) * each

    return flops


ATTENTION: dict[str, Costs] = {
    "scaled_dot_product_attention _scaled_dot_product_attention_math"
    " _scaled_dot_product_attention_math_for_mps _scaled_dot_product_cudnn_attention"
    " _scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention"
    " _scaled_dot_product_flash_attention_for_cpu"
    " _scaled_dot_product_fused_attention_overrideable": attention(sizes),
    "_scaled_dot_product_cudnn_attention_backward"
    " _scaled_dot_product_efficient_attention_backward"
    " _scaled_dot_product_flash_attention_backward"
    " _scaled_dot_product_flash_attention_for_cpu_backward"
    " _scaled_dot_product_fused_attention_overrideable_backward": attention_backward(sizes),
    "_cudnn_attention_forward _efficient_attention_forward _flash_attention_forward": attention(
        sequence_first_sizes
    ),
    "_cudnn_attention_backward _efficient_attention_backward _flash_attention_backward":
        attention_backward(sequence_first_sizes),
    "_native_multi_head_attention": multi_head_attention,
    "_transformer_encoder_layer_fwd": encoder_layer,
    "gru_cell": cell("GRU"),
    "lstm_cell": cell("LSTM"),
    "rnn_relu_cell rnn_tanh_cell": cell("RNN"),
}  # fmt: skip
"""FLOP of attention, and of single steps of recurrent layers."""
