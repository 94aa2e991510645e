"""Graphs of JAX functions: nodes, edges, names, weights and outputs."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_graphs import edges_of

from go_rl.core import GraphError, OpKind, ReadError, UnknownOperatorError
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo.models.building import floats

PARAMS = {"dense": {"kernel": floats(20, 30), "bias": floats(30)}, "out": floats(30, 5)}


def network(params, x):
    with jax.named_scope("encoder"):
        hidden = jnp.tanh(x @ params["dense"]["kernel"] + params["dense"]["bias"])
    return hidden @ params["out"]


def test_a_two_layer_network_node_by_node():
    graph = trace_jax(network, PARAMS, floats(4, 20))
    encoder = [f"encoder/{name}.0" for name in ("dot_general", "add", "tanh")]
    assert graph.names == ("x", *encoder, "dot_general.1")
    assert graph.op_type == ("input", "dot_general", "add", "tanh", "dot_general")
    kinds = [OpKind.INPUT, OpKind.MATMUL, OpKind.ELEMENTWISE, OpKind.ELEMENTWISE, OpKind.MATMUL]
    assert graph.kind.tolist() == kinds
    assert graph.flops.tolist() == [0, 2 * 4 * 20 * 30, 4 * 30, 0, 2 * 4 * 30 * 5]
    assert graph.output_bytes.tolist() == [320, 480, 480, 480, 80]
    assert graph.weight_bytes.tolist() == [0, 2400, 120, 0, 600]
    assert graph.output_shape.tolist() == [[4, 20], [4, 30], [4, 30], [4, 30], [4, 5]]
    assert (graph.senders.tolist(), graph.receivers.tolist()) == ([0, 1, 2, 3], [1, 2, 3, 4])
    assert graph.edge_bytes.tolist() == [320, 480, 480, 480]
    assert graph.is_output.tolist() == [False, False, False, False, True]
    assert not len(graph.tied_bytes)
    assert graph.meta == {"format": "jax", "dims": {}, "notes": []}


@pytest.mark.parametrize(
    ("weights", "inputs"),
    [(None, ["b", "c"]), ((), ["a/0", "a/1", "b", "c"]), ((1,), ["a/0", "a/1", "c"])],
)
def test_which_arguments_are_weights(weights, inputs):
    def model(a, b, c):
        return a[0] + a[1] + b + c

    graph = trace_jax(model, [floats(3), floats(3)], floats(3), floats(3), weights=weights)
    assert [n for n, k in zip(graph.names, graph.kind, strict=True) if k == OpKind.INPUT] == inputs


def test_a_view_of_a_weight_is_still_the_weight():
    def model(w, x):
        view = jnp.swapaxes(w[0].astype(jnp.bfloat16), 0, 1).reshape(2, 15, 20)
        return jnp.einsum("bi,nij->bnj", x, view) + w[1].sum()

    x = jax.ShapeDtypeStruct((4, 15), jnp.bfloat16)
    graph = trace_jax(model, (floats(20, 30), floats(3)), x)
    product = graph.op_type.index("dot_general")
    assert "transpose" not in graph.op_type[:product]
    assert "reshape" not in graph.op_type[:product]
    assert graph.weight_bytes[product] == 20 * 30 * 2
    assert graph.weight_itemsize[product] == 2


def test_tied_weights_form_one_group():
    def model(w, x):
        return ((x @ w["tied"]) @ w["own"]) @ w["tied"]

    graph = trace_jax(model, {"tied": floats(20, 20), "own": floats(20, 20)}, floats(4, 20))
    assert (graph.tied_node.tolist(), graph.tied_array.tolist()) == ([1, 3], [0, 0])
    assert graph.tied_bytes.tolist() == [1600]


def test_several_results_are_told_apart_on_the_edges():
    def model(x):
        values, places = jax.lax.top_k(x, 2)
        return jnp.exp(values), places + 1

    graph = trace_jax(model, floats(3, 10))
    top = graph.op_type.index("top_k")
    edges, name = edges_of(graph), graph.names[top]
    assert (edges[name, "exp.0"], edges[name, "add.0"]) == ((24, 0), (24, 1))
    assert graph.output_bytes[top] == 48
    assert graph.is_output.sum() == 2


def test_backward_nodes_are_marked_and_updates_are_outputs():
    def step(params, x):
        grads = jax.grad(lambda p: jnp.square(network(p, x)).sum())(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, grads)

    graph = trace_jax(step, PARAMS, floats(4, 20))
    backward = {t for t, b in zip(graph.op_type, graph.is_backward, strict=True) if b}
    assert "dot_general" in backward
    assert "tanh" not in backward
    updates = [i for i, out in enumerate(graph.is_output) if out]
    assert [graph.op_type[i] for i in updates] == ["sub"] * 3
    assert sorted(graph.weight_bytes[updates]) == [120, 600, 2400]
    products = [i for i, t in enumerate(graph.op_type) if t == "dot_general"]
    assert graph.is_backward[products].sum() == 3


@jax.custom_vjp
def gate(x):
    return jnp.sin(x)


gate.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (jnp.cos(x) * g,))
TABLE = np.ones((20, 20), np.float32)


@pytest.mark.parametrize(
    ("function", "operators"),
    [
        (lambda x: jax.nn.relu(gate(jax.checkpoint(jnp.exp)(jax.jit(jax.nn.relu)(x)))),
         ["max", "exp", "sin", "max"]),
        (lambda x: jax.lax.stop_gradient(x) + jnp.float32(1), ["add"]),
        # An array that is closed over is a weight, a scalar a literal.
        (lambda x: (x @ TABLE) * np.float32(2), ["dot_general", "mul"]),
        (functools.partial(jnp.add, 1.0), ["add"]),
        (lambda x: x + jnp.arange(20.0), ["iota", "broadcast_in_dim", "add"]),
    ],
)  # fmt: skip
def test_which_operators_are_nodes(function, operators):
    graph = trace_jax(function, floats(4, 20))
    assert [op for op in graph.op_type if op != "input"] == operators
    assert graph.weight_bytes.sum() == 1600 * operators.count("dot_general")
    assert (graph.kind == OpKind.CONSTANT).sum() == operators.count("iota")


@pytest.mark.parametrize("trips", [600, pytest.param(17_000, marks=pytest.mark.slow)])
def test_long_programs_need_no_recursion(trips):
    def body(x, _):
        return jnp.tanh(x * 1.5) + x, None

    options = JaxOptions(unroll_limit=100_000)
    graph = trace_jax(
        lambda x: jax.lax.scan(body, x, None, length=trips)[0], floats(8), options=options
    )
    assert graph.num_nodes == 3 * trips + 1


def opaque(x):
    return jax.pure_callback(lambda v: v, floats(3), x) + 1


def test_unknown_primitives_are_named_or_counted_by_bytes():
    with pytest.raises(UnknownOperatorError, match=r"'pure_callback'.*--unknown bytes"):
        trace_jax(opaque, floats(3))
    graph = trace_jax(opaque, floats(3), options=JaxOptions(unknown="bytes"))
    assert graph.bytes_accessed[graph.op_type.index("pure_callback")] == 24


@pytest.mark.parametrize(
    ("function", "args", "options", "error", "message"),
    [
        (lambda x, y: x @ y, (floats(3, 4), floats(3, 4)), {}, ReadError, "raised while .* traced"),
        (lambda x: 1 / 0, (floats(3),), {}, ReadError, "ZeroDivisionError: division by zero"),
        (lambda x: x, (floats(3),), {"weights": (1,)}, ReadError, r"argument 1; .* 0\.\.0"),
        (lambda x: None, (floats(3),), {}, GraphError, "no nodes"),
    ],
)
def test_bad_functions(function, args, options, error, message):
    with pytest.raises(error, match=message):
        trace_jax(function, *args, **options)
