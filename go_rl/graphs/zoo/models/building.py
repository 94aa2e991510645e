"""Parts of every network here: abstract arguments, abstract parameters, training iterations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
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


LEVELS = 256
"""Values of the random bytes that are compared: the rate is rounded to this many."""


def dropout(x: Any, rate: float) -> Any:
    """Return ``x`` with a share of its elements zero and the others divided by what is kept; 0: as
    it is, without a node.

    Every call draws the same numbers: the graph is priced and planned, no network learns from it.
    """
    if rate == 0:
        return x
    drawn = jax.random.bits(jax.random.key(0), x.shape, jnp.uint8)
    kept = drawn >= round(rate * LEVELS)
    return jnp.where(kept, x / (1 - rate), 0.0)


@dataclass(frozen=True)
class ZooModel:
    """One network of the zoo."""

    name: str
    """Unique, lower case, words joined by hyphens: ``resnet50``, ``bert-base-b8``."""
    family: str
    """Architecture family; the split never divides a test family: ``resnet``, ``bert``."""
    build: Callable[[], Built]
    """Returns the function, its abstract arguments and the positions of the weights."""
    training: bool = False
    """One training step instead of inference."""


def flax_entry(name: str, family: str, module: nn.Module, *inputs: Any) -> ZooModel:
    """Return the recipe of a flax module's forward pass on abstract ``inputs``."""
    return ZooModel(name, family, partial(flax_model, module, *inputs))


def training_form(model: ZooModel, axes: Mapping[int, int] | None = None) -> ZooModel:
    """Return the training iteration of a network, named ``NAME-training``; ``axes`` are those of
    `TrainingIteration`."""
    build = model.build
    return ZooModel(f"{model.name}-training", model.family, lambda: training(build(), axes), True)
