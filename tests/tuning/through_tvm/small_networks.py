"""Small JAX networks, as ``module:function`` names them."""

from typing import Any

import jax
import jax.numpy as jnp


def perceptron(batch: int = 64) -> tuple[Any, ...]:
    """Two layers of 32 and 16; function, abstract arguments, position of the weights."""
    weights = [jax.ShapeDtypeStruct(shape, jnp.float32) for shape in ((24, 32), (32,), (32, 16))]

    def forward(weights: list[jax.Array], x: jax.Array) -> jax.Array:
        first, bias, second = weights
        return jax.nn.relu(x @ first + bias) @ second

    return forward, (weights, jax.ShapeDtypeStruct((batch, 24), jnp.float32)), (0,)
