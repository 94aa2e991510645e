"""Library calls of compiled HLO, with FLOP by hand."""

import pytest

from go_rl.core import OpKind, UnknownOperatorError

GEMM = (
    r'backend_config={"gemm_backend_config":{"alpha_real":1,"dot_dimension_numbers":'
    r'{"lhs_contracting_dimensions":["0"],"rhs_contracting_dimensions":["0"],'
    r'"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}}}'
)
SCORES = (
    r'backend_config={"cudnn_fmha_backend_config":{"intermediate_tensor_shape":{"element_type":'
    r'"F16","dimensions":["2","4","8","8"]},"bmm1_dot_dimension_numbers":'
    r'{"lhs_contracting_dimensions":["3"]}}}'
)
CONV = "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01"
IMAGE, KERNEL, OUT = "f32[1,2,8,8]", "f32[4,2,3,3]", "f32[1,4,8,8]"
# Of the 24 products of 3 taps and 8 places along an axis, two meet padding.
CONV_FLOPS = 2 * 2 * 4 * 22 * 22
MATMUL, CONVOLUTION, REDUCTION = OpKind.MATMUL, OpKind.CONVOLUTION, OpKind.REDUCTION
CASES = {
    "__cublas$gemm": ("f32[16,8]", "f32[16,4]", "(f32[8,4], s8[99])", GEMM, 2 * 16 * 8 * 4, MATMUL),
    "__cublas$lt$matmul": ("f32[16,8]", "f32[16,4]", "f32[8,4]", GEMM, 2 * 16 * 8 * 4, MATMUL),
    "__onednn$matmul": ("f32[3,8,16]", "f32[3,16,4]", "f32[3,8,4]", "", 2 * 3 * 16 * 8 * 4, MATMUL),
    "__cudnn$convForward": (IMAGE, KERNEL, f"({OUT}, u8[7])", CONV, CONV_FLOPS, CONVOLUTION),
    "__cudnn$convBackwardInput": (OUT, KERNEL, f"({IMAGE}, u8[7])", CONV, CONV_FLOPS, CONVOLUTION),
    "__cudnn$convBackwardFilter": (IMAGE, OUT, f"({KERNEL}, u8[7])", CONV, CONV_FLOPS, CONVOLUTION),
    "__cudnn$convBiasActivationForward": (
        IMAGE, KERNEL, f"({OUT}, u8[7])", CONV, CONV_FLOPS + 256, CONVOLUTION,
    ),
    "__cudnn$fmhaSoftmax": (
        "f16[2,4,8,16]", "f16[2,4,8,16]", "(f16[2,4,8,16], u8[0])", SCORES,
        2 * 4 * 8 * 8 * (4 * 16 + 4), MATMUL,
    ),
    "__cusolver$cholesky": ("f32[5,6,6]", "f32[1]", "(f32[5,6,6], f32[9], s32[5])", "",
                            5 * 6**3 / 3, MATMUL),
    "__cublas$triangularSolve": ("f32[6,6]", "f32[6,4]", "(f32[6,4], s8[9])", "", 36 * 4, MATMUL),
    "cusolver_getrf_ffi": ("f64[6,3]", "f32[1]", "(f64[6,3], s32[3], s32[])", "", 9 * 5, MATMUL),
    "lapack_dgesdd_ffi": (
        "f64[6,3]", "f32[1]", "(f64[6,3], f64[3], f64[6,6], f64[3,3], s32[])",
        "backend_config={mode = 78 : ui8}", 4 * 6 * 9 - 36, MATMUL,
    ),
    "lapack_sormqr_ffi": ("f32[6,3]", "f32[3]", "f32[6,4]", "", None, MATMUL),
    "TopK": ("f32[4,32]", "f32[1]", "(f32[4,5], s32[4,5])", "", 128 * 3, REDUCTION),
    "__cub$DeviceRadixSort": ("f32[1024]", "s32[1024]", "(f32[1024], s32[1024], u8[9])", "",
                              1024 * 10, REDUCTION),
}  # fmt: skip


def module(target, left, right, result, attributes=""):
    config = f", {attributes}" if attributes else ""
    return f"""HloModule m
ENTRY main {{
  a = {left} parameter(0)
  b = {right} parameter(1)
  ROOT c = {result} custom-call(a, b), custom_call_target="{target}"{config}
}}"""


@pytest.mark.parametrize("target", [t for t in CASES if CASES[t][4] is not None])
def test_by_hand(loaded, target):
    *shapes, attributes, flops, kind = CASES[target]
    graph = loaded(module(target, *shapes, attributes))
    call = graph.index["c"]
    assert graph.flops[call] == pytest.approx(flops)
    assert graph.kind[call] == kind
    assert graph.bytes_accessed[call] > 0


def test_unknown_targets_are_refused_or_counted_by_bytes(loaded, refused):
    text = module("lapack_mystery", "f32[8]", "f32[8]", "f32[8]")
    refused(text, "custom call 'lapack_mystery' has no known", UnknownOperatorError)
    graph = loaded(text, unknown="bytes")
    assert (graph.flops.sum(), graph.bytes_accessed.sum()) == (0, 3 * 32)
