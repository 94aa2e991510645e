"""Costs of JAX functions."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from experiments.readers.cost_analysis_agreement import MODELS, compare
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo.models.building import floats, integers


def ours(function, *args) -> tuple[float, float]:
    graph = trace_jax(function, *args, weights=())
    return float(graph.flops.sum()), float(graph.bytes_accessed.sum())


def xla(function, *args) -> tuple[float, float]:
    lowered = jax.jit(function).trace(*args).lower(lowering_platforms=("cpu",))
    analysis = lowered.cost_analysis()
    return analysis.get("flops", 0.0), analysis.get("bytes accessed", 0.0)


M, V, B = floats(10, 20), floats(100), floats(2, 8, 8, 3)

EXACT = {
    "add": (lambda x: x + x, V),
    "literal": (lambda x: x * 2.0, V),
    "same literal twice": (lambda x: (x * 2.0) * 2.0, V),
    "row": (lambda x, y: x * y, M, floats(1, 20)),
    "column": (lambda x, y: x - y, M, floats(10, 1)),
    "vector": (lambda x, y: x + y, M, floats(20)),
    "exp": (jnp.exp, V),
    "tanh": (jnp.tanh, V),
    "rsqrt": (lax.rsqrt, V),
    "erf": (lax.erf, V),
    "erf_inv": (lax.erf_inv, V),
    "erfc": (lax.erfc, V),
    "logistic": (lax.logistic, V),
    "power": (lambda x, y: x**y, V, V),
    "cube": (lambda x: x**3, V),
    "seventh power": (lambda x: lax.integer_pow(x, 7), V),
    "inverse square": (lambda x: lax.integer_pow(x, -2), V),
    "compare": (lambda x, y: x < y, V, V),
    "select": (lambda x: jnp.where(x > 0, x, 0.0), V),
    "clamp": (lambda x: lax.clamp(0.0, x, 6.0), V),
    "cast": (lambda x: x.astype(jnp.bfloat16), V),
    "cast to bool": (lambda x: x.astype(bool), V),
    "sum": (lambda x: x.sum(1), M),
    "max": (lambda x: x.max(0), M),
    "argmax": (lambda x: lax.argmax(x, 1, jnp.int32), M),
    "softmax": (jax.nn.softmax, M),
    "logsumexp": (lambda x: jax.nn.logsumexp(x, axis=1), M),
    "max pool": (lambda x: lax.reduce_window(x, -jnp.inf, lax.max, (2, 2), (2, 2), "VALID"), M),
    "pool": (lambda x: lax.reduce_window(x, 0.0, lax.add, (3, 3), (1, 1), "SAME"), M),
    "broadcast": (lambda x: jnp.broadcast_to(x, (5, 100)), V),
    "broadcast rows": (lambda x: lax.broadcast_in_dim(x, (5, 7, 9), (0, 2)), floats(1, 9)),
    "reshape": (lambda x: x.reshape(20, 10), M),
    "transpose": (lambda x: x.T + 1.0, M),
    "slice": (lambda x: x[2:5, 3:], M),
    "pad": (lambda x: lax.pad(x, 0.0, ((1, 1, 0), (0, 2, 1))), M),
    "concatenate": (lambda x: jnp.concatenate([x, x]), M),
    "reverse": (lambda x: lax.rev(x, (0,)), M),
    "iota": (lambda: lax.iota(jnp.int32, 100),),
    "gather": (lambda x, i: jnp.take(x, i, axis=0, mode="clip"), M, integers(7)),
    "scatter": (lambda x, i, u: x.at[i].add(u), M, integers(7), floats(7, 20)),
    "dynamic slice": (lambda x, i: lax.dynamic_slice(x, (i, i), (2, 5)), M, integers()),
    "update": (lambda x, u, i: lax.dynamic_update_slice(x, u, (i, i)), M, floats(2, 5), integers()),
    "sort": (lambda x: lax.sort(x), M),
    "dot": (lambda x, y: x @ y, M, floats(20, 30)),
    "batched dot": (
        lambda x, y: jnp.einsum("bij,bkj->bik", x, y), floats(4, 5, 6), floats(4, 7, 6),
    ),
    "conv": (
        lambda x, k: lax.conv_general_dilated(
            x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        B,
        floats(3, 3, 3, 5),
    ),
    "transposed conv": (
        lambda x, k: lax.conv_transpose(x, k, (2, 2), "SAME"), B, floats(3, 3, 3, 5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", EXACT)
def test_cost_equals_xla(case):
    function, *args = EXACT[case]
    assert ours(function, *args) == xla(function, *args)


@pytest.mark.parametrize(
    ("function", "args", "flops"),
    [
        (lambda x, y: x @ y, (floats(10, 20), floats(20, 30)), 2 * 10 * 20 * 30),
        (lambda x: x.sum(), (floats(10, 20),), 199),
        (lambda x: x**4, (floats(10),), 20),
        (jnp.exp, (floats(10),), 0),
        (lambda x: jnp.cumsum(x, 1), (floats(10, 20),), 10 * 20),
        (lambda x: lax.top_k(x, 5), (floats(10, 20),), 10 * 20 * 3),
        (lambda x, k: lax.conv(x, k, (1, 1), "VALID"), (floats(1, 2, 5, 5), floats(4, 2, 3, 3)),
         2 * 4 * 2 * 9 * 9),
        (  # zero padding: 2 + 3 + 3 + 3 + 2 of the three taps meet an element
            lambda x, k: lax.conv_general_dilated(x, k, (1,), "SAME"),
            (floats(1, 1, 5), floats(1, 1, 3)),
            2 * 13,
        ),
        (lambda a, b: lax.linalg.triangular_solve(a, b, left_side=True),
         (floats(4, 4), floats(4, 2)), 4 * 4 * 2),
        (lax.linalg.lu, (floats(2, 6, 3),), 2 * 3 * 3 * (6 - 1)),
        # 2 n^2 (m - n / 3), and of Q's three columns 4 m n^2 - 2 (m + n) n^2 + 4 n^3 / 3.
        (lambda a: lax.linalg.qr(a, full_matrices=False), (floats(6, 3),),
         2 * 9 * 5 + 4 * 6 * 9 - 2 * 9 * 9 + 36),
        (lambda a: lax.linalg.svd(a, compute_uv=False), (floats(6, 3),), 4 * 6 * 9 - 36),
        (lambda a: lax.linalg.svd(a, full_matrices=False), (floats(6, 3),), 6 * 6 * 9 + 20 * 27),
        (lambda a: lax.linalg.eigh(a, symmetrize_input=False), (floats(4, 4),), 9 * 64),
        (jnp.fft.rfft, (floats(10, 32),), 8 * 10 * 32 * 5),
        (jnp.fft.irfft, (jax.ShapeDtypeStruct((10, 17), jnp.complex64),), 8 * 10 * 32 * 5),
        (jnp.fft.fft2, (jax.ShapeDtypeStruct((8, 4), jnp.complex64),), 8 * 32 * (3 + 2)),
    ],
)  # fmt: skip
def test_flop_by_hand(function, args, flops):
    assert ours(function, *args)[0] == flops


QUICK = frozenset(("mlp-training", "lenet-training", "dcgan", "gru", "neural-ode"))


def _cases():
    for model in MODELS:
        slow = () if model in QUICK else (pytest.mark.slow,)
        yield pytest.param(model, JaxOptions(), id=model, marks=slow)
        if model in ("gru", "neural-ode"):
            yield pytest.param(model, JaxOptions(unroll_limit=0), id=f"{model}, folded")


@pytest.mark.parametrize(("model", "options"), [*_cases()])
def test_within_five_percent_of_xla(model, options):
    row = compare(model, options)
    assert row.flops_ratio == pytest.approx(1, abs=0.05)
    assert row.bytes_ratio == pytest.approx(1, abs=0.05)
