"""Networks of policies, and their configurations."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from parameters import random_variables
from policy.tiny import lively_agent, random_graph, small_padded
from reference.network import graphsage, segmented_attention
from rounding import assert_rounded_alike

from go_rl.core import PolicyError
from go_rl.policy.agent import encode
from go_rl.policy.config import check_policy
from go_rl.policy.encoder.graphsage import GraphSage
from go_rl.policy.encoder.segmented_attention import SegmentedAttention
from go_rl.policy.observations import buckets
from go_rl.policy.observations.buckets import BUCKETS, EDGES_PER_NODE, bucket


def test_padding_never_changes_what_real_nodes_get(monkeypatch):
    graph, agent = random_graph(3, 40), lively_agent()
    found = []
    for sizes in ((64,), (128,)):
        monkeypatch.setattr(buckets, "BUCKETS", sizes)
        padded = buckets.pad(graph)
        assert len(padded.real) == sizes[0]
        found.append(agent.encode(padded))
    small, large = found
    one, two = (np.asarray(x.heads["placement"])[:40] for x in (small, large))
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


WIDTH, HEADS, SEGMENT = 6, 2, 4


def make(nodes: int, recurrence: bool = True, seed: int = 0):
    """A layer as a function (compiled in one piece), its parameters and random nodes."""
    layer = SegmentedAttention(HEADS, SEGMENT, recurrence)
    h = jnp.asarray(np.random.default_rng(seed).standard_normal((nodes, WIDTH)), jnp.float32)
    return jax.jit(layer.apply), random_variables(layer.init, h, jnp.ones(nodes), seed=seed), h


@pytest.mark.parametrize("recurrence", [True, False])
@pytest.mark.parametrize("padding", [0, 3, 6])
def test_attention_is_the_loop_over_nodes(recurrence, padding):
    layer, params, h = make(16, recurrence)
    real = (np.arange(16) < 16 - padding).astype(np.float32)
    found = np.asarray(layer(params, h, jnp.asarray(real)))
    weights = params["params"]
    expected = segmented_attention(np.asarray(h), real, weights, HEADS, SEGMENT, recurrence)
    assert_rounded_alike(found[real > 0], expected[real > 0])


def test_an_unknown_policy_is_named():
    with pytest.raises(
        PolicyError, match=r"one of ring, orders, nodes, dispatch, not 'dispach'.*dispatch"
    ):
        check_policy("dispach")


@pytest.mark.parametrize(
    ("units", "edges", "expected"),
    [
        (1, 0, (256, 512)),
        (255, 512, (256, 512)),
        (255, 513, (256, 2048)),
        (256, 0, (640, 1280)),
        (200, 2049, (640, 5120)),
        (262143, 0, (262144, 524288)),
    ],
)
def test_the_smallest_bucket_with_room_for_a_padding_node(units, edges, expected):
    assert bucket(units, edges) == expected


@pytest.mark.parametrize(
    ("units", "edges"), [(262144, 0), (10, BUCKETS[-1] * EDGES_PER_NODE[-1] + 1)]
)
def test_a_graph_larger_than_any_bucket_is_refused_with_a_way_out(units, edges):
    with pytest.raises(PolicyError, match=f"has {units} units and {edges} edges.*linear-dp"):
        bucket(units, edges)
