"""Encoder, decision heads, padding and the policy as a whole."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parameters import random_variables
from policy.tiny import TINY, lively_agent, random_graph, small_padded
from rounding import assert_rounded_alike

from go_rl.policy.agent import encode
from go_rl.policy.encoder.heads import DecisionHeads
from go_rl.policy.observations import buckets

DECISIONS = ("order", "placement")


@pytest.fixture(scope="module")
def layer_input():
    """[16, D] embeddings, [16, F] features and two padding nodes."""
    rng = np.random.default_rng(0)
    h = jnp.asarray(rng.standard_normal((16, TINY.hidden)), jnp.float32)
    x = jnp.asarray(rng.standard_normal((16, 3)), jnp.float32)
    return h, x, jnp.asarray(np.arange(16) < 14, jnp.float32)


def test_padding_never_changes_what_real_nodes_get(monkeypatch):
    graph, agent = random_graph(3, 40), lively_agent()
    found = []
    for sizes in ((64,), (128,)):
        monkeypatch.setattr(buckets, "BUCKETS", sizes)
        padded = buckets.pad(graph)
        assert len(padded.real) == sizes[0]
        found.append(agent.encode(padded))
    small, large = found
    for name in ("order", "placement"):
        one, two = (np.asarray(x.heads[name])[:40] for x in (small, large))
        assert_rounded_alike(one, two)
        assert one.std(axis=0).min() > 1e-3
    assert_rounded_alike(small.pooled, large.pooled)


def test_two_graphs_of_one_bucket_compile_once():
    agent = lively_agent()
    agent.encode(small_padded(0, 20))
    before = encode._cache_size()
    agent.encode(small_padded(1, 27))
    agent.encode(small_padded(2, 3))
    assert encode._cache_size() == before


def test_each_head_sees_the_head_before_and_none_after(layer_input):
    h, _, real = layer_input
    heads = DecisionHeads(TINY, DECISIONS)
    params = random_variables(heads.init, h, real)
    apply = jax.jit(heads.apply)
    plain = apply(params, h, real)

    def changed(name):
        moved = jax.tree.map(lambda x: x, params)
        moved["params"][name]["kernel"] = moved["params"][name]["kernel"] * 2.0
        found = apply(moved, h, real)
        return {task: not np.allclose(found[task], plain[task], atol=1e-6) for task in DECISIONS}

    assert changed("order_out") == {"order": True, "placement": True}
    assert changed("order_state") == {"order": True, "placement": True}
    assert changed("placement_out") == {"order": False, "placement": True}
