"""Read ``module:function`` (or ``path/to/file.py:function``) from the command line as a graph.

The name may be:

- a factory: called with the user's dims as keyword arguments, it returns ``(function, args)`` or
  ``(function, args, weights)``, where ``args`` are arrays or `jax.ShapeDtypeStruct` pytrees and
  ``weights`` the positions of the arguments that are weights (see `trace_jax`);
- a function with example arguments: an attribute ``function.example_args``, or a module-level
  ``example_args`` beside it, that is a tuple of arguments or a factory of one (dims go to it).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from go_rl.core.errors import ReadError
from go_rl.core.graph.op_graph import OpGraph
from go_rl.graphs.readers.foreign import foreign_object, is_torch_module
from go_rl.graphs.readers.jax.inline import JaxOptions
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.readers.jax.stages import JaxProgram, jax_program
from go_rl.graphs.readers.jax.training.loss_training import in_micro_batches, loss_training
from go_rl.graphs.readers.model_options import TRIP_COUNT, Optimiser, with_trips
from go_rl.graphs.readers.python_target import (
    PythonTarget,
    call_factory,
    check_dims,
    example_arguments,
    parameters_of,
    python_target,
    required_parameters,
)

Target = tuple[Callable[..., Any], tuple[Any, ...], Collection[int] | None]
"""Function, arguments, positions of the weights (None: the default rule)."""


@dataclass(frozen=True, eq=False)
class NamedFunction:
    """A function that the user named, with its arguments."""

    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    weights: Collection[int] | None
    """Positions of the arguments that are weights; None: by the rule of `trace_jax`."""
    options: JaxOptions | None
    dims: Mapping[str, int]
    """Sizes that the graph keeps, so that it can be read again."""

    def graph(self) -> OpGraph:
        """Trace it; errors as for `trace_jax`."""
        return trace_jax(
            self.function, *self.args, name=self.name, weights=self.weights, options=self.options,
            dims=self.dims,
        )  # fmt: skip

    def program(self) -> JaxProgram:
        """Trace it to a program that can be cut into stages; errors as for `jax_program`."""
        return jax_program(
            self.function, self.args, name=self.name, weights=self.weights, options=self.options
        )


def named_function(
    named: PythonTarget,
    dims: Mapping[str, int] | None = None,
    options: JaxOptions | None = None,
    weights: Collection[int] | None = None,
    made: Any = None,
    optimiser: Optimiser | None = None,
    micro_batches: int = 1,
) -> NamedFunction:
    """Return a function that was found, with its arguments; see `resolve`.

    ``optimiser``: the function is a loss, and what is returned its training iteration, see
    `loss_training`.
    """
    trips = options.trip_count if options else None
    function, args, given = resolve(named, dims, trips, made)
    chosen = given if weights is None else weights
    try:
        if optimiser is not None:
            function, args, chosen = loss_training(function, args, chosen, optimiser)
        if micro_batches > 1:
            function = in_micro_batches(function, args, chosen, micro_batches)
    except ReadError as error:
        raise ReadError(f"{named.text}: {error}") from error
    meta = with_trips(dims or {}, trips, micro_batches)
    return NamedFunction(named.name, function, tuple(args), chosen, options, meta)


def read_jax_program(target: str) -> JaxProgram:
    """Return ``module:function`` as a program that can be cut into stages.

    Raises:
        ReadError: as `resolve` and `jax_program`.
    """
    with python_target(target) as named:
        return named_function(named).program()


@contextmanager
def resolved_target(target: str, dims: Mapping[str, int] | None) -> Iterator[tuple[str, Target]]:
    """Yield the name of the function, and it with its arguments and the positions of weights;
    within the context, the current folder can be imported from.

    Raises:
        ReadError: see `resolve`.
    """
    with python_target(target) as named:
        yield named.name, resolve(named, dims)


def resolve(
    named: PythonTarget, given: Mapping[str, int] | None, trips: int | None = None, made: Any = None
) -> Target:
    """Return the function that is named, or that the factory makes, with its arguments.

    Args:
        named: what the user named.
        given: dims for the factory, or for example arguments that are made.
        trips: for a factory that takes them.
        made: what the factory returned, where it was called already.

    Raises:
        ReadError: no such module or attribute (the nearest is named), a dim that the factory does
            not take, a factory or function that raises, or a result of another form.
    """
    found, target, example = named.thing, named.text, named.example
    if is_torch_module(found):
        raise ReadError(f"{target}: a module of PyTorch, and only a JAX function will do here")
    own = trips is not None and TRIP_COUNT in parameters_of(found)
    dims = with_trips(given or {}, trips if own else None)
    if required := required_parameters(found):
        if example is None:
            raise ReadError(
                f"{target}: the function takes arguments ({', '.join(required)}) and has "
                "no example_args; give it that attribute, or name a factory without required "
                "arguments that returns (function, args)"
            )
        return found, example_arguments(example, target, dims), None
    if made is None:
        made = call_factory(found, target, dims)
    check_dims(found, target, dims)
    if isinstance(made, tuple) and len(made) in (2, 3) and callable(made[0]):
        weights = made[2] if len(made) == 3 else None
        return made[0], tuple(made[1]), (weights,) if isinstance(weights, int) else weights
    if example is not None:
        return found, example_arguments(example, target, dims), None
    if foreign := foreign_object(made):
        raise ReadError(f"{target}: a factory must return (function, args); this one returned "
                        f"{foreign}")  # fmt: skip
    raise ReadError(
        f"{target}: a factory must return (function, args) or (function, args, weights); "
        f"this one returned a {type(made).__name__}"
    )
