"""A graph without its edges, as the control arm ``blind`` of a policy sees it."""

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


def without_edges(graph: jraph.GraphsTuple, columns: Columns) -> jraph.GraphsTuple:
    """Return a padded graph without edges, its features without what derives from them.

    Degrees, spans, depths and path lengths become 0, places in orders the middle. ``places`` and
    ``share`` stay beside the features: a decoder mixes them, the encoder reads neither. The edges
    all join the last unit, which is padding, to itself.

    Args:
        graph: see `Padded.graph`.
        columns: those of the features.
    """
    orders, features = len(columns.orders), node_array(graph, "features")
    features = jnp.where(
        _among((*columns.scalars, *OpKind), columns.from_edges, orders), 0.0, features
    )
    features = features.at[:, -orders:].set(UNKNOWN_PLACE)
    shown = jnp.where(_among(columns.hardware, columns.from_edges), 0.0, hardware_features(graph))
    senders, _ = edges(graph)
    nowhere = jnp.full(senders.shape, len(features) - 1, senders.dtype)
    nodes = {**graph.nodes, "features": features}  # pyright: ignore[reportGeneralTypeIssues]
    globals_ = jnp.asarray(graph.globals).at[0].set(shown)
    return graph._replace(nodes=nodes, senders=nowhere, receivers=nowhere, globals=globals_)


def _among(
    names: tuple[object, ...], derived: tuple[str, ...], further: int = 0
) -> Bool[np.ndarray, "F"]:
    """Mark the columns that come from edges; ``further`` columns do not."""
    return np.array([name in derived for name in names] + [False] * further)
