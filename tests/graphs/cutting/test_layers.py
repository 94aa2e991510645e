"""Classes of colocation, layers, and kernels cut out of a graph."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.small_rings import ring_problem
from reference.step_problems import graph_of, random_edges, random_kinds
from small_graphs import graph_of as small_graph

from go_rl.core import FREE, Geometry, OpGraph, OpKind, check_graph
from go_rl.graphs.cutting.colocation import UNKNOWN, forward_homes, with_colocation
from go_rl.graphs.cutting.fusion import Fuser
from go_rl.graphs.cutting.kernel_set import KernelSet, cut_kernels, join_kernels
from go_rl.graphs.cutting.layer_blocks import ELSEWHERE, layer_blocks
from go_rl.graphs.cutting.layers import in_layers, layers
from go_rl.graphs.readers.graph_builder import Node
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo import zoo_graph


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["a/x", "a/y", "b/x", "a/z"], [0, 0, 1, 0]),
        (["b/x", "a/x"], [0, 1]),
        (["x", "y"], [0, 0]),
        (["x", "a/y", "z", "b/y", "w"], [0, 0, 0, 1, 1]),
        (["a/x", "a/b/x", "a/y"], [0, 1, 0]),
        ([3, 4, 5], [0, 0, 0]),
        (["only"], [0]),
    ],
)
def test_layers_are_numbered_by_first_appearance_and_strays_follow_the_node_before(names, found):
    assert layers(graph_of(len(names), [], {"names": names})).tolist() == found


def test_without_scopes_a_layer_is_what_reads_one_array_of_weights_and_the_bias_behind_it():
    """Two cells, unrolled twice: product, bias, activation; then the update of both."""
    tied: list[str | None] = [None] * 16
    for array, readers in enumerate([(0, 6, 12), (1, 7, 13), (3, 9, 14), (4, 10, 15)]):
        for node in readers:
            tied[node] = str(array)
    kinds = [OpKind.MATMUL if node in (0, 3, 6, 9) else OpKind.ELEMENTWISE for node in range(16)]
    weights = [0.0 if array is None else 4.0 for array in tied]
    edges = [(node, node + 1, 1.0) for node in range(11) if node != 5]
    graph = graph_of(16, edges, {"kinds": kinds, "tied": tied, "weights": weights})
    assert layers(graph).tolist() == [0] * 3 + [1] * 3 + [0] * 3 + [1] * 3 + [0, 0, 1, 1]
    assert in_layers(graph).tolist() == [array is not None for array in tied]


def chain(*names):
    """Nodes one after the other."""
    edges = [(node, node + 1, 1.0) for node in range(len(names) - 1)]
    return graph_of(len(names), edges, {"names": names})


@pytest.mark.parametrize(
    ("names", "paths", "position"),
    [
        (["e/x", "m/layers.0/a", "m/layers.1/a", "h/x"], ["m.layers.0", "m.layers.1"],
         [0, 1, 2, 3]),
        (["/m/h.0/attn/MatMul", "/m/h.0/Add", "/m/h.1/Add"], ["m.h.0", "m.h.1"], [1, 1, 2]),
        (["enc/layer_0/x", "enc/layer_1/x", "y.0"], ["enc.layer_0", "enc.layer_1"], [1, 2, 3]),
        (["Net/Block_0/a", "Net/add.1", "Net/Block_1/a"], ["Net.Block_0", "Net.Block_1"],
         [1, 1, 2]),  # what lies between belongs to the last layer that it needs
        (["m/layers.0/h.0/a", "m/layers.0/h.1/a", "m/layers.1/h.0/a"],
         ["m.layers.0", "m.layers.1"], [1, 1, 2]),
        (["a/x", "b/x"], [], [ELSEWHERE, ELSEWHERE]),
        (["add.0", "add.1", "add.2"], [], [ELSEWHERE] * 3),
        (["m/layers.0/a", "m/b", "m/c"], [], [ELSEWHERE] * 3),
    ],
)  # fmt: skip
def test_layers_are_the_numbered_parts_that_hold_most_of_the_work(names, paths, position):
    found = layer_blocks(chain(*names))
    assert list(found.paths) == paths
    assert found.position.tolist() == position
    assert found.behind == len(paths) + 1


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


def cut(graph: OpGraph, leader: list[int]) -> KernelSet:
    return cut_kernels(graph, np.array(leader))[0]


def chain_of_kernels(*shapes: tuple[int, ...], minor: float = 0.0) -> OpGraph:
    """An input and elementwise operators behind it; the last is the result."""
    sizes = [float(4 * np.prod(shape)) for shape in shapes]
    nodes = (
        Node("abcdef"[i], "add" if i else "input", OpKind.ELEMENTWISE if i else OpKind.INPUT,
             flops=float(bool(i)), output_bytes=sizes[i], output_itemsize=4.0, output_shape=shape,
             is_output=i == len(shapes) - 1, geometry=Geometry(minor=minor))
        for i, shape in enumerate(shapes)
    )  # fmt: skip
    return small_graph(nodes, [(i, i + 1, size) for i, size in enumerate(sizes[:-1])], "chain")


def test_a_kernel_has_what_it_reads_as_inputs():
    """x -> a -> b -> c, and a -> c; a alone, then b and c together."""
    nodes = (
        Node(name, name, OpKind.INPUT if name == "x" else OpKind.ELEMENTWISE, output_bytes=8.0,
             output_shape=(2,)) for name in "xabc"
    )  # fmt: skip
    graph = small_graph(nodes, [(u, v, 8.0) for u, v in ((0, 1), (1, 2), (2, 3), (1, 3))])
    kernels, leaders = cut_kernels(graph, np.array([0, 1, 2, 2]))
    check_graph(kernels.graph)
    assert leaders.tolist() == [1, 2]
    assert kernels.graph.op_type == ("input", "input", "a", "b", "c")
    assert kernels.kernel.tolist() == [0, 1, 0, 1, 1]
    edges = set(zip(kernels.graph.senders.tolist(), kernels.graph.receivers.tolist(), strict=True))
    assert edges == {(0, 2), (1, 3), (1, 4), (3, 4)}, "a's tensor comes once, for both readers"
    assert kernels.graph.is_output.tolist() == [False, False, True, False, True]
    assert kernels.graph.output_bytes[:2].tolist() == [8.0, 8.0]


@pytest.mark.parametrize(
    "other",
    [
        cut(chain_of_kernels((2, 3), (2, 3)), [0, 1]),
        cut(chain_of_kernels((3, 2), (2, 3), (2, 3)), [0, 1, 1]),
        cut(chain_of_kernels((2, 3), (3, 2), (2, 3)), [0, 1, 1]),
        cut(chain_of_kernels((2, 3), (2, 3), (2, 3), minor=1.0), [0, 1, 1]),
        cut(chain_of_kernels((2, 3), (2, 3), (2, 3), (2, 3)), [0, 1, 1, 3]),
    ],
    ids=["shorter", "other input", "other shape", "other geometry", "read twice"],
)
def test_a_hash_tells_kernels_apart(other):
    one = cut(chain_of_kernels((2, 3), (2, 3), (2, 3)), [0, 1, 1])
    same = [h for h in other.hashes if h in one.hashes]
    assert same == ([] if other.num_kernels == 1 else list(one.hashes))


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000))
def test_cutting_loses_nothing_and_parts_join_again(seed):
    rng = np.random.default_rng(seed)
    count = int(rng.integers(2, 30))
    edges = random_edges(rng, count)
    graph = graph_of(count, edges, {"kinds": random_kinds(rng, count, edges)})
    wish = rng.integers(0, 4, (1, count))
    leader = Fuser(graph).leaders(wish, np.zeros((1, count), int))[0]
    kernels, leaders = cut_kernels(graph, leader)
    assert kernels.num_kernels == len(set(leader[~graph.is_fed].tolist()))
    if not kernels.num_kernels:
        return
    check_graph(kernels.graph)
    assert kernels.graph.flops.sum() == graph.flops.sum()
    for number, lead in enumerate(leaders):
        mine = kernels.kernel == number
        assert mine[kernels.graph.senders].sum() == mine[kernels.graph.receivers].sum()
        ops = sorted(np.array(kernels.graph.op_type)[mine & (kernels.graph.kind != OpKind.INPUT)])
        assert ops == sorted(np.array(graph.op_type)[leader == lead])
    order = rng.permutation(kernels.num_kernels)
    few = kernels.take(order[: (len(order) + 1) // 2])
    assert few.hashes == tuple(kernels.hashes[i] for i in order[: (len(order) + 1) // 2])
    both = join_kernels([few, kernels])
    check_graph(both.graph)
    assert both.hashes == few.hashes + kernels.hashes
