"""`Geometry` of JAX primitives: what shapes alone do not tell."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from go_rl.core import GEOMETRY, Geometry
from go_rl.graphs.readers.jax.reader import trace_jax

X = jnp.ones((2, 8, 8, 6))
W = jnp.ones((3, 3, 2, 12))


def geometry(function, *args, op: str) -> Geometry:
    graph = trace_jax(function, *args)
    assert graph.geometry is not None
    return Geometry(*graph.geometry[graph.op_type.index(op)].tolist())


def conv(x, w, **options):
    numbers = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, w, (2, 1), ((1, 1), (0, 2)), dimension_numbers=numbers,
                                    feature_group_count=3, **options)  # fmt: skip


def test_a_convolution():
    found = geometry(lambda x, w: conv(x, w, rhs_dilation=(1, 2)), X, W, op="conv_general_dilated")
    assert found == Geometry(
        window=9.0, stride=2.0, padding=4.0, window_dilation=2.0, groups=3.0, minor=1.0
    )


def test_a_transposed_convolution_with_channels_first():
    def function(x, w):
        return lax.conv_transpose(x, w, (2, 2), "SAME", dimension_numbers=("NCHW", "OIHW", "NCHW"))

    x, w = jnp.ones((1, 4, 5, 5)), jnp.ones((7, 4, 3, 3))
    found = geometry(function, x, w, op="conv_general_dilated")
    assert (found.input_dilation, found.stride, found.minor) == (4.0, 1.0, 0.0)


@pytest.mark.parametrize(
    ("dims", "minor"),
    [(((1,), (0,)), 1.0), (((0,), (0,)), 0.0), (((1,), (1,)), 3.0), (((0,), (1,)), 2.0)],
)
def test_a_matrix_product_by_what_it_contracts(dims, minor):
    def function(a, b):
        return lax.dot_general(a, b, (dims, ((), ())))

    found = geometry(function, jnp.ones((5, 5)), jnp.ones((5, 5)), op="dot_general")
    assert found == Geometry(minor=minor)


@pytest.mark.parametrize(
    ("op", "function", "expected"),
    [
        ("reduce_sum", lambda x: x.sum(-1), Geometry(minor=1.0)),
        ("reduce_sum", lambda x: x.sum(0), Geometry()),
        ("argmax", lambda x: x.argmax(-1), Geometry(minor=1.0)),
        ("transpose", lambda x: x.transpose(0, 1, 3, 2), Geometry(minor=1.0)),
        ("transpose", lambda x: x.transpose(1, 0, 2, 3), Geometry()),
        ("concatenate", lambda x: jnp.concatenate([x, x], 1), Geometry()),
        ("concatenate", lambda x: jnp.concatenate([x, x], 3), Geometry(minor=1.0)),
        ("cumsum", lambda x: lax.cumsum(x, 3), Geometry(minor=1.0)),
        ("slice", lambda x: x[:, ::2], Geometry(stride=2.0)),
        ("pad", lambda x: lax.pad(x, 0.0, ((0, 0, 0), (1, 2, 3), (0, 0, 0), (0, 0, 0))),
         Geometry(padding=3.0, input_dilation=4.0)),
        ("broadcast_in_dim", lambda x: lax.broadcast_in_dim(x, (*x.shape, 5), (0, 1, 2, 3)),
         Geometry(minor=1.0)),
        ("tanh", jnp.tanh, Geometry()),
        ("reduce_window_max", lambda x: lax.reduce_window(
            x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"),
         Geometry(window=4.0, stride=4.0)),
    ],
)  # fmt: skip
def test_others(op, function, expected):
    assert geometry(function, X, op=op) == expected


def test_an_input_is_plain_and_a_scatter_knows_its_update():
    graph = trace_jax(lambda x, i: x.at[:, i].add(1.0), jnp.ones((4, 9)), jnp.zeros((2,), int))
    assert graph.geometry is not None
    assert graph.geometry.shape == (graph.num_nodes, len(GEOMETRY))
    assert graph.geometry[0].tolist() == list(Geometry().__dict__.values())
    assert geometry(jax.nn.relu, X, op="max") == Geometry()


def test_an_axis_may_be_a_number_of_numpys():
    """So flax's Swin splits its windows."""
    found = geometry(lambda x: lax.split(x, (3, 3), np.int64(3)), X, op="split")
    assert found.minor == 1.0
