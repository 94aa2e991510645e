"""`load_model`, `load_as_it_is`: every way of naming a model, graphs of the zoo included;
`sized_graph`: networks of the zoo whose code is traced at the batch and sequence that a user
gives."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.core import OpGraph, ReadError
from go_rl.core.errors import nearest
from go_rl.graphs.readers.model_options import MICRO_BATCHES, ModelOptions, with_trips
from go_rl.graphs.zoo.index import generated_seed, unknown_graph, zoo_graph, zoo_names

if TYPE_CHECKING:
    from go_rl.graphs.readers.model_options import Training, Unknown
    from go_rl.graphs.zoo.models.building import Built

ZOO_PREFIX = "zoo:"
"""Prefix of graphs of the zoo."""
READER_FLAGS = ("--dim ", "--unknown ", "--trip-count ")
"""Flags of readers that their errors advise."""
TRAINING_FORM = "-training"
"""Ending of the names of training iterations."""


def load_model(
    model: str | Path,
    dims: Mapping[str, int] | None = None,
    unknown: Unknown = "error",
    training: Training = False,
    **options: Any,
) -> OpGraph:
    """Read a model file, ``module:function`` or ``zoo:NAME`` into a graph.

    See `go_rl.graphs.readers.load` for files, functions and ``options``, `zoo_names` for the names.
    Where ``dims`` are given, networks of `sized_graph` are traced anew.

    Raises:
        ReadError: see there; also ``training`` with a graph of the zoo, and ``dims`` other than
            those of `sized_graph`.
        ZooError: the zoo has no such graph.
    """
    if str(model).startswith(ZOO_PREFIX) and not Path(model).exists():
        name = str(model).removeprefix(ZOO_PREFIX)
        given = ModelOptions.of(dims, micro_batches=options.pop(MICRO_BATCHES, None))
        dims, parts = with_trips(given.dims, given.trip_count), given.micro_batches
        _refuse(name, training, options)
        frozen = zoo_names(training=True)
        known = (*frozen, *SIZED_NAMES)
        if name not in known and generated_seed(name) is None:
            raise unknown_graph(name, known)
        if parts > 1:
            _check_splits(name, parts, known)
        if name in SIZED_NAMES and (dims or parts > 1 or name not in frozen):
            return sized_graph(name, dims, parts)
        if dims:
            raise ReadError(
                f"{model}: its graph is frozen, without symbolic dimensions, so "
                f"{next(iter(dims))!r} cannot be set; {', '.join(SIZED_NAMES)} have "
                f"{' and '.join(DIMS)}"
            )
        return zoo_graph(name) if parts == 1 else _in_micro_batches(name, parts)
    if str(model) in zoo_names(training=True) and not Path(model).exists():
        raise ReadError(f"{model}: no such file; did you mean {ZOO_PREFIX + str(model)!r}?")
    from go_rl.graphs.readers import load

    return load(model, dims, unknown, training, **options)


def load_as_it_is(model: str | Path) -> OpGraph:
    """Read a model for a command that takes no options of its reader; see `load_model`.

    Raises:
        ReadError: see there; where an option is missing, it says which command takes it.
    """
    try:
        return load_model(model)
    except ReadError as error:
        if not any(flag in str(error) for flag in READER_FLAGS):
            raise
        raise ReadError(
            f"{error}. The option is one of go-rl graph: give the file that it writes with --save "
            "FILE.npz in place of the model"
        ) from error


def _check_splits(name: str, count: int, known: Collection[str]) -> None:
    """Raise a `ReadError` where the zoo cannot trace a training iteration of that name."""
    form = name if name.endswith(TRAINING_FORM) else f"{name}{TRAINING_FORM}"
    if form not in known:
        raise ReadError(
            f"{ZOO_PREFIX}{name}: micro_batches={count} splits a training iteration, and the zoo "
            "has none of this network that it could trace anew (go-rl zoo list)"
        )
    if form != name:
        raise ReadError(
            f"{ZOO_PREFIX}{name}: inference, and micro_batches={count} splits a training iteration;"
            f" choose {ZOO_PREFIX}{form}"
        )


def _in_micro_batches(name: str, count: int) -> OpGraph:
    """Trace the recipe of a frozen training iteration with its batch split."""
    from go_rl.graphs.zoo.freeze import trace_entry
    from go_rl.graphs.zoo.models.inventory import zoo_model

    try:
        return trace_entry(zoo_model(name), count)
    except ReadError as error:
        raise ReadError(f"{ZOO_PREFIX}{name}: {error}") from error


def _refuse(name: str, training: Training, options: Mapping[str, Any]) -> None:
    """Raise a `ReadError` for options that no graph of the zoo has."""
    if training or any(value is not None for value in options.values()):
        raise ReadError(
            f"{ZOO_PREFIX}{name}: a graph of the zoo is frozen, without inputs to size, loops, "
            "weights to choose or a training option; choose another one (go-rl zoo list)"
        )


DIMS = ("batch", "sequence")
SIZED_NAMES = tuple(
    f"{name}{form}"
    for name in ("bert-large", "gpt2-large", "gpt3-xl", "opt-1.3b")
    for form in ("", "-training")
)
"""Names of `go_rl.graphs.zoo.models.language.sized.SIZED`, known without JAX."""


def sized_graph(name: str, dims: Mapping[str, int], micro_batches: int = 1) -> OpGraph:
    """Return the graph of a network at some sizes.

    Args:
        name: of `SIZED_NAMES`.
        dims: ``batch``, ``sequence``, both or none.
        micro_batches: parts of the batch of a training iteration.

    Raises:
        ReadError: the network has no such dimension, its sequences are shorter, or the batch does
            not divide.
    """
    from go_rl.graphs.readers.jax.reader import trace_jax
    from go_rl.graphs.readers.jax.training.loss_training import in_micro_batches

    function, args, weights = sized_network(name, dims)
    try:
        if micro_batches > 1:
            function = in_micro_batches(function, args, weights, micro_batches)
        kept = with_trips(dims, None, micro_batches)
        return trace_jax(function, *args, weights=weights, name=name, dims=kept)
    except ReadError as error:
        raise ReadError(f"zoo:{name}: {error}") from error


def sized_network(name: str, dims: Mapping[str, int]) -> Built:
    """Return a network at some sizes: function, abstract arguments, positions of the weights.

    Arguments and errors as for `sized_graph`.
    """
    for dim in dims:
        if dim not in DIMS:
            raise ReadError(
                f"zoo:{name}: no dimension {dim!r}{nearest(dim, DIMS)} It has {', '.join(DIMS)}"
            )
    from go_rl.graphs.zoo.models.language.sized import SIZED

    try:
        return SIZED[name].build(dims.get("batch"), dims.get("sequence"))
    except ReadError as error:
        raise ReadError(f"zoo:{name}: {error}") from error
