"""Weights that operators share are held once, array by array, in HLO and JAX, in loops and out."""

import jax
import jax.numpy as jnp
import pytest
from jax import lax

from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.reader import trace_jax

FUSIONS = """HloModule m
f {
  p = f32[8,64] parameter(0)
  q = f32[64,64] parameter(1)
  r = f32[8,64] parameter(2)
  d = f32[8,64] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT t = f32[8,64] add(d, r)
}
ENTRY main {
  x = f32[8,64] parameter(0)
  w = f32[64,64] parameter(1)
  b1 = f32[8,64] parameter(2)
  b2 = f32[8,64] parameter(3)
  y = f32[8,64] fusion(x, w, b1), kind=kOutput, calls=f
  ROOT z = f32[8,64] fusion(y, w, b2), kind=kOutput, calls=f
}"""
SLICES = """HloModule m
ENTRY main {
  x = f32[8,64] parameter(0)
  w = f32[128,64] parameter(1)
  u = f32[64,64] slice(w), slice={[0:64], [0:64]}
  v = f32[64,64] slice(w), slice={[0:64], [0:64]}
  o = f32[64,64] slice(w), slice={[64:128], [0:64]}
  y = f32[8,64] dot(x, u), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  z = f32[8,64] dot(y, v), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT r = f32[8,64] dot(z, o), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}"""
ARRAY, BIAS = 64 * 64 * 4, 8 * 64 * 4


def _held(graph):
    """Bytes of all weights when one chip computes everything."""
    once = graph.weight_bytes.sum()
    for array, size in enumerate(graph.tied_bytes):
        once -= size * ((graph.tied_array == array).sum() - 1)
    return once


def test_fusions_share_one_of_two_arrays(loaded):
    graph = loaded(FUSIONS, weights=(1, 2, 3))
    assert graph.weight_bytes.tolist() == [0, ARRAY + 2048, ARRAY + 2048]
    assert graph.tied_bytes.tolist() == [ARRAY]
    assert _held(graph) == ARRAY + 2 * 2048


def test_the_same_slice_is_one_array(loaded):
    graph = loaded(SLICES, weights=(1,))
    assert graph.tied_bytes.tolist() == [ARRAY]
    assert _held(graph) == 2 * ARRAY


def _cell_and_more(parameters, x):
    def cell(carry, _):
        return jnp.tanh(carry @ parameters["w"] + parameters["b"]), None

    return lax.scan(cell, x, None, length=3)[0] @ parameters["w"]


PARAMETERS = {"w": jnp.ones((64, 64)), "b": jnp.ones((8, 64))}


@pytest.mark.parametrize("unroll", [0, 2000])
def test_a_loop_and_an_operator_behind_it(loaded, monkeypatch, unroll):
    monkeypatch.setattr("go_rl.graphs.readers.hlo.graph.UNROLL_NODES", unroll)
    x = jnp.ones((8, 64))
    text = jax.jit(_cell_and_more).lower(PARAMETERS, x).as_text("hlo")
    graphs = (
        trace_jax(_cell_and_more, PARAMETERS, x, options=JaxOptions(unroll_limit=unroll)),
        loaded(text, weights=(0, 1)),
    )
    for graph in graphs:
        assert _held(graph) == ARRAY + BIAS
        assert ARRAY in graph.tied_bytes


def test_layers_of_a_stack_are_held_once_by_both_passes(loaded):
    def loss(stack, x):
        return (lax.scan(lambda c, w: (jnp.tanh(c @ w), None), x, stack[0])[0] ** 2).sum()

    stack, x = (jnp.ones((3, 64, 64)), jnp.ones(2000)), jnp.ones((8, 64))
    text = jax.jit(jax.grad(loss)).lower(stack, x).as_text("hlo")
    for graph in (trace_jax(jax.grad(loss), stack, x, weights=(0,)), loaded(text, weights=(0,))):
        assert _held(graph) == 3 * ARRAY
        assert graph.tied_bytes.tolist().count(ARRAY) >= 2
