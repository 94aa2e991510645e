"""`HeadInput`: what a decoder reads of an encoded graph."""

from __future__ import annotations

from typing import NamedTuple

import jraph
from jaxtyping import Array, Float, Int


class HeadInput(NamedTuple):
    """An encoded graph for one decision; ``U`` units, ``D`` width of embeddings."""

    h: Float[Array, "U D"]
    """[U, D] embeddings of the units for the decision."""
    pooled: Float[Array, "D"]
    """Summary of the graph, for graph-level decisions."""
    graph: jraph.GraphsTuple
    real: Float[Array, "U"]
    """[U] 1 for real units, 0 for padding."""
    num_devices: Int[Array, ""]
