"""Segmented recurrent attention."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parameters import random_variables
from reference.network import segmented_attention
from rounding import assert_rounded_alike

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
