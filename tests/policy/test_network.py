"""Encoder, decision heads, padding and the policy as a whole."""

import numpy as np
from policy.tiny import lively_agent, random_graph, small_padded
from rounding import assert_rounded_alike

from go_rl.policy.agent import encode
from go_rl.policy.observations import buckets


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
