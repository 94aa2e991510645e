"""The networks over text and sound have their sizes, and trace to the graphs they should."""

from collections import Counter

import jax
import numpy as np
import pytest
from flax import linen as nn
from parameters import random_variables
from rounding import assert_rounded_alike

from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo.models.audio.networks import WaveNet, WaveRNN
from go_rl.graphs.zoo.models.building import flax_model, floats, integers
from go_rl.graphs.zoo.models.language.attention import TokenTable, causal_bias, shift
from go_rl.graphs.zoo.models.language.recurrent import GNMT, RNNLM, LSTMCell, Seq2Seq
from go_rl.graphs.zoo.models.language.transformers import (
    GPT,
    T5,
    MixtureOfExperts,
    position_buckets,
)


def _count(built):
    """Number of parameters of what is built."""
    return sum(x.size for x in jax.tree.leaves(built[1][0]))


def _reached_from(graph, start):
    """Mark every node that data of node ``start`` reaches."""
    reached = np.zeros(graph.num_nodes, bool)
    reached[start] = True
    for u, v in sorted(zip(graph.senders, graph.receivers, strict=True)):
        reached[v] |= reached[u]
    return reached


def test_seq2seq_has_the_published_size():
    built = flax_model(Seq2Seq(), integers(1, 2), integers(1, 2))
    # Sutskever 2014, section 3.4.
    assert _count(built) / 1e6 == pytest.approx(384, rel=0.001)


@pytest.mark.parametrize("layers", [2, 4, 8])
def test_gnmt_parameters_by_hand(layers):
    wide, inner = 4 * 1024 * 3 * 1024 + 4096, 4 * 1024 * 2 * 1024 + 4096
    encoder = 2 * inner + wide + (layers - 2) * inner
    attention = 2 * 1024 * 1024 + 1024
    tables = 2 * 16000 * 1024 + 1024 * 16000 + 16000
    by_hand = encoder + layers * wide + attention + tables
    built = flax_model(GNMT(layers), integers(1, 2), integers(1, 2))
    assert _count(built) == by_hand


def test_position_bias_of_t5_is_computed_once_and_feeds_every_layer():
    built = flax_model(T5(3, 64, 2, 128, 32, 100), integers(1, 8), integers(1, 8))
    graph = trace_jax(built[0], *built[1], weights=built[2])
    assert Counter(graph.op_type)["exp"] == 3 * 3
    assert Counter(graph.op_type)["log"] == 2 * 2
    bias = [i for i, count in Counter(graph.senders.tolist()).items() if count >= 3]
    shapes = [tuple(graph.output_shape[i][:4]) for i in bias]
    assert shapes.count((1, 2, 8, 8)) == 2


def test_causal_mask_of_gpt_is_built_in_every_layer():
    for layers in (1, 3):
        built = flax_model(GPT(layers, 32, 2, 50, 16), integers(1, 8))
        graph = trace_jax(built[0], *built[1], weights=built[2])
        assert Counter(graph.op_type)["iota"] == 2 * layers


def test_a_causal_model_does_not_look_ahead():
    model = GPT(2, 32, 2, 50, 16)
    tokens = np.arange(8)[None]
    changed = tokens + (tokens == 5)
    variables = random_variables(model.init, tokens)
    apply = jax.jit(model.apply)
    logits, later = apply(variables, tokens), apply(variables, changed)
    np.testing.assert_array_equal(logits[0, :5], later[0, :5])
    assert (logits[0, 5] != later[0, 5]).any()


def test_a_table_in_shards_is_the_table():
    """Seven rows in three shards of 3, 3 and 1."""
    model, tokens = TokenTable(7, 2, 3), np.array([[0, 2, 3, 6, 5]])
    params = random_variables(model.init, tokens)
    whole = np.concatenate([params["params"][f"tables_{i}"]["embedding"] for i in range(3)])
    assert whole.shape == (7, 2)
    np.testing.assert_array_equal(jax.jit(model.apply)(params, tokens), whole[tokens])
    states = np.array([[1.0, -2.0]], np.float32)
    logits = model.apply(params, states, method="attend")
    assert_rounded_alike(logits, states @ whole.T)


def test_causal_bias_with_a_past():
    allowed = np.asarray(causal_bias(2, 1)) == 0
    np.testing.assert_array_equal(allowed, [[True, True, False], [True, True, True]])


def test_shift_lines_scores_up_by_distance():
    """Entry k of a query's row is for distance K − 1 − k; afterwards column k is key k."""
    scores = np.broadcast_to(np.array([3.0, 2.0, 1.0, 0.0]), (1, 1, 2, 4))
    shifted = np.asarray(shift(scores))[0, 0]
    np.testing.assert_array_equal(shifted[1], [3, 2, 1, 0])
    np.testing.assert_array_equal(shifted[0, :3], [2, 1, 0])


def test_position_buckets_by_hand():
    distance = np.array([0, -1, -15, -16, -127, -1000, 5])
    np.testing.assert_array_equal(
        position_buckets(distance, both_ways=False), [0, 1, 15, 16, 31, 31, 0]
    )
    np.testing.assert_array_equal(
        position_buckets(distance, both_ways=True), [0, 1, 9, 10, 15, 15, 16 + 5]
    )


def test_lstm_cell_equals_flax():
    ours, theirs = LSTMCell(5, 3), nn.OptimizedLSTMCell(3)
    x = jax.random.normal(jax.random.key(0), (2, 5))
    state = tuple(jax.random.normal(jax.random.key(i), (2, 3)) for i in (1, 2))
    variables = random_variables(theirs.init, state, x)
    params = variables["params"]
    from_x = np.concatenate([params[f"i{g}"]["kernel"] for g in "ifgo"], axis=1)
    from_state = np.concatenate([params[f"h{g}"]["kernel"] for g in "ifgo"], axis=1)
    kernel = np.concatenate([from_x, from_state])
    bias = np.concatenate([params[f"h{g}"]["bias"] for g in "ifgo"])
    mine = ours.apply({"params": {"kernel": kernel, "bias": bias}}, state, x)
    other, _ = theirs.apply(variables, state, x)
    assert_rounded_alike(mine[0], other[0])
    assert_rounded_alike(mine[1], other[1])


def test_experts_share_each_token_by_the_gates():
    """With two experts, top-2 routing sends every token to both, weighted by softmax."""
    model = MixtureOfExperts(2, 6)
    x = jax.random.normal(jax.random.key(0), (5, 4))
    variables = random_variables(model.init, x)
    params = variables["params"]
    gates = nn.softmax(x @ params["Dense_0"]["kernel"] + params["Dense_0"]["bias"])
    experts = [nn.relu(x @ params["first"][e]) @ params["second"][e] for e in range(2)]
    expected = x + sum(gates[:, [e]] * experts[e] for e in range(2))
    assert_rounded_alike(jax.jit(model.apply)(variables, x), expected)


def test_recurrent_graphs_grow_by_layer_and_step():
    def nodes(layers, steps):
        built = flax_model(RNNLM(layers, 16, 50), integers(2, steps))
        return trace_jax(built[0], *built[1], weights=built[2]).num_nodes

    two, three, longer = nodes(2, 2), nodes(3, 2), nodes(2, 4)
    assert nodes(4, 2) - three == three - two
    assert nodes(2, 6) - longer == longer - two > 0


def test_attention_of_gnmt_reads_the_whole_source():
    built = flax_model(GNMT(2, 16, 50), integers(1, 4), integers(1, 3))
    graph = trace_jax(built[0], *built[1], weights=built[2])
    source = next(i for i, name in enumerate(graph.names) if graph.op_type[i] == "input")
    assert graph.is_output.sum() == 3
    assert _reached_from(graph, source)[graph.is_output].all()
    assert Counter(graph.op_type)["exp"] == 3 + 3


def test_wavernn_parameters_by_hand():
    width, half = 896, 448
    by_hand = width * 3 * width + 82 * 3 * width + 2 * (half * half + half * 256)
    assert _count(flax_model(WaveRNN(width), floats(2, 1, 80))) == by_hand


@pytest.mark.parametrize(("stacks", "layers", "field"), [(1, 3, 8), (2, 4, 7)])
def test_wavenet_sees_its_receptive_field_of_the_past(stacks, layers, field):
    """1 + sum of dilations: 1 + (1 + 2 + 4) for one stack of three layers."""
    model = WaveNet(stacks, layers, residual=4, skip=4)
    rng = np.random.default_rng(0)
    calm = rng.normal(size=(24, 1))
    changed = np.concatenate([calm[None], calm + np.eye(24)[..., None]]).astype(np.float32)
    shapes = jax.eval_shape(model.init, jax.random.key(1), changed)
    variables = jax.tree.map(lambda x: rng.normal(size=x.shape).astype(x.dtype), shapes)
    at_20 = np.asarray(jax.jit(model.apply)(variables, changed))[:, 20]
    seen = np.flatnonzero((at_20[1:] != at_20[0]).any(axis=-1))
    assert seen.tolist() == list(range(21 - field, 21))
