"""Fused attention: sizes read off a node that names it, and off the pieces of a graph."""

import json
from collections import Counter

import pytest

import go_rl
from go_rl.costs.operators.launches import eager_launches

LLAMA = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 256,
    "num_hidden_layers": 2, "num_attention_heads": 8, "num_key_value_heads": 2,
    "intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 4096,
    "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
    "tie_word_embeddings": False,
}  # fmt: skip


def _attention(launches):
    return [dict(launch.sizes) for launch in launches.each if launch.op == "attention"]


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    path = tmp_path_factory.mktemp("llama") / "config.json"
    path.write_text(json.dumps(LLAMA))
    return path


def test_a_named_attention_tells_heads_groups_keys_and_mask(llama):
    """Causal over 96 tokens: 8 heads of 32 numbers, 4 of which share one head of keys."""
    launches = eager_launches(go_rl.load(llama, dims={"batch": 3, "sequence": 96}))
    sizes = {"batch": 3, "heads": 8, "groups": 4, "queries": 96, "keys": 96, "depth": 32,
             "causal": 1}  # fmt: skip
    assert _attention(launches) == [sizes, sizes]
    assert not launches.unlike.any()


def test_pieces_become_one_launch_on_request_only():
    graph = go_rl.load("zoo:bert-tiny")
    apart, fused = eager_launches(graph), eager_launches(graph, fuses_attention=True)
    count = Counter(launch.op for launch in apart.each)
    assert not _attention(apart)
    assert len(_attention(fused)) == count["softmax"] == 2
    left = Counter(launch.op for launch in fused.each)
    assert left["softmax"] == left["bmm"] == 0
    assert count["bmm"] == 4
    products = [launch for launch in apart.each if launch.op == "bmm"]
    assert _attention(fused)[0] == {
        "batch": 8, "heads": 2, "groups": 1,
        "queries": products[0].sizes["rows"], "keys": products[0].sizes["columns"],
        "depth": products[0].sizes["depth"], "causal": 0,
    }  # fmt: skip
    read = {node for launch in fused.each for node in launch.nodes}
    assert read == {node for launch in apart.each for node in launch.nodes}


def test_what_attention_does_is_counted_once():
    """Two products of 2 · 4 · 6 · 10 · 8 FLOP; queries, keys, values and result once."""
    from go_rl.costs.operators.launches.launch import Launch, operator_rows

    sizes = {"batch": 2, "heads": 4, "groups": 2, "queries": 6, "keys": 10, "depth": 8}
    plain, causal = (
        operator_rows([Launch("attention", {**sizes, "causal": each}, (0,), "attention")])
        for each in (0, 1)
    )
    assert plain.flops()[0] == 4 * 2 * 4 * 6 * 10 * 8
    assert causal.flops()[0] == plain.flops()[0] * 5.5 / 10
    assert plain.least_bytes()[0] == 4 * 2 * (2 * 4 * 8) * (6 + 10 / 2)
