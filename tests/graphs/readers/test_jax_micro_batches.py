"""Tests of micro-batches: equal updates, names, ways back of weights, refusals."""

from __future__ import annotations

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.jax.training.loss_training import in_micro_batches, loss_training
from go_rl.graphs.readers.jax.training.micro_batches import TrainingIteration
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
