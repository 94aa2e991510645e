"""GraphSAGE with max-pool aggregation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parameters import random_variables
from reference.network import graphsage
from rounding import assert_rounded_alike

from go_rl.policy.encoder.graphsage import GraphSage, max_pool


def test_the_largest_value_over_the_sources_by_hand():
    values = jnp.array([[1.0, 5.0], [2.0, 4.0], [9.0, 9.0], [0.0, 0.0]])
    senders, receivers = jnp.array([0, 1, 3]), jnp.array([2, 2, 0])
    pooled = max_pool(values, senders, receivers)
    assert pooled.tolist() == [[0.0, 0.0], [0.0, 0.0], [2.0, 5.0], [0.0, 0.0]]


@pytest.mark.parametrize("seed", range(3))
def test_a_layer_is_the_loop_over_nodes(seed):
    rng = np.random.default_rng(seed)
    h = rng.standard_normal((9, 4)).astype(np.float32)
    edges = [(u, v) for v in range(9) for u in range(v) if rng.random() < 0.3]
    senders, receivers = jnp.array(edges, jnp.int32).T
    layer = GraphSage(4)
    params = random_variables(layer.init, jnp.asarray(h), senders, receivers, seed=seed)
    found = jax.jit(layer.apply)(params, jnp.asarray(h), senders, receivers)
    expected = graphsage(h, edges, params["params"])
    assert_rounded_alike(found, expected)


def test_producers_and_consumers_are_told_apart():
    h = jnp.asarray(np.random.default_rng(0).standard_normal((3, 4)), jnp.float32)
    one, two = jnp.array([0, 1]), jnp.array([1, 2])
    layer = GraphSage(4)
    params = random_variables(layer.init, h, one, two)
    apply = jax.jit(layer.apply)
    forward, backward = apply(params, h, one, two), apply(params, h, two, one)
    assert np.abs(np.asarray(forward) - np.asarray(backward)).max() > 1e-3
