"""Twelve networks in JAX: FLOP of the PyTorch readings within 1 %, parameters to the byte."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from experiments.readers.jax_networks import NETWORKS, jax_graph
from experiments.readers.torch_networks import NETWORKS as COUNTED
from experiments.readers.torch_readings import STORED, products, ring_bound, weights_once

RESULTS = Path(__file__).parents[3] / "experiments" / "results" / "torch_readings.csv"
QUICK = ("llama_block", "lstm", "mobilenet_v3", "unet")
SAME_BOUND = frozenset(("resnet50", "gpt2", "llama_block", "unet", "lstm"))
"""Networks whose bound an operator decides that all readings have; that of the others is their
whole work, which has more bytes where operators are finer (see the page of `torch_readings`)."""


@pytest.fixture(scope="module")
def recorded():
    """The rows of the ``.pt2`` archives."""
    with RESULTS.open() as file:
        return {row["network"]: row for row in csv.DictReader(file) if row["door"] == "pt2"}


def test_the_networks_are_those_of_pytorch(recorded):
    assert list(NETWORKS) == list(COUNTED) == list(recorded)


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in NETWORKS]
)
def test_a_network_costs_what_its_twin_in_pytorch_costs(name, recorded):
    graph, twin = jax_graph(name), recorded[name]
    assert graph.flops.sum() / 1e6 == pytest.approx(float(twin["mflop"]), rel=0.01)
    assert weights_once(graph) == float(twin["weight_bytes"]) - STORED.get(name, 0)
    assert products(graph) == pytest.approx(COUNTED[name].products(), rel=0.01)
    bound = 1e6 * ring_bound(graph) / float(twin["bound_us"])
    assert bound == pytest.approx(1, abs=0.02) if name in SAME_BOUND else bound > 1.02
