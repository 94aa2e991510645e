"""Launches of networks: counts and sizes by hand, what is recognised, what is refused."""

from collections import Counter

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import go_rl
from go_rl.costs.operators.launches import eager_launches
from go_rl.costs.operators.tables import OperatorError
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo.models.building import flax_model, floats

PRODUCTS = ("bmm", "linear", "conv")


def _launches(function, *shapes, weights=None):
    args = [s if isinstance(s, jax.ShapeDtypeStruct) else floats(*s) for s in shapes]
    return eager_launches(trace_jax(function, *args, weights=weights))


def _ops(launches):
    return [launch.op for launch in launches.each]


def _count(launches):
    return Counter((launch.op, tuple(launch.sizes.values())) for launch in launches.each)


def _flops(launches):
    product = np.isin(_ops(launches), PRODUCTS)
    return launches.rows.flops()[product].sum()


def test_bert_large_by_hand():
    """What Hugging Face's eager BERT launches at batch 1, 384 tokens, without a mask."""
    tokens, wide, inner, heads, layers = 384, 1024, 4096, 16, 24
    launches = eager_launches(go_rl.load("zoo:bert-large"))
    by_hand = {
        ("linear", (1, tokens, wide, wide)): 4 * layers,  # query, key, value, output
        ("linear", (1, tokens, wide, inner)): layers,
        ("linear", (1, tokens, inner, wide)): layers,
        ("linear", (1, 1, wide, wide)): 1,  # pooler
        ("bmm", (heads, tokens, 64, tokens)): layers,
        ("bmm", (heads, tokens, tokens, 64)): layers,
        ("softmax", (heads * tokens, tokens)): layers,
        ("divu", (heads * tokens, tokens)): layers,  # by the root of 64
        ("relu", (tokens * heads, 64)): layers,  # heads are copied together
        ("ln", (tokens, wide)): 2 * layers + 1,
        ("gelu", (tokens, inner)): layers,
        ("add", (tokens, wide)): 2 * layers + 2,  # residuals; three embeddings
        ("relu", (tokens, wide)): 2,  # rows of words and of types
        ("tanh", (1, wide)): 1,
    }
    assert _count(launches) == by_hand
    attention = 2 * 2 * heads * tokens * tokens * 64
    layer = 2 * tokens * (4 * wide * wide + 2 * wide * inner) + attention
    assert _flops(launches) == layers * layer + 2 * wide * wide
    moved = launches.rows.least_bytes()[np.array(_ops(launches)) == "ln"]
    assert moved.sum() == 49 * 2 * 4 * tokens * wide


def _norm(x, scale, shift):
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) * jax.lax.rsqrt(variance + 1e-6) * scale + shift


def _batch_norm(x, mean, variance, scale, shift):
    return (x - mean) * (jax.lax.rsqrt(variance + 1e-3) * scale) + shift


@pytest.mark.parametrize(
    ("function", "shapes", "weights", "expected"),
    [
        (jax.nn.softmax, [(6, 8)], (), [("softmax", (6, 8))]),
        (jax.nn.log_softmax, [(2, 3, 8)], (), [("softmax", (6, 8))]),
        (_norm, [(2, 3, 8), (8,), (8,)], (1, 2), [("ln", (6, 8))]),
        (lambda x: jax.nn.gelu(x, approximate=False), [(6, 8)], (), [("gelu", (6, 8))]),
        (lambda x: jax.nn.gelu(x, approximate=True), [(6, 8)], (), [("gelu", (6, 8))]),
        (jax.nn.silu, [(6, 8)], (), [("gelu", (6, 8))]),
        (jax.nn.relu6, [(6, 8)], (), [("relu", (6, 8))]),
        (jax.nn.relu, [(6, 8)], (), [("relu", (6, 8))]),
        (_batch_norm, [(2, 5, 5, 8), *[(8,)] * 4], (1, 2, 3, 4), [("mulu", (50, 8))]),
        (lambda x, y: x + y, [(6, 8), (6, 8)], (), [("add", (6, 8))]),
        (lambda x, y: x + y, [(6, 8), (8,)], (), [("addu", (6, 8))]),
        (lambda x: 3 * x, [(6, 8)], (), [("mulu", (6, 8))]),
        (lambda x: x.reshape(8, 6)[:4], [(6, 8)], (), None),
        (lambda x, w: x @ w, [(2, 3, 8), (8, 5)], (1,), [("linear", (1, 6, 8, 5))]),
        (lambda x, w, b: x @ w + b, [(6, 8), (8, 5), (5,)], (1, 2), [("linear", (1, 6, 8, 5))]),
        (lambda x, y: x @ y, [(3, 6, 8), (3, 8, 5)], (), [("bmm", (3, 6, 8, 5))]),
        (lambda x: x @ x.T, [(6, 8)], (), [("linear", (1, 6, 8, 6))]),
    ],
    ids=lambda v: getattr(v, "__name__", None),
)  # fmt: skip
def test_what_is_recognised(function, shapes, weights, expected):
    if expected is None:
        with pytest.raises(OperatorError, match="launches no kernel"):
            _launches(function, *shapes, weights=weights)
        return
    launches = _launches(function, *shapes, weights=weights)
    assert [(each.op, tuple(each.sizes.values())) for each in launches.each] == expected


def test_training_has_both_gradients_and_autograd_kernels():
    """One linear layer with bias, layer norm, and a mean square."""

    class Small(nn.Module):
        @nn.compact
        def __call__(self, x):
            x = nn.LayerNorm()(nn.relu(nn.Dense(32)(x)))
            return nn.Dense(8)(x)

    forward, args, _ = flax_model(Small(), floats(16, 64))

    def step(params, x):
        gradient = jax.value_and_grad(lambda p: jnp.square(forward(p, x)).sum())
        value, slopes = gradient(params)
        return value, jax.tree.map(lambda p, g: p - 0.1 * g, params, slopes)

    launches = eager_launches(trace_jax(step, *args, weights=(0,)))
    count = Counter((launch.op, launch.what) for launch in launches.each)
    products = [tuple(each.sizes.values()) for each in launches.each if each.op == "linear"]
    assert sorted(products[2:]) == sorted([(1, 8, 16, 32), (1, 16, 8, 32), (1, 32, 16, 64)])
    assert count["ln", "layer norm"] == count["mul", "gradient of layer norm"] == 1
    assert count["relu", "gradient of scale and shift"] == 1
    assert count["mul", "gradient of relu"] == 1
    assert count["relu", "gradient of a bias"] == 2
    assert count["add", "update"] == 6, "two layers and a norm, two arrays each"
