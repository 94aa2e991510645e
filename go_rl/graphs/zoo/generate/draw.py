"""`Draw`, the random choices of one generated network, and `Block`, a part of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import jax
import numpy as np

from go_rl.graphs.zoo.models.building import floats

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
        """Return different options in their order, at least and at most so many."""
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
