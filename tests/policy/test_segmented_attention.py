"""Segmented recurrent attention."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parameters import random_variables
from reference.network import segmented_attention
from rounding import assert_rounded_alike

from go_rl.policy.encoder import segmented_attention as module
from go_rl.policy.encoder.segmented_attention import SegmentedAttention

WIDTH, HEADS, SEGMENT = 6, 2, 4
ATTENTION = SegmentedAttention(HEADS, SEGMENT, True)


def make(nodes: int, recurrence: bool = True, seed: int = 0):
    """A layer as a function (compiled in one piece), its parameters and random nodes."""
    layer = SegmentedAttention(HEADS, SEGMENT, recurrence)
    h = jnp.asarray(np.random.default_rng(seed).standard_normal((nodes, WIDTH)), jnp.float32)
    return jax.jit(layer.apply), random_variables(layer.init, h, jnp.ones(nodes), seed=seed), h


@pytest.mark.parametrize("recurrence", [True, False])
@pytest.mark.parametrize("padding", [0, 3, 6])
def test_a_layer_is_the_loop_over_nodes(recurrence, padding):
    layer, params, h = make(16, recurrence)
    real = (np.arange(16) < 16 - padding).astype(np.float32)
    found = np.asarray(layer(params, h, jnp.asarray(real)))
    weights = params["params"]
    expected, _ = segmented_attention(np.asarray(h), real, weights, HEADS, SEGMENT, recurrence)
    assert_rounded_alike(found[real > 0], expected[real > 0])


def test_a_node_sees_its_segment_and_the_one_before_only():
    layer, params, h = make(16)
    real = jnp.ones(16)
    plain = np.asarray(layer(params, h, real))
    for changed in range(4):
        other = h.at[changed * SEGMENT].add(1.0)
        moved = np.abs(np.asarray(layer(params, other, real)) - plain).max(axis=1) > 1e-6
        seen = moved.reshape(-1, SEGMENT).any(axis=1).tolist()
        assert seen == [segment in (changed, changed + 1) for segment in range(4)]


def test_without_recurrence_segments_know_nothing_of_each_other():
    layer, params, h = make(12, recurrence=False)
    whole = np.asarray(layer(params, h, jnp.ones(12)))
    apart = [layer(params, h[i : i + 4], jnp.ones(4)) for i in (0, 4, 8)]
    assert_rounded_alike(whole, np.concatenate(apart))


def test_no_gradient_flows_into_the_segment_before():
    layer, params, h = make(8)

    def second_segment(nodes):
        return jnp.sum(layer(params, nodes, jnp.ones(8))[SEGMENT:] ** 2)

    gradient = np.asarray(jax.jit(jax.grad(second_segment))(h))
    assert np.all(gradient[:SEGMENT] == 0.0)
    assert np.all(np.abs(gradient[SEGMENT:]).max(axis=1) > 0)


def test_pieces_give_what_one_piece_gives(monkeypatch):
    _, params, h = make(10 * SEGMENT)
    real = jnp.asarray(np.arange(10 * SEGMENT) < 33, jnp.float32)

    def loss_and_slope():
        layer = SegmentedAttention(HEADS, SEGMENT, True)

        def loss(nodes):
            return jnp.sum(layer.apply(params, nodes, real)[:33] ** 2)

        return jax.jit(jax.value_and_grad(loss))(h)

    whole, slope = loss_and_slope()
    monkeypatch.setattr(module, "SEGMENTS_AT_ONCE", 3)
    pieces, same = loss_and_slope()
    assert_rounded_alike(float(pieces), float(whole))
    assert_rounded_alike(same, slope)


def test_pairs_grow_linearly_with_the_nodes():
    """2 L keys for each node: the sizes of the attention weights inside the compiled function."""
    counted = []
    for segments in (4, 8):
        _, params, h = make(segments * SEGMENT)
        traced = jax.make_jaxpr(ATTENTION.apply)(params, h, jnp.ones(len(h)))
        sizes = [v.aval.size for eqn in traced.eqns for v in eqn.outvars]
        shapes = [v.aval.shape for eqn in traced.eqns for v in eqn.outvars]
        assert (segments, HEADS, SEGMENT, 2 * SEGMENT) in shapes
        counted.append(max(sizes))
    assert counted == [HEADS * SEGMENT * 2 * SEGMENT * segments for segments in (4, 8)]
    _, twin = segmented_attention(
        np.zeros((16, WIDTH)), np.ones(16), make(16)[1]["params"], HEADS, SEGMENT, True
    )
    assert twin == 16 * 2 * SEGMENT - SEGMENT * SEGMENT
