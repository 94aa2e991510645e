"""Which kernels of a model are chosen to be measured."""

from dataclasses import replace
from itertools import pairwise

import jax.numpy as jnp
import numpy as np
import pytest

from go_rl.costs.kernels.measure.sampling import sample_kernels
from go_rl.costs.timing.config import SamplingConfig
from go_rl.graphs.cutting.kernel_set import cut_kernels
from go_rl.graphs.readers.jax.reader import trace_jax


@pytest.fixture(scope="module")
def graph():
    def mlp(x, weights):
        for i, w in enumerate(weights):
            x = jnp.tanh(x @ w * (1.0 + i))
        return x

    widths = [8, 16, 32, 64, 128]
    weights = [jnp.ones(pair) for pair in pairwise(widths)]
    return trace_jax(mlp, jnp.ones((4, 8)), weights, weights=(1,))


def test_kernels_are_distinct_and_their_nodes_are_named(graph):
    sampled = sample_kernels(graph, SamplingConfig())
    assert sampled is not None
    assert len(set(sampled.kernels.hashes)) == sampled.kernels.num_kernels == len(sampled.nodes)
    assert any(len(nodes) > 1 for nodes in sampled.nodes)
    for hash_, nodes in zip(sampled.kernels.hashes, sampled.nodes, strict=True):
        leader = np.arange(graph.num_nodes)
        leader[list(nodes)] = min(nodes)
        kernels, leaders = cut_kernels(graph, leader)
        assert kernels.hashes[int(np.searchsorted(leaders, min(nodes)))] == hash_


def test_the_same_seed_gives_the_same_kernels(graph):
    one, two = (sample_kernels(graph, SamplingConfig(kernels=6, seed=3)) for _ in range(2))
    assert one is not None
    assert two is not None
    assert one.kernels.hashes == two.kernels.hashes
    assert one.kernels.num_kernels == 6


def test_known_kernels_are_left_out(graph):
    first = sample_kernels(graph, SamplingConfig())
    assert first is not None
    assert sample_kernels(graph, SamplingConfig(), first.kernels.hashes) is None


@pytest.mark.parametrize("limit", ["most_flops", "most_bytes"])
def test_large_kernels_are_left_out(graph, limit):
    """The largest product has 2 x 4 x 64 x 128 FLOP and a weight of 32 KiB."""
    config = replace(
        SamplingConfig(), **{limit: {"most_flops": 65_535.0, "most_bytes": 32_768.0}[limit]}
    )
    sampled = sample_kernels(graph, config)
    everything = sample_kernels(graph, SamplingConfig())
    assert sampled is not None
    assert everything is not None
    assert everything.kernels.graph.flops.max() == 65_536
    assert sampled.kernels.graph.flops.max() < 65_536
