"""GraphSAGE with max-pool aggregation."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parameters import random_variables
from reference.network import graphsage
from rounding import assert_rounded_alike

from go_rl.policy.encoder.graphsage import GraphSage


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
