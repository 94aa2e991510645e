"""FLOP and bytes of whole networks within 5 % of XLA's cost analysis; BERT-base as published."""

from __future__ import annotations

import jax
import pytest

from experiments.readers.cost_analysis_agreement import MODELS, compare
from go_rl.core import OpKind
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo.bert import bert_base_training

QUICK = frozenset(("mlp-training", "lenet-training", "dcgan", "gru", "neural-ode"))


def _parameters():
    slow = pytest.mark.slow
    return [pytest.param(m, id=m.name, marks=() if m.name in QUICK else (slow,)) for m in MODELS]


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


def test_bert_training_step_has_a_backward_pass_and_tied_embedding():
    function, args, weights = bert_base_training(sequence=16, layers=1)
    graph = trace_jax(function, *args, weights=weights)
    products = graph.kind == OpKind.MATMUL
    assert graph.is_backward[products].sum() == 2 * (~graph.is_backward[products]).sum()
    assert graph.is_output.sum() == 1 + len(jax.tree.leaves(args[0]))
