"""FLOP of reductions, pooling and normalisation in ONNX, as sums over their decomposition."""

from __future__ import annotations

import math

from go_rl.graphs.readers import decompositions as dense
from go_rl.graphs.readers.cost_rules import Formula, per_input
from go_rl.graphs.readers.onnx.call import Call


def ceil_log2(n: int) -> int:
    """Return the smallest ``k`` with ``2**k >= n``."""
    return max(0, (n - 1).bit_length())


def softmax(call: Call) -> float:
    """Maximum, subtract, exp (a transcendental), sum, divide: ``4n`` less a reduction's start."""
    return 4.0 * call.operand(0).size - _rows(call)


def hardmax(call: Call) -> float:
    """Arg-maximum, then a comparison with every index."""
    n = call.operand(0).size
    return 9.0 * (n - _rows(call)) + n


def _rows(call: Call) -> int:
    shape = call.operand(0).shape
    if not shape:
        return 1
    axis = call.get("axis", 1 if call.version < 13 else -1) % len(shape)
    width = math.prod(shape[axis:]) if call.version < 13 else shape[axis]
    return call.operand(0).size // max(1, width)


def top_k(call: Call) -> float:
    """`decompositions.top_k` along the axis."""
    axis = call.get("axis", -1)
    k = call.result.shape[axis] if call.result.shape else 1
    return dense.top_k(call.operand(0).size, k)


def pool(each: int, once: int) -> Formula:
    """``each`` FLOP an element of the window, padding included as in XLA's reduce-window, and
    ``once`` a result."""

    def flops(call: Call) -> float:
        window = math.prod(call.get("kernel_shape", [1]))
        return float((each * window + once) * call.result.size)

    return flops


max_pool = pool(1, -1)
"""Comparisons."""
average_pool = pool(1, 0)
"""Additions and one division."""
lp_pool = pool(2, -1)
"""A power of every window element (1 FLOP; the root is not FLOP) and additions."""
global_average_pool = per_input(1)
"""Sum and divide."""
group_norm = per_input(7)
"""Cost of `layer_norm`, over groups of channels (or each channel, `InstanceNormalization`)."""


def batch_norm(call: Call) -> float:
    """Subtract mean, multiply by ``scale * rsqrt(variance + epsilon)``, add bias: ``3n + 2C``."""
    n, channels = call.operand(0).size, call.operand(1).size
    training = 4.0 * n if call.get("training_mode", 0) else 0.0
    return 3.0 * n + 2.0 * channels + training


def layer_norm(call: Call) -> float:
    """Mean, centre, square, mean, divide, scale, bias: ``7n`` (6 without bias) and epsilon."""
    return (6.0 + call.has(2)) * call.operand(0).size + _normalised(call)


def rms_norm(call: Call) -> float:
    """Square, mean, divide, scale: ``4n`` and epsilon."""
    return 4.0 * call.operand(0).size + _normalised(call)


def _normalised(call: Call) -> int:
    """Number of rows that are normalised."""
    axis = call.get("axis", -1)
    return math.prod(call.operand(0).shape[:axis]) if axis else 1


def skip_layer_norm(call: Call) -> float:
    """Add the residual (and the bias), then `layer_norm` or `rms_norm`."""
    n = call.operand(0).size
    simplified = "Simplified" in call.op
    bias = call.has(3 if simplified else 4)
    beta = call.has(3) and not simplified
    return (1.0 + bias + (4.0 if simplified else 6.0) + beta) * n


def embed_layer_norm(call: Call) -> float:
    """Sum two or three embeddings, then layer normalisation with bias."""
    segments = 1 if call.has(4) else 0
    return (1.0 + segments + 7.0) * call.result.size


def local_response_norm(call: Call) -> float:
    """Square, windowed sum, scale and shift, divide; the power is a transcendental."""
    return (float(call.get("size", 1)) + 3.0) * call.operand(0).size


def cross_entropy(call: Call) -> float:
    """Log-softmax, pick the target, negate, average."""
    return 4.0 * call.operand(0).size + 3.0 * call.operand(1).size
