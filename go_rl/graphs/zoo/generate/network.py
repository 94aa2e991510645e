"""`RandomNetwork`: abstract weights, a loss, inputs; and the iterations that are traced of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from go_rl.graphs.zoo.models.building import Built

MODES = ("sgd", "sgd", "momentum", "adam", "inference")
"""Iterations that are drawn, the commoner ones more than once."""


class RandomNetwork(NamedTuple):
    """A network of the grammar."""

    weights: Any
    """Pytree of abstract arrays."""
    loss: Callable[..., jax.Array]
    """Scalar of weights and inputs."""
    inputs: tuple[Any, ...]
    """Abstract arrays."""


def built(network: RandomNetwork, mode: str) -> Built:
    """Return what is traced: the loss alone, or an iteration of an optimiser on it."""
    weights, loss, inputs = network
    if mode == "inference":
        return loss, (weights, *inputs), (0,)
    step = {"sgd": _descent, "momentum": _momentum, "adam": _adam}[mode](loss)
    moments = {"sgd": 0, "momentum": 1, "adam": 2}[mode]
    held = (weights,) * (1 + moments)
    return step, (*held, *inputs), tuple(range(1 + moments))


def _descent(loss: Callable[..., jax.Array]) -> Callable[..., Any]:
    def step(weights: Any, *inputs: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(weights, *inputs)
        return value, jax.tree.map(lambda w, g: w - 0.01 * g, weights, slopes)

    return step


def _momentum(loss: Callable[..., jax.Array]) -> Callable[..., Any]:
    def step(weights: Any, speed: Any, *inputs: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(weights, *inputs)
        speed = jax.tree.map(lambda v, g: 0.9 * v + g, speed, slopes)
        return value, jax.tree.map(lambda w, v: w - 0.01 * v, weights, speed), speed

    return step


def _adam(loss: Callable[..., jax.Array]) -> Callable[..., Any]:
    def step(weights: Any, first: Any, second: Any, *inputs: Any) -> Any:
        value, slopes = jax.value_and_grad(loss)(weights, *inputs)
        first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, slopes)
        second = jax.tree.map(lambda s, g: 0.999 * s + 0.001 * g * g, second, slopes)
        weights = jax.tree.map(
            lambda w, m, s: w - 1e-3 * m / (jnp.sqrt(s) + 1e-8), weights, first, second
        )
        return value, weights, first, second

    return step
