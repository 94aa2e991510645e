"""FLOP of element-wise operators, forward and backward, by table."""

from __future__ import annotations

from go_rl.graphs.readers.cost_rules import Costs, gelu, per_element, per_input
from go_rl.graphs.readers.torch.call import TorchCall, per_tensor

FLOPS: dict[int, str] = {
    0: "arctan arctan2 atan atan2 cos digamma erf erfc erfinv exp exp2 expm1 i0 igamma igammac"
    " lgamma log log10 log1p log2 logaddexp logaddexp2 mvlgamma polygamma rsqrt sin sinc"
    " special_airy_ai special_bessel_j0 special_bessel_j1 special_bessel_y0 special_bessel_y1"
    " special_digamma special_entr special_erf special_erfc special_erfcx special_erfinv"
    " special_exp2 special_expit special_expm1 special_gammainc special_gammaincc"
    " special_gammaln special_i0 special_i0e special_i1 special_i1e special_log1p"
    " special_log_ndtr special_modified_bessel_i0 special_modified_bessel_i1"
    " special_modified_bessel_k0 special_modified_bessel_k1 special_multigammaln special_ndtr"
    " special_ndtri special_polygamma special_psi special_sinc special_spherical_bessel_j0"
    " special_xlog1py special_xlogy special_zeta sqrt tan tanh xlogy",
    1: "abs absolute allclose alpha_dropout __and__ angle bitwise_and bitwise_left_shift"
    " bitwise_not bitwise_or bitwise_right_shift bitwise_xor bucketize ceil clamp clamp_max"
    " clamp_min clip conj_physical copysign deg2rad div divide eq equal"
    " fake_quantize_per_tensor_affine feature_alpha_dropout fix floor fmax fmin frac frexp"
    " gcd ge greater greater_equal gt hardtanh heaviside hypot isclose isfinite isin isinf"
    " isnan isneginf isposinf isreal lcm ldexp le less less_equal logical_and logical_not"
    " logical_or logical_xor __lshift__ lt masked_fill maximum minimum mul multiply"
    " nan_to_num ne neg negative nextafter not_equal __or__ positive rad2deg reciprocal relu"
    " relu6 round __rshift__ rsub searchsorted sgn sign signbit special_round square sub"
    " subtract threshold tril triu true_divide trunc where __xor__",
    2: "addcdiv addcmul dequantize dropout feature_dropout floor_divide _fused_dropout"
    " hardshrink lerp _masked_scale native_dropout quantize_per_tensor_dynamic softshrink",
    3: "acos arccos cosh cross leaky_relu linalg_cross log_sigmoid log_sigmoid_forward logit"
    " prelu _prelu_kernel rrelu rrelu_with_noise sigmoid special_logit",
    4: "elu glu hardsigmoid silu",
    5: "arcsin asin celu hardswish quantize_per_channel quantize_per_tensor",
    6: "arctanh atanh selu softplus",
    7: "acosh arccosh mish",
    8: "remainder",
    10: "sinh",
    11: "arcsinh asinh",
}
"""Element-wise operators by FLOP a result element, as `readers.onnx.costs.operators` has them."""

BACKWARD_FLOPS: dict[int, str] = {
    1: "threshold_backward",
    2: "hardshrink_backward hardsigmoid_backward hardtanh_backward leaky_relu_backward"
    " native_dropout_backward softshrink_backward",
    3: "huber_loss_backward logit_backward mse_loss_backward _prelu_kernel_backward"
    " sigmoid_backward smooth_l1_loss_backward tanh_backward",
    4: "elu_backward glu_backward hardswish_backward log_sigmoid_backward",
    5: "binary_cross_entropy_backward rrelu_with_noise_backward softplus_backward",
    7: "silu_backward",
    10: "mish_backward",
}
"""Derivatives times the gradient, by FLOP a result element."""

RANDOM = (
    "bernoulli binomial cauchy exponential geometric log_normal normal normal_functional poisson"
    " rand rand_like randint randint_like randn randn_like random randperm _sample_dirichlet"
    " _standard_gamma uniform"
)
"""Random numbers: XLA's threefry, 38 FLOP each."""

LISTS: dict[int, str] = {
    0: "_foreach_copy _foreach_exp _foreach_log _foreach_sqrt _foreach_tanh _foreach_zero",
    1: "_foreach_abs _foreach_add _foreach_clamp_max _foreach_clamp_min _foreach_div"
    " _foreach_maximum _foreach_minimum _foreach_mul _foreach_neg _foreach_pow"
    " _foreach_reciprocal _foreach_rsqrt _foreach_sign _foreach_sub",
    2: "_foreach_addcdiv _foreach_addcmul _foreach_lerp _foreach_norm",
    4: "_fused_sgd",
    13: "_fused_adam",
    15: "_fused_adamw",
    7: "_fused_adagrad",
}
"""Operators on lists of tensors, by FLOP an element; Adam: two moments (7), their corrections (2),
epsilon, quotient, rate and difference (4)."""


def scaled(call: TorchCall) -> float:
    """`add`, `sub`: 1 FLOP an element, and 1 where ``alpha`` scales an operand."""
    return (1.0 + (call.get("alpha", 1) != 1)) * call.result.size


def power(call: TorchCall) -> float:
    """Products of a small whole exponent; another is a transcendental function."""
    exponent = call.get("exponent")
    if isinstance(exponent, int | float) and exponent == int(exponent) and 1 <= exponent <= 64:
        return float(int(exponent).bit_length() + int(exponent).bit_count() - 2) * call.result.size
    return 0.0


def gelu_backward(call: TorchCall) -> float:
    """Density and distribution of the normal law, twice the products of `gelu`."""
    return (16.0 if call.get("approximate", "none") == "tanh" else 9.0) * call.result.size


def larger(call: TorchCall) -> float:
    """`max`, `min` of two tensors 1 FLOP an element; of one, a reduction (9 with its indices)."""
    if len(list(call.tensors)) > 1:
        return float(call.result.size)
    each = 9.0 if len(call.results) > 1 else 1.0
    return each * max(0, call.operand().size - call.result.size)


def rounded_quotient(call: TorchCall) -> float:
    """`div`: 1 FLOP an element, and 1 where the quotient is rounded."""
    return (1.0 + call.has("rounding_mode")) * call.result.size


def converted(call: TorchCall) -> float:
    """1 FLOP an element where the element type changes, by its size; a copy has none."""
    changed = call.operand().itemsize != call.result.itemsize or call.has("dtype")
    return float(call.result.size) * changed


ELEMENTWISE: dict[str, Costs] = {
    **{ops: per_element(count) for count, ops in FLOPS.items()},
    **{ops: per_element(count) for count, ops in BACKWARD_FLOPS.items()},
    **{ops: per_tensor(count) for count, ops in LISTS.items()},
    RANDOM: per_element(38),
    "add sub": scaled,
    "_add_relu": per_element(2),
    "binary_cross_entropy": per_input(6),
    "binary_cross_entropy_with_logits": per_input(9),
    "div divide": rounded_quotient,
    "fmod": per_element(1),
    "gelu": gelu,
    "gelu_backward": gelu_backward,
    "multinomial": per_input(40),
    "float_power pow": power,
    "to _to_copy type_as": converted,
}
"""FLOP of each element-wise operator."""
