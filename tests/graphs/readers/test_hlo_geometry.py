"""`Geometry` of HLO instructions: what XLA writes of JAX functions, read back, is what JAX said."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from go_rl.core import Geometry
from go_rl.graphs.readers.hlo.reader import read_hlo


def geometry(path, function, *args, op: str) -> Geometry:
    path.write_text(jax.jit(function).lower(*args).as_text("hlo"))
    graph = read_hlo(path)
    assert graph.geometry is not None
    return Geometry(*graph.geometry[graph.op_type.index(op)].tolist())


X = jnp.ones((2, 8, 8, 6))
W = jnp.ones((3, 3, 2, 12))


def conv(x, w):
    return lax.conv_general_dilated(
        x, w, (2, 1), ((1, 1), (0, 2)), rhs_dilation=(1, 2), feature_group_count=3,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("op", "function", "args", "expected"),
    [
        ("convolution", conv, (X, W),
         Geometry(window=9.0, stride=2.0, padding=4.0, window_dilation=2.0, groups=3.0, minor=1.0)),
        ("dot", lambda a, b: lax.dot_general(a, b, (((1,), (1,)), ((), ()))),
         (jnp.ones((4, 5)), jnp.ones((6, 5))), Geometry(minor=3.0)),
        ("dot", lambda a, b: a @ b, (jnp.ones((4, 5)), jnp.ones((5, 6))), Geometry(minor=1.0)),
        ("reduce", lambda x: x.sum(-1), (X,), Geometry(minor=1.0)),
        ("reduce", lambda x: x.sum(0), (X,), Geometry()),
        # The result has a layout in which nothing moves.
        ("transpose", lambda x: x.transpose(0, 1, 3, 2) + 1, (X,), Geometry()),
        ("concatenate", lambda x: jnp.concatenate([x, x], 3), (X,), Geometry(minor=1.0)),
        ("reduce-window", lambda x: lax.reduce_window(
            x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID"), (X,),
         Geometry(window=4.0, stride=4.0)),
        ("tanh", jnp.tanh, (X,), Geometry()),
    ],
)  # fmt: skip
def test_by_hand(op, function, args, expected, tmp_path):
    assert geometry(tmp_path / "test.hlo", function, *args, op=op) == expected
