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
