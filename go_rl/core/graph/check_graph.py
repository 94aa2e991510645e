"""`check_graph`: the invariants of an `OpGraph`, one rule a line with its English beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields

import numpy as np

from go_rl.core.errors import GraphError
from go_rl.core.graph.element_type import ElementType
from go_rl.core.graph.geometry import GEOMETRY
from go_rl.core.graph.op_graph import FREE, OpGraph
from go_rl.core.graph.op_kind import OpKind

ROUNDING = 1e-9
"""Relative error of sums of bytes."""
PER_EDGE = ("senders", "receivers", "edge_bytes", "edge_output")
"""Fields with an entry for each edge."""
Rule = tuple[str, Callable[[OpGraph], np.ndarray]]
"""Condition on every node (or edge), and a function that marks those that violate it."""


def _not_cost(values: np.ndarray) -> np.ndarray:
    return ~(np.isfinite(values) & (values >= 0))


def _not_seconds(values: np.ndarray) -> np.ndarray:
    return np.isnan(values) | (values < 0)


def _repeated(graph: OpGraph) -> np.ndarray:
    """Ids are equal when their texts are: keys of JSON objects are texts."""
    seen: set[str] = set()
    return np.array([str(n) in seen or bool(seen.add(str(n))) for n in graph.names], np.bool_)


def _transfers(graph: OpGraph) -> np.ndarray:
    if graph.transfer_seconds is None:
        return np.zeros(graph.num_nodes, np.bool_)
    return _not_cost(graph.transfer_seconds)


def _geometry_breaks(graph: OpGraph) -> np.ndarray:
    if graph.geometry is None:
        return np.zeros(graph.num_nodes, np.bool_)
    if graph.geometry.shape[1] != len(GEOMETRY):
        return np.ones(graph.num_nodes, np.bool_)
    return np.asarray((np.isinf(graph.geometry) | (graph.geometry < 0)).any(axis=1))


def _profile_breaks(graph: OpGraph) -> np.ndarray:
    broken = np.zeros(graph.num_nodes, np.bool_)
    for values in graph.seconds.values():
        broken |= _not_seconds(values)
    return broken


def _within(values: np.ndarray, end: int) -> np.ndarray:
    return (values >= 0) & (values < end)


def _tied_beyond_weights(graph: OpGraph) -> np.ndarray:
    tied = np.bincount(
        graph.tied_node, graph.tied_bytes[graph.tied_array], minlength=graph.num_nodes
    )
    return tied > graph.weight_bytes * (1 + ROUNDING)


def _tied_out_of_order(graph: OpGraph) -> np.ndarray:
    pair = graph.tied_node.astype(np.int64) * (len(graph.tied_bytes) + 1) + graph.tied_array
    return np.append(np.diff(pair) <= 0, np.zeros(min(len(pair), 1), np.bool_))


def _read_once(graph: OpGraph) -> np.ndarray:
    readers = np.bincount(graph.tied_array, minlength=len(graph.tied_bytes))
    return readers[graph.tied_array] < 2


def _no_element_type(graph: OpGraph) -> np.ndarray:
    if graph.element_type is None:
        return np.zeros(graph.num_nodes, np.bool_)
    return ~np.isin(graph.element_type, list(ElementType))


NODE_RULES: tuple[Rule, ...] = (
    ("node ids are unique", _repeated),
    ("flops is a finite number >= 0", lambda g: _not_cost(g.flops)),
    ("bytes_accessed is a finite number >= 0", lambda g: _not_cost(g.bytes_accessed)),
    ("output_bytes is a finite number >= 0", lambda g: _not_cost(g.output_bytes)),
    ("weight_bytes is a finite number >= 0", lambda g: _not_cost(g.weight_bytes)),
    ("output_itemsize is a finite number >= 0", lambda g: _not_cost(g.output_itemsize)),
    ("weight_itemsize is a finite number >= 0", lambda g: _not_cost(g.weight_itemsize)),
    ("seconds is a number >= 0, or inf where the device cannot run the node", _profile_breaks),
    ("transfer_seconds is a finite number >= 0", _transfers),
    (f"geometry has {len(GEOMETRY)} finite numbers >= 0, or NaN where unknown", _geometry_breaks),
    ("kind is an OpKind", lambda g: ~np.isin(g.kind, [k.value for k in OpKind])),
    ("element_type is an ElementType", _no_element_type),
    ("colocation is a class >= 0 or FREE", lambda g: g.colocation < FREE),
    ("weight_bytes includes the tied arrays that the node reads", _tied_beyond_weights),
)

TIED_RULES: tuple[Rule, ...] = (
    ("tied_node is a node of the graph", lambda g: ~_within(g.tied_node, g.num_nodes)),
    ("tied_array is an array of tied_bytes", lambda g: ~_within(g.tied_array, len(g.tied_bytes))),
    ("pairs of tied_node and tied_array ascend, each once", _tied_out_of_order),
    ("a tied array is read by at least two nodes", _read_once),
)
"""Rules of the pairs of `OpGraph.tied_node` and `OpGraph.tied_array`."""

EDGE_RULES: tuple[Rule, ...] = (
    ("an edge joins nodes of the graph", lambda g: ~_inside(g)),
    ("an edge goes from a lower to a higher node (topological order)",
     lambda g: g.senders >= g.receivers),
    ("edge_bytes is a finite number >= 0", lambda g: _not_cost(g.edge_bytes)),
    ("edge_output is >= 0", lambda g: g.edge_output < 0),
)  # fmt: skip


def _inside(graph: OpGraph) -> np.ndarray:
    ends = np.stack([graph.senders, graph.receivers])
    return np.asarray(_within(ends, graph.num_nodes).all(axis=0))


def check_graph(graph: OpGraph) -> None:
    """Raise a `GraphError` naming the first node or edge that breaks an invariant."""
    if graph.num_nodes == 0:
        raise GraphError(f"graph {graph.name!r} has no nodes; at least one is needed")
    _check_lengths(graph)
    _check_tied(graph)
    for english, broken in NODE_RULES:
        marks = broken(graph)
        if marks.any():
            name = graph.names[int(np.flatnonzero(marks)[0])]
            raise GraphError(f"graph {graph.name!r}, node {name!r}: {english} does not hold")
    for english, broken in EDGE_RULES:
        marks = broken(graph)
        if marks.any():
            e = int(np.flatnonzero(marks)[0])
            ends = f"{graph.senders[e]} -> {graph.receivers[e]}"
            raise GraphError(f"graph {graph.name!r}, edge {e} ({ends}): {english} does not hold")


def _check_tied(graph: OpGraph) -> None:
    if _not_cost(graph.tied_bytes).any():
        raise GraphError(f"graph {graph.name!r}: tied_bytes must be finite numbers >= 0")
    for english, broken in TIED_RULES:
        marks = broken(graph)
        if marks.any():
            t = int(np.flatnonzero(marks)[0])
            pair = f"({graph.tied_node[t]} reads array {graph.tied_array[t]})"
            raise GraphError(
                f"graph {graph.name!r}, tied weights {t} {pair}: {english} does not hold"
            )
    if len(np.unique(graph.tied_array)) < len(graph.tied_bytes):
        raise GraphError(f"graph {graph.name!r}: tied_bytes has arrays that no node reads")


def _check_lengths(graph: OpGraph) -> None:
    nodes = len(graph.names)
    lengths = dict.fromkeys(PER_EDGE, len(graph.senders))
    lengths |= {"tied_node": len(graph.tied_array), "tied_array": len(graph.tied_array)}
    lengths |= {"tied_bytes": len(graph.tied_bytes)}
    for field in (f.name for f in fields(graph)):
        values = getattr(graph, field)
        if not isinstance(values, (np.ndarray, tuple)):
            continue
        if len(values) != lengths.get(field, nodes):
            raise GraphError(f"graph {graph.name!r}: {field} has {len(values)} entries")
    for kind, values in graph.seconds.items():
        if len(values) != nodes:
            raise GraphError(f"graph {graph.name!r}: seconds[{kind!r}] has {len(values)} entries")
