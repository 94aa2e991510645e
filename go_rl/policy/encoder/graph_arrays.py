"""Typed access to a padded graph: `jraph.GraphsTuple` is typed as trees of arrays."""

from __future__ import annotations

from typing import cast

import jraph
from jaxtyping import Array, Float, Int


def node_array(graph: jraph.GraphsTuple, name: str) -> Float[Array, "U *X"]:
    """Return [U, ...] ``features``, ``places`` or ``share``."""
    return cast("dict[str, Array]", graph.nodes)[name]


def edges(graph: jraph.GraphsTuple) -> tuple[Int[Array, "E"], Int[Array, "E"]]:
    """Return [E] senders and [E] receivers."""
    return cast("tuple[Array, Array]", (graph.senders, graph.receivers))


def hardware_features(graph: jraph.GraphsTuple) -> Float[Array, "P"]:
    """Return [P] features of the hardware."""
    return cast("Array", graph.globals)[0]
