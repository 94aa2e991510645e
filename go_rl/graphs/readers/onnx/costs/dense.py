"""FLOP of contractions and convolutions in ONNX: 2 per multiply-add that is really done."""

from __future__ import annotations

import math
from collections.abc import Sequence

from go_rl.core.errors import ReadError
from go_rl.graphs.readers import cost_rules, decompositions
from go_rl.graphs.readers.arithmetic.closed_forms import valid_pairs
from go_rl.graphs.readers.onnx.call import Call, Tensor


def matmul(call: Call) -> float:
    """``2 * batch * M * N * K`` of `MatMul`, of `FusedMatMul` with its transposed operands."""
    axis = -2 if call.get("transA", 0) and len(call.operand(0).shape) > 1 else -1
    inner = call.operand(0).shape[axis]
    return 2.0 * call.result.size * inner


def fused_matmul(call: Call) -> float:
    """`matmul` and the scaling by ``alpha``."""
    scaled = call.result.size if call.get("alpha", 1.0) != 1.0 else 0
    return matmul(call) + scaled


def gemm(call: Call) -> float:
    """``2MNK``, one add an element for the bias, one multiply for each of alpha and beta."""
    a, out = call.operand(0), call.result
    inner = a.shape[0] if call.get("transA", 0) else a.shape[1]
    extra = call.has(2) + (call.get("alpha", 1.0) != 1.0)
    bias = call.operand(2).size if call.has(2) and call.get("beta", 1.0) != 1.0 else 0
    return 2.0 * out.size * inner + extra * out.size + bias


def matmul_integer(call: Call) -> float:
    """`matmul` and the subtraction of the zero points that are given."""
    zero_points = sum(call.operand(i - 2).size for i in (2, 3) if call.has(i))
    return matmul(call) + zero_points


def qlinear_matmul(call: Call) -> float:
    """Integer `matmul`, zero points, and 5 FLOP an element to requantise."""
    a, b = call.operand(0), call.operand(3)
    return 2.0 * call.result.size * a.shape[-1] + a.size + b.size + 5.0 * call.result.size


def matmul_n_bits(call: Call) -> float:
    """`matmul` by a block-quantised weight; 2 FLOP a weight to dequantise."""
    k, n = int(call.get("K", 0)), int(call.get("N", 0))
    return 2.0 * call.result.size * k + 2.0 * k * n


def einsum(call: Call) -> float:
    """`decompositions.einsum` of the operands."""
    shapes = [call.operand(i).shape for i in range(len(call.inputs))]
    return decompositions.einsum(call.get("equation", ""), shapes, len(call.result.shape))


def convolution(call: Call) -> float:
    """2 per multiply-add on real inputs (padding is not counted), and the bias."""
    return _convolution(call, weight=1, bias=2)


def conv_integer(call: Call) -> float:
    """`convolution` on integers, with the zero points that are given."""
    zero_points = sum(call.operand(i - 2).size for i in (2, 3) if call.has(i))
    return _convolution(call, weight=1, bias=99) + zero_points


def qlinear_conv(call: Call) -> float:
    """`convolution` on integers, zero points, bias, and 5 FLOP an element to requantise."""
    extra = call.operand(0).size + call.operand(3).size + 5.0 * call.result.size
    return _convolution(call, weight=3, bias=8) + extra


def _convolution(call: Call, weight: int, bias: int) -> float:
    w, out = call.operand(weight), call.result
    pairs = _pairs(call, w, call.operand(0), out)
    return 2.0 * out.shape[0] * out.shape[1] * w.shape[1] * pairs + _bias(call, bias)


def _pairs(call: Call, weight: Tensor, read: Tensor, written: Tensor) -> int:
    """Pairs of tap and element written whose element read is no padding."""
    x, out, kernel = call.operand(0).shape, call.result.shape, weight.shape[2:]
    if not 2 < len(x) == len(weight.shape) == len(out):
        raise ReadError(f"{call.where}: operands {x} and {weight.shape} are of unequal rank")
    strides = _spatial(call, "strides", 1, len(kernel))
    dilations = _spatial(call, "dilations", 1, len(kernel))
    begin = pads_begin(call, x[2:], out[2:], kernel)
    axes = zip(written.shape[2:], kernel, read.shape[2:], strides, dilations, begin, strict=True)
    return math.prod(valid_pairs(*axis) for axis in axes)


def _bias(call: Call, position: int) -> int:
    return call.result.size if call.has(position) else 0


def convolution_transpose(call: Call) -> float:
    """2 per multiply-add whose result lies inside the cropped output, and the bias."""
    x, w = call.operand(0), call.operand(1)
    # Input i and tap k write output i * stride + k * dilation - pad: the roles of input and output
    # of a convolution change places.
    pairs = _pairs(call, w, call.result, x)
    return 2.0 * x.shape[0] * x.shape[1] * w.shape[1] * pairs + _bias(call, 2)


def deformable_convolution(call: Call) -> float:
    """`cost_rules.deformable_convolution`, and the bias."""
    arrays = call.operand(0), call.operand(1), call.result
    return cost_rules.deformable_convolution(*arrays, call.has(4)) + _bias(call, 3)


def pads_begin(
    call: Call, inputs: Sequence[int], outputs: Sequence[int], kernel: Sequence[int]
) -> list[int]:
    """Return the padding before each spatial axis, from ``pads``, ``auto_pad`` or the shapes.

    `ConvTranspose` with ``output_shape`` has the padding that makes that shape; an odd one has more
    before than after, but for ``SAME_UPPER``.
    """
    rank, transposed = len(kernel), call.op == "ConvTranspose"
    mode, sized = call.get("auto_pad", "NOTSET"), transposed and call.get("output_shape", ())
    if mode in ("NOTSET", "") and not sized:
        return list(call.get("pads", [0] * 2 * rank))[:rank]
    if mode == "VALID" and not sized:
        return [0] * rank
    strides = _spatial(call, "strides", 1, rank)
    dilations = _spatial(call, "dilations", 1, rank)
    added = _spatial(call, "output_padding", 0, rank) if transposed else [0] * rank
    small, large = (inputs, outputs) if transposed else (outputs, inputs)
    more_before = mode == "SAME_LOWER" or (sized and mode != "SAME_UPPER")
    pads = []
    for i in range(rank):
        reach = (small[i] - 1) * strides[i] + (kernel[i] - 1) * dilations[i] + 1 + added[i]
        total = max(0, reach - large[i])
        pads.append(total - total // 2 if more_before else total // 2)
    return pads


def _spatial(call: Call, attribute: str, default: int, rank: int) -> list[int]:
    sizes = list(call.get(attribute, [default] * rank))
    if len(sizes) != rank:
        raise ReadError(
            f"{call.where}: attribute {attribute!r} has {len(sizes)} entries; {rank} are wanted"
        )
    return sizes
