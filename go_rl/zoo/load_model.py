"""`load_model`: every way of naming a model, graphs of the zoo included."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from go_rl.core import OpGraph, ReadError
from go_rl.zoo.index import zoo_graph

if TYPE_CHECKING:
    from go_rl.readers.load import Unknown

ZOO_PREFIX = "zoo:"
"""Prefix of graphs of the zoo."""


def load_model(
    model: str | Path,
    dims: Mapping[str, int] | None = None,
    unknown: Unknown = "error",
    training: bool = False,
    **options: Any,
) -> OpGraph:
    """Read a model file, ``module:function`` or ``zoo:NAME`` into a graph.

    See `go_rl.readers.load` for files, functions and ``options``, `zoo_names` for the names.

    Raises:
        ReadError: see there; also ``dims`` or ``training`` with a graph of the zoo.
        ZooError: the zoo has no such graph.
    """
    if str(model).startswith(ZOO_PREFIX) and not Path(model).exists():
        if dims or training or any(value is not None for value in options.values()):
            raise ReadError(
                f"{model}: a graph of the zoo is frozen, without symbolic dimensions, inputs to "
                "size, loops, weights to choose or a training option; choose another one (go-rl "
                "zoo list)"
            )
        return zoo_graph(str(model).removeprefix(ZOO_PREFIX))
    from go_rl.readers import load

    return load(model, dims, unknown, training, **options)
