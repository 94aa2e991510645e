"""JAX functions as targets, and in micro-batches."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from go_rl.core import ReadError
from go_rl.graphs.readers import load
from go_rl.graphs.readers.jax.target import named_function
from go_rl.graphs.readers.jax.training.loss_training import in_micro_batches, loss_training
from go_rl.graphs.readers.jax.training.micro_batches import TrainingIteration
from go_rl.graphs.readers.python_target import python_target
from go_rl.graphs.zoo.models.language.attention import PreNormBlock

MODULE = """
import jax
import jax.numpy as jnp

VALUE = 3


def floats(*shape):
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def dense(params, x):
    return x @ params["w"] + params["b"]


def factory(batch=4, width=20):
    params = {"w": floats(width, 30), "b": floats(30)}
    return dense, (params, floats(batch, width))


def direct(x):
    return x * 2


direct.example_args = (floats(7),)


def sized(x):
    return x * 2


def sized_args(batch=2):
    return (floats(batch),)


sized.example_args = sized_args


def bare(x):
    return x


def breaks():
    raise ValueError("first line\\nlast line")


def exits():
    raise SystemExit(0)


def breaks_in_tracing():
    return (lambda x: x.nothing), (floats(3),)


def returns_list():
    return [1, 2]


class Space:
    @staticmethod
    def inner():
        return direct, (floats(9),)
"""


def read_jax_target(target, dims):
    with python_target(target) as named:
        return named_function(named, dims).graph()


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "jax_target_network.py").write_text(MODULE)
    (tmp_path / "jax_target_broken.py").write_text("import no_such_dependency\n")
    (tmp_path / "jax_target_syntax.py").write_text("def f(:\n")
    (tmp_path / "jax_target_torch.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')\n"
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("module", ["jax_target_network", "jax_target_network.py"])
def test_factory_by_module_and_by_file(folder, module):
    graph = read_jax_target(f"{module}:factory", {"batch": 8})
    assert graph.name == "factory"
    assert graph.op_type[0] == "input"
    assert graph.flops.max() == 2 * 8 * 20 * 30
    assert graph.weight_bytes.sum() == 4 * (20 * 30 + 30)
    assert graph.meta["format"] == "jax"
    assert graph.meta["dims"] == {"batch": 8}


def test_a_folder_may_have_blanks_in_its_name(folder):
    (folder / "my nets").mkdir()
    (folder / "my nets" / "blank.py").write_text(MODULE)
    assert load("my nets/blank.py:direct").output_shape[0][0] == 7


@pytest.mark.parametrize(
    ("function", "dims", "elements"),
    [("direct", {}, 7), ("sized", {}, 2), ("sized", {"batch": 5}, 5), ("Space.inner", {}, 9)],
)
def test_example_arguments(folder, function, dims, elements):
    graph = read_jax_target(f"jax_target_network:{function}", dims)
    assert graph.flops.tolist() == [0, elements]


@pytest.mark.parametrize(
    ("target", "dims", "message"),
    [
        ("jax_target_network", {}, "not of the form module:function"),
        (":factory", {}, "not of the form"),
        ("jax_target_netwrk:factory", {}, "no module 'jax_target_netwrk'.*'jax_target_network'"),
        ("jax_target_netwrk.py:factory", {}, "no file 'jax_target_netwrk.py'.*network.py"),
        ("jax_target_broken:f", {}, "importing .* failed: ModuleNotFoundError.*no_such_dependency"),
        ("jax_target_torch:f", {}, "No module named 'torch'; install it with: pip install 'go_rl"),
        ("jax_target_syntax:f", {}, "importing 'jax_target_syntax' failed: SyntaxError"),
        ("jax_target_network:factry", {}, "no attribute 'factry'; did you mean 'factory'"),
        ("jax_target_network:VALUE", {}, "'VALUE' is a int, not a function"),
        ("jax_target_network:bare", {}, r"takes arguments \(x\) and has no example_args"),
        ("jax_target_network:factory", {"bach": 8}, "no dim 'bach'; did you mean 'batch'"),
        ("jax_target_network:direct", {"batch": 8}, "example_args is fixed, so dim 'batch'"),
        ("jax_target_network:breaks", {}, "factory raised: ValueError: first line"),
        ("jax_target_network:exits", {}, "factory raised: SystemExit: 0"),
        ("jax_target_network:breaks_in_tracing", {}, "raised while it was traced: AttributeError"),
        ("jax_target_network:returns_list", {}, "must return .* returned a list"),
    ],
)
def test_wrong_targets(folder, target, dims, message):
    with pytest.raises(ReadError, match=message):
        read_jax_target(target, dims)


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
