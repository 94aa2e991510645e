"""`Geometry` of ONNX operators, from their attributes and the shapes of their operands."""

from __future__ import annotations

from collections.abc import Callable

from go_rl.core.errors import ReadError
from go_rl.core.graph.geometry import Geometry, window_geometry
from go_rl.graphs.readers.onnx.call import Call
from go_rl.graphs.readers.onnx.costs.dense import pads_begin
from go_rl.graphs.tables import by_name

Rule = Callable[[Call], Geometry]
ALWAYS = "always"
"""In place of an attribute: the operator hides later keys in any case."""


def onnx_geometry(call: Call) -> Geometry:
    """Return the geometry of an operator; what nothing is known of has the plain one."""
    rule = _resized if call.op.startswith("Reduce") else _RULES.get(call.op)
    return Geometry() if rule is None or not call.has(0) else rule(call)


def _padding(call: Call, kernel: tuple[int, ...]) -> float:
    """Padding on both sides of all dimensions; what the shapes give is split evenly, but for
    one."""
    if call.get("auto_pad", "NOTSET") in ("NOTSET", "") and not call.get("output_shape", ()):
        return float(sum(max(pad, 0) for pad in call.get("pads", ())))
    begin = pads_begin(call, call.operand(0).shape[2:], call.result.shape[2:], kernel)
    return 2.0 * sum(begin)


def _convolution(call: Call) -> Geometry:
    kernel = call.operand(1).shape[2:]
    strides, transposed = call.get("strides", ()), call.op == "ConvTranspose"
    if (groups := call.get("group", 1)) < 1:
        raise ReadError(f"{call.where}: attribute group must be 1 or more, not {groups}")
    spread = ((), strides) if transposed else (strides, ())
    padding, dilations = _padding(call, kernel), call.get("dilations", ())
    return window_geometry(kernel, spread[0], padding, dilations, spread[1], groups)


def _pool(call: Call) -> Geometry:
    kernel = tuple(call.get("kernel_shape", ()))
    strides, dilations = call.get("strides", ()), call.get("dilations", ())
    minor = bool(kernel) and kernel[-1] > 1
    return window_geometry(kernel, strides, _padding(call, kernel), dilations, minor=minor)


def _matmul(call: Call) -> Geometry:
    """The left operand's last dimension is contracted, and the right one's if it has one only."""
    right = len(call.operand(1).shape) == 1 if call.has(1) else False
    return Geometry(minor=1.0 + 2.0 * right)


def _gemm(call: Call) -> Geometry:
    return Geometry(minor=float(not call.get("transA", 0)) + 2.0 * bool(call.get("transB", 0)))


def _heads(queries: str, keys: str, causal: str) -> Rule:
    """Attention, from attributes: heads of queries, those of keys, whether later keys are hidden;
    without heads of keys there are as many as of queries, without those of queries a plain one."""

    def rule(call: Call) -> Geometry:
        heads = int(call.get(queries, 0))
        groups = int(call.get(keys, heads))
        if heads < 1 or groups < 1 or heads % groups:
            return Geometry()
        hidden = causal == ALWAYS or bool(call.get(causal, 0))
        return Geometry(groups=float(heads), stride=float(heads // groups), minor=float(hidden))

    return rule


def _transpose(call: Call) -> Geometry:
    rank = len(call.operand(0).shape)
    order = call.get("perm", tuple(reversed(range(rank))))
    return Geometry(minor=float(rank > 0 and order[-1] != rank - 1))


def _along(default: int) -> Rule:
    """Operators along one axis: whether it is the last."""

    def rule(call: Call) -> Geometry:
        rank = len(call.operand(0).shape)
        return Geometry(minor=float(rank > 0 and call.get("axis", default) % rank == rank - 1))

    return rule


def _resized(call: Call) -> Geometry:
    """Whether the result differs in the last dimension, or has fewer of them."""
    before, after = call.operand(0).shape, call.result.shape
    return Geometry(minor=float(before[-1:] != after[-1:]))


_RULES: dict[str, Rule] = by_name(
    {
        "ArgMax ArgMin Concat Gather Split": _along(0),
        "LayerNormalization LogSoftmax Softmax TopK": _along(-1),
        "Attention": _heads("q_num_heads", "kv_num_heads", "is_causal"),
        "AveragePool LpPool MaxPool": _pool,
        "com.microsoft.nchwc.AveragePool com.microsoft.nchwc.MaxPool": _pool,
        "Conv ConvTranspose com.microsoft.FusedConv com.microsoft.nchwc.Conv": _convolution,
        "Expand GlobalAveragePool GlobalMaxPool Pad Resize Slice": _resized,
        "Gemm com.microsoft.FusedGemm": _gemm,
        "MatMul": _matmul,
        "Transpose": _transpose,
        "com.microsoft.Attention com.microsoft.DecoderMaskedMultiHeadAttention"
        " com.microsoft.MultiHeadAttention": _heads("num_heads", "num_heads", "unidirectional"),
        "com.microsoft.GroupQueryAttention": _heads("num_heads", "kv_num_heads", ALWAYS),
    }
)
