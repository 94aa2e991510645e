"""Loops and branches: unrolled, folded, counted."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from go_rl.core import OpKind, ReadError
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.reader import trace_jax

X = jax.ShapeDtypeStruct((8, 8), jnp.float32)
MATMUL = 2 * 8 * 8 * 8


def power(x, trips):
    return jax.lax.fori_loop(0, trips, lambda i, c: c @ c, x)


def folded(limit: int = 0) -> JaxOptions:
    return JaxOptions(unroll_limit=limit)


def test_a_loop_over_the_limit_is_one_node_that_costs_all_its_trips():
    graph = trace_jax(lambda x: power(x, 300), X, options=folded(300))
    assert graph.op_type == ("input", "scan")
    assert graph.kind[1] == OpKind.CONTROL
    assert graph.flops[1] == 300 * (MATMUL + 1)  # the loop counts its index
    assert "300 trips are folded" in graph.meta["notes"][0]


@settings(max_examples=8, deadline=None)
@given(trips=st.integers(0, 6), inner=st.integers(1, 3))
def test_folding_never_changes_the_flop(trips, inner):
    def body(c, _):
        return jax.lax.scan(lambda c, _: (jnp.sin(c) * 2 + c, None), c, None, length=inner)[0], None

    def model(x):
        return jax.lax.scan(body, x, None, length=trips)[0] + 1

    whole, one = trace_jax(model, X), trace_jax(model, X, options=folded())
    shallow = trace_jax(model, X, options=folded(trips * 1))
    assert whole.flops.sum() == one.flops.sum() == shallow.flops.sum()
    assert whole.flops.sum() == 64 * (2 * trips * inner + 1)


@pytest.mark.parametrize(
    ("start", "bound", "step", "trips"), [(0, 5, 1, 5), (3, 5, 1, 2), (0, 10, 3, 4), (7, 5, 1, 0)]
)
def test_while_with_known_bounds(start, bound, step, trips):
    def model(x):
        def again(c):
            return c[0] < c[2]

        def advance(c):
            return c[0] + step, c[1] @ c[1], c[2]

        return jax.lax.while_loop(again, advance, (start, x, jnp.int32(bound)))[1] + 1

    assert trace_jax(model, X).op_type.count("dot_general") == trips


def test_while_that_never_ends():
    with pytest.raises(ReadError, match="trip count"):
        trace_jax(lambda x: jax.lax.while_loop(lambda c: c[0] < 1, lambda c: c, (0, x)), X)
