"""`PolicyGraph`: a problem as the network sees it, whatever the objective.

Dimension letters: ``U`` units, ``E`` edges, ``F`` features, ``J`` reference orders, ``P`` hardware
features.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float32, Float64, Int32

from go_rl.core import OpKind
from go_rl.objectives.common.units import RingUnits


@dataclass(frozen=True)
class Columns:
    """Columns of what a policy sees of a problem."""

    scalars: tuple[str, ...]
    """Numbers of a unit."""
    orders: tuple[str, ...]
    """Reference orders in which a unit has a place."""
    hardware: tuple[str, ...]
    """Numbers of the hardware and the whole graph."""
    from_edges: tuple[str, ...]
    """Scalars and numbers of the hardware that derive from edges, as all places do."""
    from_orders: tuple[str, ...] = ()
    """Columns of the scalars that derive from places in orders."""

    @property
    def features(self) -> int:
        """Number F of features of a unit: its scalars, kinds of operators, places."""
        return len(self.scalars) + len(OpKind) + len(self.orders)


@dataclass(frozen=True, eq=False)
class PolicyGraph:
    """A problem as arrays for the network."""

    features: Float32[np.ndarray, "U F"]
    """[U, F] numbers and kinds of units, then their ``J`` places."""
    places: Float32[np.ndarray, "U J"]
    """[U, J] place of each unit in each reference order, in (0, 1)."""
    share: Float32[np.ndarray, "U"]
    """[U] share of the work."""
    senders: Int32[np.ndarray, "E"]
    receivers: Int32[np.ndarray, "E"]
    hardware: Float32[np.ndarray, "P"]
    """[P] hardware, and what is asked of the whole graph."""
    num_devices: int

    @property
    def num_units(self) -> int:
        """Number of units U."""
        return len(self.share)


def policy_graph(
    units: RingUnits,
    features: Float64[np.ndarray, "U _"],
    places: Float64[np.ndarray, "U J"],
    hardware: Float32[np.ndarray, "P"],
    num_devices: int,
) -> PolicyGraph:
    """Return the graph of units; ``features`` lack the places, which every network sees as well."""
    total = units.work.sum()
    share = units.work / total if total > 0 else np.full(units.num_units, 1.0 / units.num_units)
    return PolicyGraph(
        features=np.concatenate([features, places], axis=1).astype(np.float32),
        places=places.astype(np.float32),
        share=share.astype(np.float32),
        senders=edge_sources(units),
        receivers=units.succ,
        hardware=hardware,
        num_devices=num_devices,
    )


def tiny_graph(columns: Columns) -> PolicyGraph:
    """Return two units and an edge: parameters follow from the numbers of columns alone."""
    return PolicyGraph(
        features=np.zeros((2, columns.features), np.float32),
        places=np.full((2, len(columns.orders)), 0.5, np.float32),
        share=np.full(2, 0.5, np.float32),
        senders=np.zeros(1, np.int32),
        receivers=np.ones(1, np.int32),
        hardware=np.zeros(len(columns.hardware), np.float32),
        num_devices=2,
    )


def edge_sources(units: RingUnits) -> Int32[np.ndarray, "E"]:
    """Return the source of each edge of ``units.succ``."""
    return np.repeat(np.arange(units.num_units, dtype=np.int32), np.diff(units.succ_ptr))


def log_degrees(units: RingUnits) -> list[Float64[np.ndarray, "U"]]:
    """Return log2(1 + degree) / 8 of incoming and of outgoing edges."""
    return [np.log2(1.0 + np.diff(ptr)) / 8.0 for ptr in (units.pred_ptr, units.succ_ptr)]


def log_ratio(values: np.ndarray, unit: float) -> np.ndarray:
    """Logarithm of seconds against a chip's share: -1 for nothing, about 0 for a chip's share."""
    return np.maximum(np.log10(values / unit + 1e-6), -6.0) / 6.0


def longest_reach(units: RingUnits, place: np.ndarray) -> Float64[np.ndarray, "U"]:
    """Return [U] the longest outgoing edge, as a difference of places."""
    source = edge_sources(units)
    span = np.zeros(units.num_units)
    np.maximum.at(span, source, place[units.succ] - place[source])
    return span
