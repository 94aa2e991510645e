"""`load`, `trace`, `save_graph`: a model file, a name or a JAX function as a graph."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.core import OpGraph

if TYPE_CHECKING:
    from go_rl.graphs.readers.model_options import Inputs, Training, Unknown


def load(
    model: str | Path,
    dims: Mapping[str, int] | None = None,
    unknown: Unknown = "error",
    training: Training = False,
    *,
    inputs: Inputs | None = None,
    trip_count: int | None = None,
    weights: Collection[int] | None = None,
    micro_batches: int | None = None,
) -> OpGraph:
    """Read a model file, ``module:function`` or ``zoo:NAME`` into a graph.

    See `go_rl.graphs.readers.load` for files, functions and arguments, ``go-rl zoo list`` for the
    names.

    Raises:
        ReadError: see there; also ``dims`` or ``training`` with a graph of the zoo.
        ZooError: the zoo has no such graph.
    """
    from go_rl.graphs.zoo.load_model import load_model

    by_reader = {
        "inputs": inputs, "trip_count": trip_count, "weights": weights,
        "micro_batches": micro_batches,
    }  # fmt: skip
    return load_model(model, dims, unknown, training, **by_reader)


def graph_of(model: OpGraph | str | Path, *dims: Any, **options: Any) -> OpGraph:
    """Return a graph as it is, and `load` a model by name; arguments and errors as there."""
    return model if isinstance(model, OpGraph) else load(model, *dims, **options)


def retyped(graph: OpGraph, element_type: str) -> OpGraph:
    """Return a graph as it would be with its floating-point tensors in another element type; see
    `go_rl.core.graph.retyped.retyped`."""
    from go_rl.core.graph.retyped import retyped as converted

    return converted(graph, element_type)


def save_graph(graph: OpGraph, path: str | Path) -> None:
    """Write a graph to an .npz file that `load` reads back."""
    from go_rl.graphs.readers import save_graph as save

    save(graph, path)


def trace(
    function: Callable[..., Any],
    *args: Any,
    name: str | None = None,
    weights: Collection[int] | None = None,
    trip_count: int | None = None,
    **kwargs: Any,
) -> OpGraph:
    """Return the graph of a JAX function at these arguments; nothing is computed.

    Args:
        function: anything `jax.make_jaxpr` traces.
        args, kwargs: pytrees of arrays or `jax.ShapeDtypeStruct`.
        name: of the graph; the function's own by default.
        weights: positions of the arguments that are weights (see `readers.jax.reader.trace_jax`).
        trip_count: trips of every ``while`` whose count depends on the inputs.
    """
    from go_rl.graphs.readers.jax.inline import JaxOptions
    from go_rl.graphs.readers.jax.reader import trace_jax
    from go_rl.graphs.readers.model_options import with_trips

    options, dims = JaxOptions(trip_count=trip_count), with_trips({}, trip_count)
    return trace_jax(
        function, *args, name=name, weights=weights, options=options, dims=dims, **kwargs
    )
