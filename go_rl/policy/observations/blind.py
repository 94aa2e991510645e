"""A graph without its edges, as the control arm ``blind`` sees it, or without places in orders."""

from __future__ import annotations

import jax.numpy as jnp
import jraph
import numpy as np
from jaxtyping import Bool

from go_rl.core import OpKind
from go_rl.policy.encoder.graph_arrays import edges, hardware_features, node_array
from go_rl.policy.observations.policy_graph import Columns

UNKNOWN_PLACE = 0.5
"""Place of every unit in every order: the middle."""


def without_orders(graph: jraph.GraphsTuple, columns: Columns) -> jraph.GraphsTuple:
    """Return a padded graph without places in reference orders and what derives from them.

    Places become the middle, those that a decoder mixes as well as those among the features;
    scalars that derive from them become 0.

    Args:
        graph: see `Padded.graph`.
        columns: those of the features.
    """
    return _hidden(graph, columns, columns.from_orders)


def without_edges(graph: jraph.GraphsTuple, columns: Columns) -> jraph.GraphsTuple:
    """Return a padded graph without edges, and without what derives from them.

    Degrees, spans, depths and path lengths become 0, places in orders the middle, also for a
    decoder that mixes them. ``share`` stays: it says nothing of edges. The edges all join the last
    unit, which is padding, to itself.

    Args:
        graph: see `Padded.graph`.
        columns: those of the features.
    """
    graph = _hidden(graph, columns, columns.from_edges)
    shown = jnp.where(_among(columns.hardware, columns.from_edges), 0.0, hardware_features(graph))
    senders, _ = edges(graph)
    nowhere = jnp.full(senders.shape, len(node_array(graph, "share")) - 1, senders.dtype)
    globals_ = jnp.asarray(graph.globals).at[0].set(shown)
    return graph._replace(senders=nowhere, receivers=nowhere, globals=globals_)


def _hidden(
    graph: jraph.GraphsTuple, columns: Columns, derived: tuple[str, ...]
) -> jraph.GraphsTuple:
    """The graph with these scalars 0, and all places the middle."""
    orders, features = len(columns.orders), node_array(graph, "features")
    features = jnp.where(_among((*columns.scalars, *OpKind), derived, orders), 0.0, features)
    features = features.at[:, -orders:].set(UNKNOWN_PLACE)
    places = jnp.full_like(node_array(graph, "places"), UNKNOWN_PLACE)
    nodes = {**graph.nodes, "features": features, "places": places}  # pyright: ignore[reportGeneralTypeIssues]
    return graph._replace(nodes=nodes)


def _among(
    names: tuple[object, ...], derived: tuple[str, ...], further: int = 0
) -> Bool[np.ndarray, "F"]:
    """Mark the columns that come from edges; ``further`` columns do not."""
    return np.array([name in derived for name in names] + [False] * further)
