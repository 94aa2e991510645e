"""Training iteration of a loss in JAX: gradients and an update, in micro-batches where wanted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any

import jax
import jax.numpy as jnp

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.jax.reader import traced, weight_positions
from go_rl.graphs.readers.jax.training.micro_batches import TrainingIteration, part_size
from go_rl.graphs.readers.model_options import Optimiser

RATE, DECAY, SQUARES_DECAY, TINY = 1e-3, 0.9, 0.999, 1e-8
"""Constants of the optimisers (Kingma and Ba 2015, algorithm 1); any value costs the same."""


def loss_training(
    loss: Callable[..., Any],
    args: Sequence[Any],
    weights: Collection[int] | None,
    optimiser: Optimiser,
) -> tuple[TrainingIteration, tuple[Any, ...], tuple[int, ...]]:
    """Return the training iteration of a loss, with its arguments and the positions of weights.

    Args:
        loss: returns one number, or it first and others after it.
        args: arrays or `jax.ShapeDtypeStruct`; the state of the optimiser is added behind.
        weights: positions of the arguments that are trained; None: the rule of `trace_jax`.
        optimiser: ``sgd``, plain gradient descent, or ``adam``.

    Raises:
        ReadError: the function returns no loss, or no argument is trained.
    """
    if isinstance(loss, TrainingIteration):
        raise ReadError("it is a training iteration already; leave training out")
    trained = tuple(sorted(weight_positions(args, {}, weights)))
    if not trained:
        raise ReadError(
            "no argument is known to be trained; name the positions of the parameters "
            "(--weight-args 0)"
        )
    data = {i: 0 for i in range(len(args)) if i not in trained}
    gradient = jax.value_and_grad(loss, argnums=trained, has_aux=_has_others(loss, args))
    if optimiser == "sgd":
        return TrainingIteration(gradient, _descent(trained), data), tuple(args), trained
    weights_of = [args[i] for i in trained]
    state = jax.eval_shape(lambda: (jnp.zeros(()), *[jax.tree.map(_zeros, weights_of)] * 2))
    iteration = TrainingIteration(_without_state(gradient), _adam(trained), data)
    return iteration, (*args, state), (*trained, len(args))


def in_micro_batches(
    function: Callable[..., Any], args: Sequence[Any], weights: Collection[int] | None, count: int
) -> TrainingIteration:
    """Return a training iteration with this many micro-batches.

    Args:
        function: the iteration.
        args: its arguments; where it does not say which are split, those that are no weights.
        weights: positions of the weights; None: the rule of `trace_jax`.
        count: micro-batches.

    Raises:
        ReadError: the function is none whose gradients are known, or the batch does not divide.
    """
    if isinstance(function, TrainingIteration):
        held = weight_positions(args, {}, weights)
        axes = function.axes or {i: 0 for i in range(len(args)) if i not in held}
        part_size(tuple(args), axes, count)
        return replace(function, micro_batches=count, axes=axes)
    raise ReadError(
        f"micro_batches={count} needs to know the loss, and this is a function whose inside cannot "
        "be split; name the function that returns the loss, with --training sgd or adam, or a "
        "factory that returns (go_rl.TrainingIteration(jax.value_and_grad(loss), update), args)"
    )


def _has_others(loss: Callable[..., Any], args: Sequence[Any]) -> bool:
    """Whether a function returns others after the loss; a `ReadError` where it returns no loss."""
    name = getattr(loss, "__name__", type(loss).__name__)
    jaxpr, tree = traced(loss, args, {}, name)
    results, single = jaxpr.out_avals, jax.tree.structure(0)
    others = tree != single
    first = results[0] if results and (not others or tree.children()[0] == single) else None
    if first is None or first.shape != () or not jnp.issubdtype(first.dtype, jnp.floating):
        shapes = ", ".join(str(each) for each in results[:3]) or "nothing"
        raise ReadError(
            f"{name} returns {shapes}, and a training iteration needs the loss, a single number "
            "(or it first, and others after it); name the function that computes the loss"
        )
    return others


def _descent(trained: Sequence[int]) -> Callable[..., Any]:
    def descend(found: Any, *args: Any) -> Any:
        value, gradients = found
        updated = jax.tree.map(lambda p, g: p - RATE * g, [args[i] for i in trained], [*gradients])
        return value, updated

    return descend


def _without_state(gradient: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(gradient)
    def of_data(*args: Any) -> Any:
        return gradient(*args[:-1])

    return of_data


def _adam(trained: Sequence[int]) -> Callable[..., Any]:
    def update(found: Any, *args: Any) -> Any:
        value, gradients = found
        weights, gradients = [args[i] for i in trained], [*gradients]
        count, mean, squares = args[-1]
        count = count + 1
        mean = jax.tree.map(lambda m, g: DECAY * m + (1 - DECAY) * g, mean, gradients)
        squares = jax.tree.map(
            lambda s, g: SQUARES_DECAY * s + (1 - SQUARES_DECAY) * g * g, squares, gradients
        )
        rate = RATE * jnp.sqrt(1 - SQUARES_DECAY**count) / (1 - DECAY**count)
        moved = jax.tree.map(
            lambda p, m, s: p - (rate * m / (jnp.sqrt(s) + TINY)).astype(p.dtype),
            weights, mean, squares,
        )  # fmt: skip
        return value, moved, (count, mean, squares)

    return update


def _zeros(weight: Any) -> Any:
    return jnp.zeros(weight.shape, weight.dtype)
