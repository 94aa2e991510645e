"""JAX functions, of the user and of the zoo, as networks that are tuned.

The function is flattened as `go_rl.graphs.readers.jax` does it for graphs, so that calls are
inlined and loops of known length written out, and JAX lowers what is left to StableHLO.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from go_rl.core import ReadError
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.stages import JaxProgram, jax_program
from go_rl.tuning.config import TuningError
from go_rl.tuning.tvm.models.hlo_network import HloNetwork, random_weight
from go_rl.tuning.tvm.models.model import ModelInput

UNROLL_LIMIT = 200_000
DTYPES = ("float32", "int32", "uint32", "bool", "int8", "uint8")
"""Types of arguments that are tuned."""


def jax_network(
    name: str,
    function: Callable[..., Any],
    args: Sequence[Any],
    weights: Collection[int] | None,
    seed: int = 0,
) -> HloNetwork:
    """Return a JAX function as a network.

    Args:
        name: for people.
        function: of arrays.
        args: pytrees of arrays or `jax.ShapeDtypeStruct`.
        weights: positions of those that are weights; None: by the rule of `trace_jax`. Weights
            without numbers get random ones.
        seed: of these.

    Raises:
        ReadError: the function cannot be traced, or has a loop of unknown length.
        TuningError: an argument is of a type that is not tuned, or nothing is computed.
    """
    options = JaxOptions(unroll_limit=UNROLL_LIMIT, unknown="bytes")
    program = jax_program(function, args, name=name, weights=weights, options=options)
    leaves, tree = jax.tree.flatten(tuple(args))
    numbers = program.inputs(jax.tree.unflatten(tree, range(len(leaves))))
    stages = program.stages(np.zeros(program.graph.num_nodes, np.int64))
    if not any(stage.outputs for stage in stages):
        raise TuningError(f"{name}: the function computes nothing; there is nothing to tune")
    (stage,) = stages
    names = [each for each in numbers if each in stage.inputs]
    known = _weights(program, stage.weights, numbers, leaves, seed)
    types = dict(zip(stage.inputs, stage.input_types, strict=True))
    inputs = tuple(_input(name, each, types[each]) for each in names)

    def whole(held: Sequence[Any], given: Sequence[Any]) -> list[Any]:
        values = {**dict(zip(stage.weights, held, strict=True)),
                  **dict(zip(names, given, strict=True))}  # fmt: skip
        made = stage.function(tuple(held), tuple(values[each] for each in stage.inputs))
        values.update(zip(stage.outputs, made, strict=True))
        return jax.tree.leaves(program.result(values))

    def compute(operands: Sequence[np.ndarray]) -> list[np.ndarray]:
        given = [_filled(leaf) for leaf in leaves]
        for each in stage.weights:
            if isinstance(numbers.get(each), int):
                given[numbers[each]] = known[each]
        for each, operand in zip(names, operands, strict=True):
            given[numbers[each]] = operand
        found = jax.jit(function)(*jax.tree.unflatten(tree, given))
        return [np.asarray(each) for each in jax.tree.leaves(found)]

    held = [known[each] for each in stage.weights]
    lowered = jax.jit(whole, keep_unused=True).lower(held, [types[each] for each in names])
    kept = dict(enumerate(held))
    return HloNetwork(name, lowered.compiler_ir("stablehlo"), inputs, kept, compute)


def _weights(
    program: JaxProgram,
    names: Sequence[str],
    numbers: dict[str, Any],
    leaves: Sequence[Any],
    seed: int,
) -> dict[str, np.ndarray]:
    """The arrays of weights by name: as they are given, closed over, or random."""
    rng, found = np.random.default_rng(seed), {}
    for each in names:
        given = leaves[numbers[each]] if isinstance(numbers[each], int) else numbers[each]
        if isinstance(given, jax.ShapeDtypeStruct):
            _check_type(program.graph.name, each, given.dtype)
            found[each] = random_weight(each, tuple(given.shape), str(given.dtype), rng)
        else:
            found[each] = np.asarray(given)
            _check_type(program.graph.name, each, found[each].dtype)
    return found


def _input(network: str, name: str, given: jax.ShapeDtypeStruct) -> ModelInput:
    _check_type(network, name, given.dtype)
    return ModelInput(name, tuple(given.shape), str(given.dtype))


def _check_type(network: str, name: str, dtype: Any) -> None:
    if str(dtype) not in DTYPES:
        raise TuningError(
            f"{network}: argument {name!r} is {dtype}; only float32 networks are tuned: give the "
            "function float32 arguments"
        )


def _filled(leaf: Any) -> Any:
    """An argument, or zeros in place of one without numbers, which nothing reads."""
    if not isinstance(leaf, jax.ShapeDtypeStruct):
        return leaf
    if jnp.issubdtype(leaf.dtype, jax.dtypes.extended):
        raise ReadError(f"an argument of type {leaf.dtype} must be given as an array")
    return np.zeros(leaf.shape, leaf.dtype)
