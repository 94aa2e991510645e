"""Gradients and updates in the colocation classes of their forward operators."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.small_rings import ring_problem

from go_rl.core import FREE, OpGraph
from go_rl.core.graph.check_graph import check_graph
from go_rl.graphs.cutting.colocation import UNKNOWN, forward_homes, with_colocation
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo import zoo_graph

WIDTH = 32


def loss(weights, x):
    """Two layers, and a third that runs twice."""
    for name in ("first", "second"):
        with jax.named_scope(name):
            x = jnp.tanh(x @ weights[name])
    for _ in range(2):
        with jax.named_scope("again"):
            x = jnp.sin(x @ weights["again"])
    with jax.named_scope("loss"):
        return (x * x).sum()


def training_step(weights, x):
    """Gradient descent."""
    gradients = jax.grad(loss)(weights, x)
    return jax.tree.map(lambda w, g: w - 0.1 * g, weights, gradients)


@pytest.fixture(scope="module")
def graph() -> OpGraph:
    matrix = jax.ShapeDtypeStruct((WIDTH, WIDTH), jnp.float32)
    weights = dict.fromkeys(("first", "second", "again"), matrix)
    return trace_jax(training_step, weights, jax.ShapeDtypeStruct((4, WIDTH), jnp.float32))


def test_every_backward_node_is_in_the_class_of_its_forward_node(graph):
    coloured, home = with_colocation(graph, "gradients"), forward_homes(graph)
    check_graph(coloured)
    backward = np.flatnonzero(graph.is_backward & ~graph.is_fed)
    assert backward.size
    assert (home[backward] != UNKNOWN).all()
    assert not graph.is_backward[home[backward]].any()
    assert (coloured.colocation[backward] != FREE).all()
    assert (coloured.colocation[backward] == coloured.colocation[home[backward]]).all()
    assert (coloured.colocation[graph.is_fed] == FREE).all()
    labels = coloured.colocation[home[backward]]
    assert len(set(labels.tolist())) == len(set(home[backward].tolist()))


@pytest.mark.parametrize("name", ["wavenet-2x18-training", "transformer-xl-2-layers-training"])
def test_gradients_of_the_zoo_stay_in_their_layer(name):
    """All have a home, and all but sums of gradients and few others one in their own scope."""
    graph = zoo_graph(name)
    home = forward_homes(graph)
    backward = graph.is_backward & ~graph.is_fed
    inner = [n for n in np.flatnonzero(backward) if graph.op_type[n] != "add_any"]
    assert (home[backward] != UNKNOWN).all()
    scopes = [str(each).rpartition("/")[0] for each in graph.names]
    same = [scopes[n] == scopes[home[n]] for n in inner]
    assert np.mean(same) > 0.9


def test_the_parts_of_an_operator_of_an_onnx_file_sit_together():
    graph = ring_problem(8, [(0, 1)], 2, colocation=[3, 3, *[-1] * 6]).graph
    places = ["graph.node[0]", "graph.node[0]", "graph.node[1]", "graph.node[2].a.node[0]",
              "graph.node[2].b.node[1]", *["function f.node[1]"] * 3]  # fmt: skip
    names = ["a", "b", "c", "if/a", "if/b", "lstm__1/step 0", "lstm__1/step 1", "lstm__2/step 0"]
    graph = replace(graph, names=tuple(names), source=tuple(f"Op(n) at {p}" for p in places))
    found = with_colocation(graph, "operators").colocation.tolist()
    assert found == [3, 3, FREE, 4, 4, 5, 5, FREE]
