"""Parts of generated networks: `Draw`, `Block`, and `RandomNetwork` with its iterations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from go_rl.graphs.zoo.models.building import Built, floats

T = TypeVar("T")
Array = jax.Array


class Block(NamedTuple):
    """Part of a network: a pytree of abstract weights, and a function of weights and inputs."""

    weights: Any
    apply: Callable[..., Any]


class Draw:
    """Random choices in the order in which they are asked for; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._rng = np.random.default_rng(seed)

    def one(self, *options: T) -> T:
        """Return one of the options."""
        return options[int(self._rng.integers(len(options)))]

    def count(self, least: int, most: int) -> int:
        """Return a whole number, both ends included."""
        return int(self._rng.integers(least, most + 1))

    def size(self, least: int, most: int) -> int:
        """Return a whole number, both ends included, whose logarithm is uniform."""
        return round(float(np.exp(self._rng.uniform(np.log(least), np.log(most)))))

    def chance(self, probability: float) -> bool:
        """Return whether something of this probability happens."""
        return bool(self._rng.random() < probability)

    def some(self, options: Sequence[T], least: int, most: int) -> list[T]:
        """Return different options in their order, at least and at most this many."""
        size = min(self.count(least, most), len(options))
        chosen = np.sort(self._rng.permutation(len(options))[:size])
        return [options[i] for i in chosen]


def matrix(inside: int, outside: int) -> Any:
    """Return an abstract weight matrix."""
    return floats(inside, outside)


def scoped(name: str, block: Block) -> Block:
    """Return a block whose operators lie in a scope, as those of a framework's modules do."""

    def apply(weights: Any, *inputs: Any) -> Any:
        with jax.named_scope(name):
            return block.apply(weights, *inputs)

    return Block(block.weights, apply)


def chained(blocks: Sequence[Block]) -> Block:
    """Return blocks applied one after the other, each in a scope of its own."""
    functions = [scoped(f"layer_{i}", block).apply for i, block in enumerate(blocks)]

    def apply(weights: Any, x: Array) -> Array:
        for one, function in zip(weights, functions, strict=True):
            x = function(one, x)
        return x

    return Block([block.weights for block in blocks], apply)


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
