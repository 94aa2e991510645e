"""Parts of every network here: abstract arguments, abstract parameters, training iterations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from go_rl.graphs.readers.jax.training.micro_batches import TrainingIteration

Built = tuple[Callable[..., Any], tuple[Any, ...], tuple[int, ...]]
"""Function, abstract arguments, positions of the weights."""


def floats(*shape: int) -> jax.ShapeDtypeStruct:
    """Return an abstract float32 array."""
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def integers(*shape: int) -> jax.ShapeDtypeStruct:
    """Return an abstract int32 array."""
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def key() -> Any:
    """Return an abstract random key."""
    return jax.eval_shape(lambda: jax.random.key(0))


def flax_model(module: nn.Module, *inputs: Any) -> Built:
    """Return the forward pass of a flax module; nothing is initialised."""
    variables = jax.eval_shape(module.init, key(), *inputs)

    def forward(variables: Any, *inputs: Any) -> Any:
        return module.apply(variables, *inputs)

    return forward, (variables, *inputs), (0,)


def training(built: Built, axes: Mapping[int, int] | None = None) -> Built:
    """Return one step of gradient descent on the mean square of the outputs; ``axes`` are those of
    `TrainingIteration`."""
    forward, args, weights = built

    def loss(params: Any, *inputs: Any) -> Any:
        return sum(jnp.square(y).mean() for y in jax.tree.leaves(forward(params, *inputs)))

    def descend(found: Any, params: Any, *inputs: Any) -> Any:
        value, gradients = found
        return value, jax.tree.map(lambda p, g: p - 0.01 * g, params, gradients)

    return TrainingIteration(jax.value_and_grad(loss), descend, axes), args, weights


def classifier_training(loss: Callable[..., Any], variables: tuple[Any, Any], images: Any) -> Built:
    """Return one step of gradient descent on a classifier's loss, batch statistics updated.

    ``loss(trained, statistics, images, labels)`` returns the loss and the new statistics;
    ``variables`` are the abstract two.
    """

    def descend(found: Any, trained: Any, *others: Any) -> Any:
        (value, statistics), slopes = found
        return value, jax.tree.map(lambda p, g: p - 0.01 * g, trained, slopes), statistics

    gradient = jax.value_and_grad(loss, has_aux=True)
    iteration = TrainingIteration(gradient, descend, {2: 0, 3: 0})
    return iteration, (*variables, images, integers(images.shape[0])), (0, 1)
