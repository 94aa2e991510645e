"""Costs of HLO instructions."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from go_rl.core import OpKind, UnknownOperatorError

pytestmark = pytest.mark.usefixtures("in_process")
IMAGE, KERNEL, MATRIX = (8, 16, 16, 4), (3, 3, 4, 8), (64, 32)
NHWC = ("NHWC", "HWIO", "NHWC")


def _conv(x, w):
    return lax.conv_general_dilated(x, w, (2, 2), "SAME", dimension_numbers=NHWC)


def _dilated(x, w):
    return lax.conv_general_dilated(
        x, w, (1, 1), ((2, 1), (3, 2)), (2, 3), (1, 2), dimension_numbers=NHWC
    )


def _grouped(x, w):
    return lax.conv_general_dilated(
        x, w, (1, 1), "SAME", feature_group_count=4, dimension_numbers=NHWC
    )


def _conv_gradients(x, w):
    return jax.grad(lambda x, w: _conv(x, w).sum(), argnums=(0, 1))(x, w)


def _pool_gradient(x):
    pool = lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "SAME")  # noqa: E731
    return jax.grad(lambda x: pool(x).sum())(x)


def _layout(v):
    return jnp.concatenate([v, v]), jnp.pad(v, 3), v[::2], v[:, ::-1], v.T.reshape(-1), v.var(0)


def _indexing(v):
    rows = v[jnp.array([1, 2, 3])]
    return rows, v.at[jnp.array([1, 2])].add(1.0), lax.dynamic_update_slice(v, rows, (1, 0))


def _attention(q):
    heads = q.reshape(4, 16, 32)
    weights = jax.nn.softmax(jnp.einsum("bqd,bkd->bqk", heads, heads))
    return jax.nn.gelu(jnp.einsum("bqk,bkd->bqd", weights, heads), approximate=False)


def _training_step(x, w):
    loss = lambda w: (jnp.tanh(_conv(x, w)).mean((1, 2)) ** 2).sum()  # noqa: E731
    value, gradient = jax.value_and_grad(loss)(w)
    return value, w - 0.1 * gradient


def _branch(v):
    return lax.cond(v.sum() > 0, lambda a: a * 2 + 1, lambda a: jnp.sin(a), v)


def _orders(v):
    return jnp.sort(v), jnp.argsort(v), jnp.argmax(v, 1)


PROGRAMS = [
    (_conv, (IMAGE, KERNEL)),
    (_dilated, (IMAGE, KERNEL)),
    (_grouped, (IMAGE, (3, 3, 1, 8))),
    (_conv_gradients, (IMAGE, KERNEL)),
    (_pool_gradient, (IMAGE,)),
    (_training_step, (IMAGE, KERNEL)),
    (_layout, (MATRIX,)),
    (_indexing, (MATRIX,)),
    (_attention, (MATRIX,)),
    (_branch, (MATRIX,)),
    (_orders, (MATRIX,)),
    (jnp.fft.fft, (MATRIX,)),
]


def _lowered(function, shapes):
    return jax.jit(function).lower(*(jax.ShapeDtypeStruct(s, jnp.float32) for s in shapes))


@pytest.mark.parametrize(("function", "shapes"), PROGRAMS)
@pytest.mark.parametrize("form", ["hlo", "stablehlo"])
def test_totals_match_xla(loaded, function, shapes, form):
    lowered = _lowered(function, shapes)
    graph = loaded(lowered.as_text("hlo" if form == "hlo" else None))
    xla = lowered.cost_analysis()
    assert graph.flops.sum() == pytest.approx(xla.get("flops", 0.0), rel=0.01, abs=2)
    # A tuple's pointer table and one branch's difference are the only bytes not counted.
    assert graph.bytes_accessed.sum() == pytest.approx(xla["bytes accessed"], rel=0.02, abs=200)
    assert graph.meta["format"] == form


def _scanned(v, w):
    return lax.scan(lambda c, _: (jnp.tanh(c @ w), c.sum()), v, None, length=5)


def _unrolled(v, w):
    sums = []
    for _ in range(5):
        sums.append(v.sum())
        v = jnp.tanh(v @ w)
    return v, sums


@pytest.mark.parametrize("limit", [0, 2000])
@pytest.mark.parametrize("form", [None, "hlo"])
def test_loops_cost_their_trips(loaded, monkeypatch, limit, form):
    monkeypatch.setattr("go_rl.graphs.readers.hlo.graph.UNROLL_NODES", limit)
    graph = loaded(_lowered(_scanned, (MATRIX, (32, 32))).as_text(form))
    flat = _lowered(_unrolled, (MATRIX, (32, 32))).cost_analysis()
    assert graph.flops.sum() == pytest.approx(flat["flops"], rel=0.001)
    assert graph.op_type.count("while") == (1 if limit == 0 else 0)
    assert graph.op_type.count("dot") == (0 if limit == 0 else 5)


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
INPUT, TAPS, OUT = "f32[1,2,8,8]", "f32[4,2,3,3]", "f32[1,4,8,8]"
# Of the 24 products of 3 taps and 8 places along an axis, two meet padding.
CONV_FLOPS = 2 * 2 * 4 * 22 * 22
MATMUL, CONVOLUTION, REDUCTION = OpKind.MATMUL, OpKind.CONVOLUTION, OpKind.REDUCTION
CASES = {
    "__cublas$gemm": ("f32[16,8]", "f32[16,4]", "(f32[8,4], s8[99])", GEMM, 2 * 16 * 8 * 4, MATMUL),
    "__cublas$lt$matmul": ("f32[16,8]", "f32[16,4]", "f32[8,4]", GEMM, 2 * 16 * 8 * 4, MATMUL),
    "__onednn$matmul": ("f32[3,8,16]", "f32[3,16,4]", "f32[3,8,4]", "", 2 * 3 * 16 * 8 * 4, MATMUL),
    "__cudnn$convForward": (INPUT, TAPS, f"({OUT}, u8[7])", CONV, CONV_FLOPS, CONVOLUTION),
    "__cudnn$convBackwardInput": (OUT, TAPS, f"({INPUT}, u8[7])", CONV, CONV_FLOPS, CONVOLUTION),
    "__cudnn$convBackwardFilter": (INPUT, OUT, f"({TAPS}, u8[7])", CONV, CONV_FLOPS, CONVOLUTION),
    "__cudnn$convBiasActivationForward": (
        INPUT, TAPS, f"({OUT}, u8[7])", CONV, CONV_FLOPS + 256, CONVOLUTION,
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
