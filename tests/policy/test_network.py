"""Encoder, decision heads, padding and the policy as a whole."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parameters import random_variables
from policy.tiny import TINY, as_arrays, lively_agent, random_graph, small_padded
from reference.network import layer_norm
from rounding import assert_rounded_alike

from go_rl.policy.agent import encode
from go_rl.policy.encoder.encoder import AttentionLayer
from go_rl.policy.encoder.heads import DecisionHeads
from go_rl.policy.encoder.segmented_attention import SegmentedAttention
from go_rl.policy.observations import buckets
from go_rl.policy.ring.ring_policy import RingPolicy

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


def test_the_gate_of_conditioning_reads_the_input_features(layer_input):
    h, x, real = layer_input
    for conditioning in (True, False):
        layer = AttentionLayer(replace(TINY, conditioning=conditioning))
        params = random_variables(layer.init, h, x, real)
        assert ("condition" in params["params"]) is conditioning
        one, two = (jax.jit(layer.apply)(params, h, features, real) for features in (x, x + 1.0))
        same = np.allclose(np.asarray(one), np.asarray(two), atol=1e-6)
        assert same is not conditioning


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


def test_heads_are_the_recurrence_of_the_paper(layer_input):
    """H_t = FC(LN(A_{t-1}, H_{t-1})), A_t = FC(attention(H_t)); the task gets relu(H_t + A_t)."""
    h, _, real = layer_input
    heads = DecisionHeads(TINY, DECISIONS)
    params = random_variables(heads.init, h, real)["params"]
    found = jax.jit(heads.apply)({"params": params}, h, real)
    attended = state = h
    for task in DECISIONS:
        joined = jnp.concatenate([attended, state], -1)
        joined = layer_norm(joined, params[f"{task}_norm"])
        state = joined @ params[f"{task}_state"]["kernel"] + params[f"{task}_state"]["bias"]
        attention = SegmentedAttention(TINY.heads, TINY.segment)
        mixed = attention.apply({"params": params[f"{task}_attention"]}, state, real)
        attended = mixed @ params[f"{task}_out"]["kernel"] + params[f"{task}_out"]["bias"]
        expected = jnp.maximum(state + attended, 0.0)
        assert_rounded_alike(found[task], expected)


def test_layers_can_be_left_out():
    config = replace(TINY, sage_layers=0, attention_layers=0)
    graph, real = as_arrays(small_padded())
    key = jax.random.key(0)
    noise = jnp.ones(1)
    shapes = jax.eval_shape(RingPolicy(config).init, key, graph, real, key, noise, {})["params"]
    assert set(shapes["encoder"]) == {"embed", "pool"}
    assert not any("attention" in name for name in shapes["heads"])


def test_parameters_depend_on_no_graph():
    key = jax.random.key(0)
    one, two = (
        jax.eval_shape(
            RingPolicy(TINY).init, key, *as_arrays(small_padded(seed, units)), key, jnp.ones(1), {}
        )
        for seed, units in ((0, 5), (1, 40))
    )
    assert jax.tree.map(lambda x: x.shape, one) == jax.tree.map(lambda x: x.shape, two)
