"""FLOP of contractions, convolutions and their gradients: 2 per multiply-add that is done."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from go_rl.core.errors import ReadError
from go_rl.graphs.readers import decompositions as dense
from go_rl.graphs.readers.arithmetic.closed_forms import valid_pairs
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.cost_rules import Costs, Formula, distances, per_element
from go_rl.graphs.readers.torch.call import TorchCall


def product(first: str, bias: str = "") -> Formula:
    """``2 * result * depth``, the depth being the last axis of an operand, and one FLOP an element
    for the bias, for each of ``alpha``, ``beta``."""

    def flops(call: TorchCall) -> float:
        shape = call.operand(first).shape
        depth = shape[-1] if shape else 1
        scalings = sum(call.get(name, 1) != 1 for name in ("alpha", "beta")) if bias else 0
        added = bool(bias) and call.has(bias)
        return (2.0 * depth + added + scalings) * call.result.size

    return flops


def bilinear(call: TorchCall) -> float:
    """Both inputs times one matrix for each result, and the bias."""
    rows, columns = call.operand("weight").shape[1:]
    return call.result.size * (2.0 * rows * columns + 2.0 * columns + call.has("bias"))


def einsum(call: TorchCall) -> float:
    """`dense.einsum` of the operands."""
    shapes = [t.shape for t in call.tensor_list("tensors")]
    return dense.einsum(call.get("equation", ""), shapes, len(call.result.shape))


def trilinear(call: TorchCall) -> float:
    """Two products of each element of the three operands expanded, summed."""
    return (
        3.0
        * max(t.size for t in call.tensors)
        * max(1, call.result.shape[-1] if call.result.shape else 1)
    )


def tensordot(call: TorchCall) -> float:
    """``2 * result * depth``."""
    shape = call.operand("self").shape
    return 2.0 * call.result.size * math.prod(shape[d] for d in call.get("dims_self", ()))


def chain(call: TorchCall) -> float:
    """Products of matrices from left to right."""
    shapes = [t.shape for t in call.tensor_list("tensors") or call.tensor_list("matrices")]
    total, rows = 0.0, shapes[0][0] if len(shapes[0]) > 1 else 1
    for left, right in pairwise(shapes):
        total += 2.0 * rows * left[-1] * (right[-1] if len(right) > 1 else 1)
    return total


def grouped(call: TorchCall) -> float:
    """Every row of the left operand meets one group's matrix; where the contracted axis is divided
    among the groups, each group's part of it."""
    left = call.operand("self", "mat_a", "input").shape
    right = call.operand("mat2", "mat_b", "weight").shape
    if len(left) == len(right) == 2:
        return 2.0 * left[0] * left[1] * right[-1]
    return 2.0 * call.result.size * left[-1]


def spread(value: Any, rank: int, default: int) -> list[int]:
    """Return a setting for each spatial axis; one number stands for all."""
    sizes = [value] if isinstance(value, int) else list(default_list(value, default))
    return sizes * rank if len(sizes) == 1 else sizes


def default_list(value: Any, default: int) -> Sequence[int]:
    """Return a list of sizes, with ``default`` for None and an empty one."""
    return value if isinstance(value, list) and value else [default]


def paddings(call: TorchCall, kernel: Sequence[int], dilation: Sequence[int]) -> list[int]:
    """Return the padding before each spatial axis; ``same`` pads more after it."""
    found = call.get("padding", 0)
    if found == "same":
        return [d * (k - 1) // 2 for k, d in zip(kernel, dilation, strict=True)]
    return spread(0 if found == "valid" else found, len(kernel), 0)


def multiply_adds(call: TorchCall, x: Tensor, weight: Tensor, out: Tensor) -> float:
    """FLOP of the products of a convolution; taps that fall on padding multiply nothing."""
    kernel = weight.shape[2:]
    rank = len(kernel)
    if not rank or len(x.shape) not in (rank + 1, rank + 2) or len(out.shape) != len(x.shape):
        raise ReadError(f"{call.where}: operands {x.shape} and {weight.shape} do not fit")
    transposed = "conv_transpose" in call.op or bool(call.get("transposed", False))
    stride = spread(call.get("stride", 1), rank, 1)
    dilation = spread(call.get("dilation", 1), rank, 1)
    pads = paddings(call, kernel, dilation)
    # Input i and tap k of a transposed one write output i * stride + k * dilation - pad: the roles
    # of input and output change places.
    read, written = (out, x) if transposed else (x, out)
    axes = zip(
        written.shape[-rank:], kernel, read.shape[-rank:], stride, dilation, pads, strict=True
    )
    pairs = math.prod(valid_pairs(*axis) for axis in axes)
    spatial = math.prod(written.shape[-rank:])
    return 2.0 * (written.size // max(1, spatial)) * weight.shape[1] * pairs


def convolution(call: TorchCall) -> float:
    """Products, and one FLOP an element for the bias."""
    x, weight = call.operand("input", "self"), call.operand("weight")
    return multiply_adds(call, x, weight, call.result) + call.has("bias") * call.result.size


def convolution_backward(call: TorchCall) -> float:
    """As many products for the gradient of the input, and of the weight, as forward; a sum for that
    of the bias."""
    gradient = call.operand("grad_output")
    each = multiply_adds(call, call.operand("input"), call.operand("weight"), gradient)
    inputs, weight, bias = (*call.get("output_mask", [True] * 3), True, True, True)[:3]
    return each * (bool(inputs) + bool(weight)) + bool(bias) * gradient.size


def of_matrices(count: Callable[[int, int], float]) -> Formula:
    """`decompositions.of_matrices` of the first operand."""
    return lambda call: float(dense.of_matrices(count)([call.operand().shape]))


def solve(call: TorchCall) -> float:
    """Factors of each matrix, then two triangular solves."""
    *batch, n, _ = call.operand("A", "LU", "input").shape
    sides = call.result.size // max(1, math.prod(batch) * n)
    return math.prod(batch) * (dense.lu(n, n) + 2 * dense.triangular_solve(n, sides))


def triangular_solve(call: TorchCall) -> float:
    """One triangular solve for each matrix."""
    *batch, n, _ = call.operand("A", "self").shape
    sides = call.result.size // max(1, math.prod(batch) * n)
    return math.prod(batch) * dense.triangular_solve(n, sides)


def fourier(call: TorchCall) -> float:
    """`decompositions.fourier` of the larger side over the axes transformed."""
    larger = max(call.operand(), call.result, key=lambda t: t.size)
    axes = call.get("dim", None)
    axes = [axes] if isinstance(axes, int) else axes or [-1]
    return dense.fourier(larger.size, tuple(larger.shape[axis] for axis in axes))


def short_time_fourier(call: TorchCall) -> float:
    """`decompositions.fourier` of every frame, and the window."""
    length = call.get("n_fft", 1)
    bins = length if call.get("onesided") is False else length // 2 + 1
    elements = max(call.result, call.operand(), key=lambda t: t.nbytes).size * length / max(1, bins)
    return elements * (8.0 * max(1, length.bit_length() - 1) + call.has("window"))


def quantised_product(call: TorchCall) -> float:
    """A product by a quantised weight, whose columns are counted by the result."""
    return 2.0 * call.result.size * call.operand().shape[-1] + 5.0 * call.result.size


MATMUL: dict[str, Costs] = {
    "addbmm baddbmm": product("batch1", "self"),
    "addmm _addmm_activation sparse_sampled_addmm": product("mat1", "self"),
    "addmv": product("mat", "self"),
    "addr": per_element(3),
    "bilinear": bilinear,
    "bmm dot inner _int_mm linalg_matmul linalg_vecdot matmul mm mv _sparse_mm vdot": product(
        "self"
    ),
    "cdist _cdist_forward _euclidean_dist pairwise_distance pdist _pdist_forward": distances,
    "corrcoef cov": lambda call: 2.0 * call.result.size * call.operand().shape[-1],
    "chain_matmul linalg_multi_dot": chain,
    "einsum": einsum,
    "ger kron outer": per_element(1),
    "linear": product("input", "bias"),
    "_grouped_mm _scaled_grouped_mm": grouped,
    "_scaled_mm _scaled_mm_v2": product("self", "bias"),
    "_dyn_quant_matmul_4bit _weight_int4pack_mm _weight_int4pack_mm_for_cpu"
    " _weight_int4pack_mm_with_scales_and_zeros _weight_int8pack_mm": quantised_product,
    "tensordot": tensordot,
    "_trilinear": trilinear,
    "cholesky linalg_cholesky linalg_cholesky_ex": of_matrices(lambda n, _: dense.cholesky(n)),
    "cholesky_inverse inverse linalg_inv linalg_inv_ex linalg_pinv": of_matrices(
        lambda n, m: 3.0 * dense.lu(n, m)
    ),
    "det _linalg_det linalg_det linalg_lu linalg_lu_factor linalg_lu_factor_ex _linalg_slogdet"
    " linalg_slogdet logdet _lu_with_info slogdet": of_matrices(dense.lu),
    "linalg_eig _linalg_eigvals linalg_eigvals": of_matrices(lambda n, _: dense.eigen(n)),
    "_linalg_eigh linalg_eigh linalg_eigvalsh": of_matrices(lambda n, _: dense.symmetric_eigen(n)),
    "geqrf": of_matrices(dense.qr_factors),
    "linalg_cond linalg_matrix_rank": of_matrices(lambda n, m: dense.svd(n, m, vectors=False)),
    "linalg_householder_product orgqr": of_matrices(
        lambda n, m: dense.householder_product(n, m, m)
    ),
    "linalg_matrix_exp matrix_exp": of_matrices(lambda n, _: 20.0 * n**3),
    "linalg_matrix_power matrix_power": of_matrices(lambda n, _: 2.0 * n**3),
    "linalg_qr qr": of_matrices(lambda n, m: dense.qr(n, m, min(n, m))),
    "_linalg_svd linalg_svd linalg_svdvals svd": of_matrices(dense.svd),
    "linalg_lstsq": solve,
    "cholesky_solve linalg_lu_solve linalg_solve _linalg_solve_ex linalg_solve_ex": solve,
    "linalg_solve_triangular triangular_solve": triangular_solve,
    "_fft_c2c _fft_c2r fft_fft fft_fft2 fft_fftn fft_hfft fft_hfft2 fft_hfftn fft_ifft fft_ifft2"
    " fft_ifftn fft_ihfft fft_ihfft2 fft_ihfftn fft_irfft fft_irfft2 fft_irfftn _fft_r2c"
    " fft_rfft fft_rfft2 fft_rfftn": fourier,
    "istft stft": short_time_fourier,
}
"""FLOP of products of matrices."""
CONVOLUTION: dict[str, Costs] = {
    "conv1d conv2d conv3d _conv_depthwise2d conv_depthwise3d conv_transpose1d conv_transpose2d"
    " conv_transpose3d _convolution convolution convolution_overrideable cudnn_convolution"
    " miopen_convolution mkldnn_convolution _slow_conv2d_forward slow_conv3d slow_conv3d_forward"
    " slow_conv_dilated2d slow_conv_dilated3d slow_conv_transpose2d slow_conv_transpose3d"
    " thnn_conv2d": convolution,
    "conv_tbc": lambda c: 2.0 * c.result.size * math.prod(c.operand("weight").shape[:2]),
    "convolution_backward convolution_backward_overrideable": convolution_backward,
}
"""FLOP of convolutions."""
