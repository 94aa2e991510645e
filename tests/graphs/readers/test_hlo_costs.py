"""Totals of HLO and StableHLO text against XLA's own cost analysis of the same program."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

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
