"""FLOP of element-wise operators, forward and backward, by table."""

from __future__ import annotations

from go_rl.graphs.readers.torch.call import Costs, TorchCall, per_element, per_input, per_tensor

FLOPS: dict[int, str] = {
    0: "atan atan2 cos deg2rad digamma erf erfc erfinv exp exp2 expm1 lgamma log log10 log1p log2"
    " logaddexp polygamma rsqrt sin sqrt tan tanh xlogy special_entr special_erf special_erfc"
    " special_erfinv special_expit special_exp2 special_expm1 special_log1p special_log_ndtr"
    " special_ndtr special_ndtri special_gammaln special_digamma special_i0 special_i1 i0"
    " special_zeta arctan arctan2 sinc special_sinc special_xlogy logaddexp2 mvlgamma",
    1: "square __and__ __lshift__ __or__ __rshift__ __xor__ abs absolute and angle bitwise_and"
    " bitwise_left_shift bitwise_not bitwise_or bitwise_right_shift bitwise_xor bitwise_and"
    " bucketize ceil clamp clamp_max clamp_min clip conj_physical copysign div divide eq equal"
    " exponent fake_quantize_per_tensor_affine floor fmax fmin frac ge greater greater_equal gt"
    " heaviside hypot isfinite isinf isnan isneginf isposinf isreal le less less_equal logical_and"
    " logical_not logical_or logical_xor lt masked_fill maximum minimum mul multiply nan_to_num ne"
    " neg negative nextafter not_equal or positive reciprocal relu relu6 round rsub sgn sign"
    " signbit sub subtract threshold tril triu trunc fix where xor ldexp frexp searchsorted isin"
    " true_divide isclose allclose feature_alpha_dropout alpha_dropout bernoulli_mask hardtanh",
    2: "floor_divide hardshrink softshrink addcmul addcdiv lerp outer_scale logit_scale dropout"
    " native_dropout feature_dropout _fused_dropout quantize_per_tensor_dynamic masked_scale"
    " _masked_scale dequantize",
    3: "acos cosh leaky_relu prelu _prelu_kernel logit log_sigmoid log_sigmoid_forward sigmoid"
    " softsign tanhshrink arccos rrelu rrelu_with_noise arccosh_scale",
    4: "elu hardsigmoid silu glu",
    5: "asin celu hardswish arcsin quantize_per_tensor quantize_per_channel",
    6: "atanh selu softplus arctanh",
    7: "acosh mish arccosh",
    8: "fmod_python remainder",
    10: "sinh",
    11: "asinh arcsinh",
}
"""Element-wise operators by FLOP a result element, as `readers.onnx.costs.operators` has them."""

BACKWARD_FLOPS: dict[int, str] = {
    1: "threshold_backward infinitely_differentiable_native_dropout_backward",
    2: "hardshrink_backward hardtanh_backward hardsigmoid_backward leaky_relu_backward"
    " native_dropout_backward softshrink_backward relu_backward _masked_scale_backward",
    3: "sigmoid_backward tanh_backward _prelu_kernel_backward mse_loss_backward"
    " smooth_l1_loss_backward huber_loss_backward logit_backward",
    4: "elu_backward glu_backward hardswish_backward log_sigmoid_backward",
    5: "softplus_backward binary_cross_entropy_backward rrelu_with_noise_backward",
    7: "silu_backward",
    10: "mish_backward",
}
"""Derivatives times the gradient, by FLOP a result element."""

RANDOM = (
    "bernoulli cauchy exponential geometric log_normal normal normal_functional poisson rand"
    " rand_like randint randint_like randn randn_like random uniform"
)
"""Random numbers: XLA's threefry, 38 FLOP each."""

LISTS: dict[int, str] = {
    0: "_foreach_exp _foreach_log _foreach_sqrt _foreach_tanh _foreach_zero _foreach_copy",
    1: "_foreach_abs _foreach_add _foreach_clamp_max _foreach_clamp_min _foreach_div"
    " _foreach_maximum _foreach_minimum _foreach_mul _foreach_neg _foreach_reciprocal"
    " _foreach_sign _foreach_sub _foreach_pow _foreach_rsqrt",
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


def gelu(call: TorchCall) -> float:
    """``x/2 (1 + erf(x / sqrt 2))``: 4; the tanh form: 8."""
    return (8.0 if call.get("approximate", "none") == "tanh" else 4.0) * call.result.size


def gelu_backward(call: TorchCall) -> float:
    """Density and distribution of the normal law, twice the products of `gelu`."""
    return (16.0 if call.get("approximate", "none") == "tanh" else 9.0) * call.result.size


def larger(call: TorchCall) -> float:
    """`max`, `min` of two tensors 1 FLOP an element; of one, a reduction (9 with its indices)."""
    if len(list(call.tensors)) > 1:
        return float(call.result.size)
    each = 9.0 if len(call.results) > 1 else 1.0
    return each * max(0, call.tensor().size - call.result.size)


def rounded_quotient(call: TorchCall) -> float:
    """`div`: 1 FLOP an element, and 1 where the quotient is rounded."""
    return (1.0 + call.has("rounding_mode")) * call.result.size


def converted(call: TorchCall) -> float:
    """1 FLOP an element where the element type changes, by its size; a copy has none."""
    changed = call.tensor().itemsize != call.result.itemsize or call.has("dtype")
    return float(call.result.size) * changed


ELEMENTWISE: dict[str, Costs] = {
    **{ops: per_element(count) for count, ops in FLOPS.items()},
    **{ops: per_element(count) for count, ops in BACKWARD_FLOPS.items()},
    **{ops: per_tensor(count) for count, ops in LISTS.items()},
    RANDOM: per_element(38),
    "add add_relu sub": scaled,
    "_add_relu": per_element(2),
    "binary_cross_entropy": per_input(6),
    "binary_cross_entropy_with_logits": per_input(9),
    "div divide": rounded_quotient,
    "fmod": per_element(1),
    "gelu": gelu,
    "gelu_backward": gelu_backward,
    "multinomial": per_input(40),
    "pow float_power": power,
    "_to_copy to type_as": converted,
}
"""FLOP of each element-wise operator."""
