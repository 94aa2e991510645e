"""FLOP of recurrent layers, attention, resampling and the like: sums over their decomposition."""

from __future__ import annotations

import math

from go_rl.core.errors import ReadError
from go_rl.graphs.readers import decompositions as dense
from go_rl.graphs.readers.cost_rules import sampled
from go_rl.graphs.readers.onnx.call import Call
from go_rl.graphs.readers.onnx.costs.reductions import ceil_log2


def recurrent(call: Call) -> float:
    """A recurrent layer of `GATES`: `decompositions.recurrent_step` of all steps and directions."""
    x, recurrence = call.operand(0), call.operand(2)
    directions, hidden = recurrence.shape[0], recurrence.shape[2]
    each = dense.recurrent_step(call.op, x.shape[2], hidden, call.has(3))
    return x.shape[0] * x.shape[1] * directions * each


def attention(call: Call) -> float:
    """ai.onnx `Attention`: queries, keys and values as 4-D heads or as 3-D with ``*_num_heads``."""
    query, key, value = call.operand(0), call.operand(1), call.operand(2)
    past = call.operand(4).shape[2] if call.has(4) else 0
    if len(query.shape) == 4:
        batch, heads, length, depth = query.shape
        keys, depth_value = key.shape[2] + past, value.shape[3]
    else:
        batch, length, width = query.shape
        heads, groups = call.get("q_num_heads", 1), call.get("kv_num_heads", 1)
        depth, keys = width // heads, key.shape[1] + past
        depth_value = value.shape[2] // groups
    mask = int(call.has(3) or call.get("is_causal", 0))
    return dense.attention(batch * heads, length, keys, depth, depth_value, mask)


def packed_attention(call: Call) -> float:
    """com.microsoft `Attention` and `QAttention`: one product for Q, K and V, then attention."""
    batch, length, width = call.operand(0).shape
    total = call.operand(1).shape[-1]
    depth_value = call.result.shape[-1]
    heads = call.get("num_heads", 1)
    projection = batch * length * total * (2.0 * width + call.has(2))
    depth = (total - depth_value) // 2
    past = call.operand(4).shape[3] if call.op.endswith(".Attention") and call.has(4) else 0
    mask = int(call.has(3)) + int(call.has(5))
    per_head = (depth // heads, depth_value // heads)
    return projection + dense.attention(batch * heads, length, length + past, *per_head, mask)


def multi_head_attention(call: Call) -> float:
    """com.microsoft `MultiHeadAttention`: attention on projected inputs, and their bias."""
    query, heads = call.operand(0), call.get("num_heads", 1)
    batch, length = query.shape[:2]
    depth_value = call.result.shape[-1] // heads
    if len(query.shape) == 5:
        depth, keys = query.shape[4], length
    else:
        depth = query.shape[2] // heads
        key = call.operand(1).shape if call.has(1) else (batch, length, 0)
        keys = key[2] if len(key) == 4 else key[1]
    past = call.operand(6).shape[2] if call.has(6) else 0
    bias = sum(t.size for t in call.inputs[:3] if t is not None) if call.has(3) else 0
    mask = int(call.has(4)) + int(call.has(5))
    flops = dense.attention(batch * heads, length, keys + past, depth, depth_value, mask)
    return flops + bias


def group_query_attention(call: Call) -> float:
    """com.microsoft `GroupQueryAttention`: attention over the whole key cache."""
    query, heads = call.operand(0), call.get("num_heads", 1)
    groups = call.get("kv_num_heads", 1)
    batch, length, width = query.shape
    depth = width // heads if call.has(1) else width // (heads + 2 * groups)
    present = call.outputs[1].shape[2] if len(call.outputs) > 1 and call.outputs[1] else 0
    past = call.operand(3).shape[2] if call.has(3) else 0
    keys = max(present, past, length)
    return dense.attention(batch * heads, length, keys, depth, depth, 1)


def linear_attention(call: Call) -> float:
    """A state of key x value numbers per head, updated and read at every time step."""
    query, value = call.operand(0), call.operand(2)
    heads = call.get("kv_num_heads", call.get("num_heads", 1))
    width = query.shape[-1] if len(query.shape) == 3 else query.shape[1] * query.shape[3]
    depth = width // heads if len(query.shape) == 3 else query.shape[3]
    return 6.0 * value.size * depth


def rotary_embedding(call: Call) -> float:
    """Two multiplies and one add or subtract for each element that is rotated: of each head, the
    first ``rotary_embedding_dim``, or all."""
    x, rotated = call.operand(0), call.get("rotary_embedding_dim", 0)
    if not rotated:
        return 3.0 * x.size
    heads = call.get("num_heads", 0) if len(x.shape) == 3 else 1
    if not heads:
        raise ReadError(f"{call.where}: a part of each head is rotated, but num_heads is missing")
    return 3.0 * x.size * min(1.0, rotated * heads / x.shape[-1])


def resize(call: Call) -> float:
    """Linear: 3 FLOP an axis and result; cubic: 7; nearest: only moves data."""
    mode = call.get("mode", "nearest")
    x, out = call.operand(0).shape, call.result.shape
    axes = sum(a != b for a, b in zip(x, out, strict=True))
    per_axis = {"nearest": 0, "linear": 3, "bilinear": 3, "cubic": 7}
    if mode not in per_axis:
        raise ReadError(f"{call.where}: mode {mode!r} is unknown; one of {sorted(per_axis)}")
    return float(per_axis[mode] * axes * call.result.size)


def grid_sample(call: Call) -> float:
    """`sampled` at the points of the second operand."""
    per_axis = {"nearest": 0, "cubic": 7, "bicubic": 7}.get(call.get("mode", "linear"), 3)
    return sampled(call.operand(1), call.result, per_axis)


def affine_grid(call: Call) -> float:
    """A homogeneous point times an affine matrix for each grid point."""
    dims = call.result.shape[-1]
    return 2.0 * call.result.size * (dims + 1)


def non_max_suppression(call: Call) -> float:
    """A sort of the scores and 12 FLOP for each pair of boxes that may be compared."""
    scores = call.operand(1)
    boxes = scores.shape[-1]
    picked = min(boxes, call.result.shape[0])
    classes = math.prod(scores.shape[:-1])
    return scores.size * ceil_log2(boxes) + 12.0 * classes * boxes * min(picked, boxes)


def fourier(call: Call) -> float:
    """`decompositions.fourier` of the elements after padding to the length, of a halved spectrum
    those that it makes.

    Since operator set 20 the axis is an operand.
    """
    shape = list(call.operand(0).shape[:-1])
    axis = call.get("axis", 1) if call.version < 20 else call.integer(2, -2)
    axis = axis + len(shape) + 1 if axis < 0 else axis
    halved = call.get("inverse", 0) and call.get("onesided", 0)
    length = call.integer(1, call.result.shape[axis] if halved else shape[axis])
    shape[axis] = length
    return dense.fourier(math.prod(shape), (length,))


def short_time_fourier(call: Call) -> float:
    """`fourier` over every frame, and the window."""
    frames, bins = call.result.shape[1], call.result.shape[2]
    length = 2 * (bins - 1) if call.get("onesided", 1) else bins
    points = call.result.shape[0] * frames * max(1, length)
    return points * (8.0 * max(1, length.bit_length() - 1) + call.has(2))


def determinant(call: Call) -> float:
    """LU decomposition of each matrix."""
    return dense.of_matrices(dense.lu)([call.operand(0).shape])


def scatter(call: Call) -> float:
    """One FLOP an update when updates are combined, none when they replace."""
    combined = call.get("reduction", "none") != "none"
    return float(call.operand(2).size) if combined else 0.0


def scatter_bytes(call: Call) -> float:
    """XLA's scatter in place: updates read, written and read back; indices read."""
    updates = call.operand(2)
    return 3.0 * updates.nbytes + call.operand(1).nbytes


def gather_bytes(call: Call) -> float:
    """Only the rows gathered are read: twice the result, and the indices."""
    return 2.0 * call.result.nbytes + call.operand(1).nbytes


def embed_bytes(call: Call) -> float:
    """The rows looked up and the result, and the token ids."""
    rows = 3 if call.has(4) else 2
    return (rows + 1.0) * call.result.nbytes + call.operand(0).nbytes


def slice_bytes(call: Call) -> float:
    """Only the slice is read: twice the result."""
    return 2.0 * call.result.nbytes
