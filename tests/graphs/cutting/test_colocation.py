"""Gradients and updates in the colocation classes of their forward operators."""

from __future__ import annotations

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from reference.small_rings import ring_problem

from go_rl.core import FREE, Objective, OpGraph, ProblemError, load_hardware
from go_rl.core.graph.check_graph import check_graph
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.cutting.colocation import UNKNOWN, forward_homes, with_colocation
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo import zoo_graph
from go_rl.objectives.makespan.workspace import MakespanWorkspace

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


def nodes(graph: OpGraph, op: str, scope: str = "", backward: bool | None = None) -> list[int]:
    """Nodes of a type whose names begin with the scope."""
    return [
        n for n in range(graph.num_nodes)
        if graph.op_type[n] == op and str(graph.names[n]).startswith(scope)
        and backward in (None, bool(graph.is_backward[n]))
    ]  # fmt: skip


def test_the_gradients_of_a_matrix_product_sit_with_it(graph):
    """The first layer has one (of its weight), the second two."""
    home = forward_homes(graph)
    for scope, count in (("first", 1), ("second", 2)):
        [forward] = nodes(graph, "dot_general", scope, backward=False)
        backward = nodes(graph, "dot_general", scope, backward=True)
        assert len(backward) == count
        assert set(home[backward].tolist()) == {forward}


def test_a_repeated_layer_pairs_in_reverse_order(graph):
    """The gradients of the last repetition come first: two of it, then two of the first."""
    home = forward_homes(graph)
    first, last = nodes(graph, "dot_general", "again", backward=False)
    found = home[nodes(graph, "dot_general", "again", backward=True)]
    assert sorted(found.tolist()) == [first, first, last, last]
    assert set(found[:2].tolist()) == {last}


def test_the_derivative_of_an_activation_belongs_to_it(graph):
    home = forward_homes(graph)
    for scope in ("first", "second"):
        [tanh] = nodes(graph, "tanh", scope)
        around = nodes(graph, "sub", scope) + nodes(graph, "mul", scope)
        assert around
        assert set(home[around].tolist()) == {tanh}


def test_an_update_sits_with_the_first_reader_of_its_weight(graph):
    home = forward_homes(graph)
    updates = [n for n in nodes(graph, "sub") if graph.is_output[n]]
    readers = [nodes(graph, "dot_general", s, backward=False)[0] for s in ("first", "second")]
    readers.append(nodes(graph, "dot_general", "again", backward=False)[0])
    assert len(updates) == 3
    assert set(home[updates].tolist()) == set(readers)
    scaled = [int(graph.senders[graph.receivers == n][0]) for n in updates]
    assert home[scaled].tolist() == home[updates].tolist()


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


def test_plans_keep_the_classes(graph):
    problem = make_problem(
        graph, load_hardware("p100x2"), ProblemOptions(Objective.MAKESPAN, colocation="gradients")
    )
    workspace = MakespanWorkspace(problem)
    drawn = np.random.default_rng(0).integers(0, 2, (8, graph.num_nodes))
    placed = workspace.decisions(drawn).device
    backward = np.flatnonzero(graph.is_backward & ~graph.is_fed)
    assert (placed[:, backward] == placed[:, forward_homes(graph)[backward]]).all()
    assert (placed != placed[:, :1]).any()


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


def test_classes_of_the_file_stay(graph):
    """A class of the file takes in the gradients of its nodes; a node of another class stays."""
    forward = nodes(graph, "dot_general", "second", backward=False)[0]
    gradient, other = nodes(graph, "dot_general", "second", backward=True)
    own = np.full(graph.num_nodes, FREE, np.int32)
    own[[forward, other]] = 7, 3
    found = with_colocation(replace(graph, colocation=own), "gradients").colocation
    assert (found[forward], found[gradient], found[other]) == (7, 7, 3)
    assert found[found > 7].size


def test_the_parts_of_an_operator_of_an_onnx_file_sit_together():
    graph = ring_problem(8, [(0, 1)], 2, colocation=[3, 3, *[-1] * 6]).graph
    places = ["graph.node[0]", "graph.node[0]", "graph.node[1]", "graph.node[2].a.node[0]",
              "graph.node[2].b.node[1]", *["function f.node[1]"] * 3]  # fmt: skip
    names = ["a", "b", "c", "if/a", "if/b", "lstm__1/step 0", "lstm__1/step 1", "lstm__2/step 0"]
    graph = replace(graph, names=tuple(names), source=tuple(f"Op(n) at {p}" for p in places))
    found = with_colocation(graph, "operators").colocation.tolist()
    assert found == [3, 3, FREE, 4, 4, 5, 5, FREE]


def test_words():
    inference = ring_problem(3, [(0, 1)], 2, colocation=[0, 0, -1]).graph
    assert with_colocation(inference, "graph") is inference
    assert with_colocation(inference, "gradients") is inference
    assert with_colocation(inference, "operators") is inference
    assert (with_colocation(inference, "none").colocation == FREE).all()
    with pytest.raises(ProblemError, match="graph, gradients, operators, none, not 'gradient'"):
        with_colocation(inference, "gradient")
