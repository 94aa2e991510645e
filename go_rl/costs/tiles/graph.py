"""A tiled program as a graph of primitive operators, read from the same JAX function
that a user would write: one vocabulary with the kernels that are cut from whole networks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from go_rl.core import OpGraph
from go_rl.costs.tiles.program import SCALE, TileProgram
from go_rl.graphs.readers.jax.reader import trace_jax

Arrays = Mapping[str, jax.Array]


def program_function(program: TileProgram) -> Callable[..., jax.Array]:
    """Return the JAX function that a program computes, of its arguments by name: what its
    scheduled form must agree with."""
    heavy = {"matmul": _matmul, "conv2d": _conv2d}.get(program.op, _reduce)

    def compute(**arrays: jax.Array) -> jax.Array:
        value = heavy(program, arrays)
        for step in program.steps:
            value = _STEPS[step](value, arrays)
        return value

    return compute


def program_graph(program: TileProgram) -> OpGraph:
    """Return input nodes, the heavy operator and the epilogue's primitives; FLOP and bytes are
    XLA's (a multiplication with a padding zero is none). ``meta["dims"]`` holds the sizes."""
    shapes: dict[str, Any] = {
        name: jax.ShapeDtypeStruct(shape, jnp.float32)
        for name, shape in program.input_shapes.items()
    }
    function = program_function(program)
    return trace_jax(function, name=program.title, weights=(), dims=program.dims, **shapes)


def _matmul(program: TileProgram, arrays: Arrays) -> jax.Array:
    return lax.dot(arrays["left"], arrays["right"])


def _conv2d(program: TileProgram, arrays: Arrays) -> jax.Array:
    stride, padding = program.dims["stride"], program.dims["padding"]
    return lax.conv_general_dilated(
        arrays["left"],
        arrays["right"],
        (stride, stride),
        [(padding, padding)] * 2,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
    )


def _reduce(program: TileProgram, arrays: Arrays) -> jax.Array:
    reduce = jnp.sum if program.op == "reduce_sum" else jnp.max
    return reduce(arrays["left"], axis=program.dims["axis"])


_STEPS: Mapping[str, Callable[[jax.Array, Arrays], jax.Array]] = {
    "add": lambda x, arrays: x + arrays["add"],
    "bias": lambda x, arrays: x + arrays["bias"],
    "gelu": lambda x, arrays: jax.nn.gelu(x, approximate=True),
    "relu": lambda x, arrays: lax.max(x, 0.0),
    "scale": lambda x, arrays: x * SCALE,
    "sigmoid": lambda x, arrays: lax.logistic(x),
    "tanh": lambda x, arrays: lax.tanh(x),
}
