"""Tests of micro-batches: equal updates, names, ways back of weights, refusals."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import go_rl
from go_rl.api.load import save_graph
from go_rl.core import FREE
from go_rl.core.errors import ReadError
from go_rl.core.graph.micro_batch import WHOLE, micro_batch_of, without_micro_batch
from go_rl.graphs.cutting.layers import layer_names
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.readers.jax.training.loss_training import in_micro_batches, loss_training
from go_rl.graphs.readers.jax.training.micro_batches import TrainingIteration
from go_rl.graphs.readers.weight_returns import RETURN
from go_rl.graphs.zoo.models.language.attention import PreNormBlock


class Perceptron(nn.Module):
    """Two dense layers."""

    @nn.compact
    def __call__(self, x):
        return nn.Dense(8, param_dtype=x.dtype)(jnp.tanh(nn.Dense(16, param_dtype=x.dtype)(x)))


class Recurrent(nn.Module):
    """An LSTM over [batch, time, features]."""

    @nn.compact
    def __call__(self, x):
        return nn.RNN(nn.OptimizedLSTMCell(8, param_dtype=x.dtype))(x)


MODELS = {
    "perceptron": (Perceptron(), (8, 12)),
    "transformer": (PreNormBlock(2, 16), (8, 3, 8)),
    "lstm": (Recurrent(), (8, 3, 6)),
}


def example(name, dtype=jnp.float32):
    """A loss with concrete parameters and a batch of 8."""
    module, shape = MODELS[name]
    x = jax.random.normal(jax.random.key(1), shape, dtype)
    params = jax.tree.map(lambda p: p.astype(dtype), module.init(jax.random.key(0), x))
    y = jax.random.normal(jax.random.key(2), module.apply(params, x).shape, dtype)

    def loss(params, x, y):
        return jnp.square(module.apply(params, x) - y).mean()

    return loss, (params, x, y)


def close(a, b, tolerance):
    """Check that all leaves are equal to a tolerance, relative to the largest number of all:
    gradients that are zero, such as those of the bias of a key, are noise."""
    pairs = list(zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))
    largest = max(float(jnp.abs(other).max()) for _, other in pairs)
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * largest)


@pytest.mark.parametrize(
    ("name", "optimiser"),
    # Adam divides a gradient by its size: it would make steps of the noise of zero gradients.
    [
        ("perceptron", "sgd"),
        ("lstm", "adam"),
        pytest.param("transformer", "sgd", marks=pytest.mark.slow),
    ],
)
def test_updates_are_those_of_the_whole_batch(name, optimiser):
    loss, args = example(name)
    iteration, all_args, held = loss_training(loss, args, None, optimiser)
    given = [jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), a) for a in all_args[len(args) :]]
    whole = jax.jit(iteration)(*args, *given)
    parts = in_micro_batches(iteration, all_args, held, 2)
    close(jax.jit(parts)(*args, *given), whole, 1e-6)


@pytest.mark.parametrize(
    "name", ["perceptron", "lstm", pytest.param("transformer", marks=pytest.mark.slow)]
)
def test_gradients_in_double_precision(name):
    with jax.enable_x64(True):
        loss, args = example(name, jnp.float64)
        gradient = jax.value_and_grad(loss)
        parts = in_micro_batches(TrainingIteration(gradient), args, None, 2)
        close(jax.jit(parts)(*args), jax.jit(gradient)(*args), 1e-13)


def test_one_part_traces_the_function_itself():
    loss, args = example("perceptron")
    gradient = jax.value_and_grad(loss)
    assert str(jax.make_jaxpr(TrainingIteration(gradient))(*args)) == str(
        jax.make_jaxpr(gradient)(*args)
    )


def traced(count, optimiser="sgd", name="transformer"):
    """The graph of a training iteration in micro-batches."""
    loss, args = example(name)
    function, args, held = loss_training(loss, args, None, optimiser)
    if count > 1:
        function = in_micro_batches(function, args, held, count)
    return trace_jax(function, *args, weights=held, name=name)


def test_a_layer_has_one_scope_in_all_micro_batches():
    whole, parts = traced(1), traced(4)
    assert set(layer_names(parts)) - {RETURN} <= set(layer_names(whole))
    products = [n for n in parts.names if "dot_general" in n]
    assert len(products) == 4 * sum("dot_general" in n for n in whole.names)
    assert {micro_batch_of(n) for n in products} == {0, 1, 2, 3}
    assert parts.flops.sum() == pytest.approx(whole.flops.sum(), rel=0.1)
    assert parts.tied_bytes.sum() >= whole.tied_bytes.sum()  # read once, tied when read four times
    assert WHOLE not in {
        micro_batch_of(n) for n, b in zip(parts.names, parts.is_backward, strict=True) if b
    }


def test_names_and_scopes():
    assert without_micro_batch("micro_batch_3/enc/block") == ("enc/block", "@3")
    assert without_micro_batch("outer/micro_batch_12") == ("outer", "@12")
    assert without_micro_batch("enc/micro_batches") == ("enc/micro_batches", "")
    assert [micro_batch_of(n) for n in ("a/dot.1@2", "a/dot.1", 7)] == [2, WHOLE, WHOLE]


@pytest.mark.parametrize("optimiser", ["sgd", "adam"])
def test_updated_weights_return_to_the_other_micro_batches(optimiser):
    params = {"a": jax.ShapeDtypeStruct((64, 64), jnp.float32), "b": jnp.zeros(3)}

    def loss(params, x):
        return jnp.square(x @ params["a"]).mean() + params["b"].sum()

    function, args, held = loss_training(
        loss, (params, jax.ShapeDtypeStruct((6, 64), jnp.float32)), None, optimiser
    )
    graph = trace_jax(in_micro_batches(function, args, held, 3), *args, weights=held)
    returns = [n for n, op in enumerate(graph.op_type) if op == RETURN]
    assert [graph.names[n] for n in returns] == [f"{RETURN}/params/a@1", f"{RETURN}/params/a@2"]
    assert graph.edge_bytes[np.isin(graph.receivers, returns)].tolist() == [64 * 64 * 4] * 2
    product = {micro_batch_of(n): i for i, n in enumerate(graph.names) if "dot_general" in n
               and not graph.is_backward[i]}  # fmt: skip
    for number, node in enumerate(returns, 1):
        assert graph.colocation[node] == graph.colocation[product[number]] != FREE
    (update,) = {int(u) for u in graph.senders[np.isin(graph.receivers, returns)]}
    assert graph.op_type[update] == "sub"
    assert graph.colocation[update] == graph.colocation[product[0]]
    assert len({int(graph.colocation[p]) for p in product.values()}) == 3


def test_an_undivided_iteration_has_no_ways_back():
    graph = traced(1)
    assert RETURN not in graph.op_type
    assert (graph.colocation == FREE).all()


@pytest.mark.parametrize(
    ("count", "x", "y", "message"),
    [
        (3, (8, 4), (8, 4), "a batch of 8 does not divide into 3 .* choose 1, 2, 4, 8"),
        (9, (8, 4), (8, 4), "a batch of 8 does not divide into 9"),
        (2, (8, 4), (4, 4), "one batch axis of the same size"),
        (2, (), (), "found none"),
    ],
)
def test_batches_that_cannot_be_split(count, x, y, message):
    def loss(params, x, y):
        return (x * params["w"]).mean() + params["b"].mean() + y.mean()

    params = {"w": jnp.zeros(()), "b": jnp.zeros(3)}
    args = (params, *(jax.ShapeDtypeStruct(s, jnp.float32) for s in (x, y)))
    with pytest.raises(ReadError, match=message):
        in_micro_batches(TrainingIteration(jax.value_and_grad(loss)), args, None, count)


def test_an_axis_other_than_the_first():
    def total(w, x):
        return (w * x.sum(axis=0)).mean()

    w, x = jnp.float32(2.0), jnp.arange(12.0).reshape(3, 4)
    gradient = jax.value_and_grad(total)
    parts = TrainingIteration(gradient, axes={1: 1}, micro_batches=2)
    close(parts(w, x), gradient(w, x), 1e-6)
    with pytest.raises(ReadError, match="has no axis 2"):
        TrainingIteration(gradient, axes={1: 2}, micro_batches=2)(w, x)


def test_other_results_are_averaged_and_counters_kept():
    def loss(w, x):
        return (w * x).mean(), {"seen": jnp.int32(5), "mean": x.mean()}

    w, x = jnp.float32(2.0), jnp.arange(8.0)
    parts = TrainingIteration(jax.value_and_grad(loss, has_aux=True), micro_batches=4)
    (value, others), slope = parts(w, x)
    assert (value, slope, others["mean"], others["seen"]) == (7.0, 3.5, 3.5, 5)


def test_what_is_no_loss_or_no_iteration():
    loss, args = example("perceptron")

    def forward(params, x):
        return x

    with pytest.raises(ReadError, match="needs to know the loss"):
        in_micro_batches(loss, args, None, 2)
    with pytest.raises(ReadError, match=r"forward returns float32\[8,12\], and a training"):
        loss_training(forward, args[:2], None, "sgd")
    with pytest.raises(ReadError, match="no argument is known to be trained"):
        loss_training(loss, args, (), "sgd")
    with pytest.raises(ReadError, match="a training iteration already"):
        loss_training(TrainingIteration(jax.value_and_grad(loss)), args, None, "sgd")
    with pytest.raises(ReadError, match="micro_batches must be at least 1"):
        TrainingIteration(loss, micro_batches=0)


FILE = """
import jax, jax.numpy as jnp, go_rl
shape = lambda *s: jax.ShapeDtypeStruct(s, jnp.float32)
params = {"w": shape(32, 32), "v": shape(32, 32)}
def loss(params, x):
    return jnp.square(jnp.tanh(x @ params["w"]) @ params["v"]).mean()
loss.example_args = (params, shape(8, 32))
def factory(batch=8):
    return go_rl.TrainingIteration(jax.value_and_grad(loss)), (params, shape(batch, 32))
def own(micro_batches=1):
    return (lambda p, x: sum(loss(p, x) for _ in range(micro_batches))), loss.example_args
"""


def test_functions_of_the_user(tmp_path):
    file = tmp_path / "net.py"
    file.write_text(FILE)

    def products(name, **options):
        graph = go_rl.load(f"{file}:{name}", **options)
        return sum(op == "dot_general" for op in graph.op_type), graph.meta["dims"]

    assert products("loss", training="sgd") == (5, {})
    assert products("loss", training="sgd", micro_batches=4) == (20, {"micro_batches": 4})
    assert products("loss", training="sgd", dims={"micro_batches": 4})[0] == 20
    assert products("factory", dims={"batch": 16}, micro_batches=2) == (
        10, {"batch": 16, "micro_batches": 2},
    )  # fmt: skip
    assert products("own", micro_batches=3) == (6, {"micro_batches": 3})
    with pytest.raises(ReadError, match="a batch of 8 does not divide into 3"):
        products("loss", training="sgd", micro_batches=3)


def test_graphs_that_are_traced_already(tmp_path):
    path = tmp_path / "net.npz"
    save_graph(traced(1, name="perceptron"), path)
    assert go_rl.load(path, micro_batches=1).num_nodes
    with pytest.raises(ReadError, match="traced already; name the JAX loss"):
        go_rl.load(path, micro_batches=2)
    for name, message in {
        "rnnlm-2-layers": "choose zoo:rnnlm-2-layers-training",
        "resnet50": "the zoo has none of this network",
        "gpt2-large": "choose zoo:gpt2-large-training",
    }.items():
        with pytest.raises(ReadError, match=message):
            go_rl.load(f"zoo:{name}", micro_batches=2)


def test_batch_normalisation_is_noted():
    module = nn.BatchNorm(use_running_average=False)
    x = jnp.ones((4, 3))
    variables = module.init(jax.random.key(0), x)

    def loss(variables, x):
        with jax.named_scope("BatchNorm_0"):
            return module.apply(variables, x, mutable=["batch_stats"])[0].mean()

    for count, notes in ((1, 0), (2, 1)):
        iteration = TrainingIteration(jax.value_and_grad(loss), micro_batches=count)
        graph = trace_jax(iteration, variables, x, weights=(0,))
        assert sum("as GPipe does" in note for note in graph.meta["notes"]) == notes
