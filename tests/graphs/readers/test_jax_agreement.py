"""FLOP and bytes of whole networks within 5 % of XLA's cost analysis; BERT-base as published."""

from __future__ import annotations

import jax
import pytest

from experiments.readers.cost_analysis_agreement import MODELS, compare
from go_rl.core import OpKind, ReadError
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.readers.jax.target import read_jax_target
from go_rl.graphs.zoo.bert import bert_base, bert_base_training

QUICK = frozenset(("mlp-training", "lenet-training", "dcgan", "gru", "neural-ode"))


def _parameters():
    slow = pytest.mark.slow
    return [pytest.param(m, id=m.name, marks=() if m.name in QUICK else (slow,)) for m in MODELS]


def test_the_catalogue_is_large_enough():
    assert len({m.name for m in MODELS}) == len(MODELS) >= 20
    assert {m.name for m in MODELS} >= QUICK


@pytest.mark.parametrize("model", _parameters())
def test_within_five_percent_of_xla(model):
    row = compare(model)
    assert row.flops_ratio == pytest.approx(1, abs=0.05)
    assert row.bytes_ratio == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize("model", [m for m in MODELS if m.name in ("gru", "neural-ode")])
def test_folded_loops_cost_within_five_percent_too(model):
    row = compare(model, JaxOptions(unroll_limit=0))
    assert row.flops_ratio == pytest.approx(1, abs=0.05)
    assert row.bytes_ratio == pytest.approx(1, abs=0.05)


def test_bert_base_has_the_published_size():
    _, args, weights = bert_base()
    assert weights == (0,)
    parameters = sum(x.size for x in jax.tree.leaves(args[0]))
    assert parameters == 109_482_240  # google-research/bert, uncased_L-12_H-768_A-12


def test_bert_base_flop_by_hand():
    graph = read_jax_target("go_rl.graphs.zoo.bert:bert_base", {"layers": 1})
    layer = 4 * 2 * 128 * 768 * 768 + 2 * 2 * 128 * 768 * 3072 + 2 * 2 * 128 * 128 * 768
    pooler = 2 * 768 * 768
    matmul = graph.kind == OpKind.MATMUL
    assert graph.flops[matmul].sum() == layer + pooler
    assert "encoder/layer_0/attention/dot_general.0" in graph.names
    assert graph.is_output.sum() == 2


@pytest.mark.slow
def test_bert_base_whole():
    graph = read_jax_target("go_rl.graphs.zoo.bert:bert_base", {"sequence": 128})
    assert 22e9 < graph.flops.sum() < 23e9
    assert not graph.is_backward.any()


def test_bert_training_step_has_a_backward_pass_and_tied_embedding():
    function, args, weights = bert_base_training(sequence=16, layers=1)
    graph = trace_jax(function, *args, weights=weights)
    products = graph.kind == OpKind.MATMUL
    assert graph.is_backward[products].sum() == 2 * (~graph.is_backward[products]).sum()
    assert graph.is_output.sum() == 1 + len(jax.tree.leaves(args[0]))


@pytest.mark.parametrize("sequence", [0, 513])
def test_bert_positions_bound_the_sequence(sequence):
    with pytest.raises(ReadError, match=r"sequence .* must be 1\.\.512"):
        bert_base(sequence=sequence)
