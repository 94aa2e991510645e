"""Products of a vector and many matrices, one after the other: how fast weights come from memory.

A kernel that is timed by itself finds its weights in the cache; in a network whose weights exceed
the cache it does not. Batch-1 decoding is nothing else.
"""

from __future__ import annotations

from functools import cache

import jax
import jax.numpy as jnp

from go_rl.costs.kernels.measure.chosen import ChosenKernel
from go_rl.graphs.readers.jax.stages import jax_program

WIDTH = 1024
"""Rows and columns of each matrix, 4 MiB of float32."""
MATRIX_BYTES = 4.0 * WIDTH * WIDTH
WORKING_SETS = (1, 4, 16, 64, 256)
"""Matrices of each program: from what a cache may hold to what none does."""


@cache
def cold_products() -> tuple[tuple[float, ChosenKernel], ...]:
    """Return bytes of the weights, and the program as a kernel, from small to large."""
    return tuple((count * MATRIX_BYTES, _products(count)) for count in WORKING_SETS)


def _products(count: int) -> ChosenKernel:
    def network(weights: tuple[jax.Array, ...], vector: jax.Array) -> jax.Array:
        for weight in weights:
            vector = jnp.tanh(vector @ weight)
        return vector

    square = jax.ShapeDtypeStruct((WIDTH, WIDTH), jnp.float32)
    vector = jax.ShapeDtypeStruct((1, WIDTH), jnp.float32)
    name = f"cold-products-{count}x{WIDTH}"
    program = jax_program(network, ((square,) * count, vector), name=name, weights=(0,))
    nodes = tuple(range(program.graph.num_nodes))
    return ChosenKernel(program, nodes, name, name)
