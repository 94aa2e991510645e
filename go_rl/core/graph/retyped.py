"""`retyped`: a network as it would be with its floating-point tensors in another element type."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from go_rl.core.errors import GraphError, nearest
from go_rl.core.graph.element_type import ElementType, element_type
from go_rl.core.graph.op_graph import OpGraph

REPLACED = (ElementType.FLOAT32, ElementType.TF32, ElementType.BFLOAT16, ElementType.FLOAT16)
"""Types whose tensors another type replaces; double precision stays, for it was asked for."""
_CHOICES = (*REPLACED, ElementType.FLOAT8, ElementType.INT8)


def wanted_type(name: str) -> ElementType:
    """Return the element type that a user names.

    Raises:
        GraphError: none that a network could be converted to.
    """
    wanted, names = element_type(name), [each.label for each in _CHOICES]
    if wanted not in _CHOICES:
        raise GraphError(
            f"element type {name!r}{nearest(name, names)} Use one of {', '.join(names)}"
        )
    return wanted


def retyped(graph: OpGraph, name: str) -> OpGraph:
    """Return a graph whose tensors in float32, bfloat16 and float16 are of another type.

    A node's bytes follow the width of its own elements: conversions at the borders are not added,
    and whole numbers that an operator reads beside such tensors count as converted.

    Args:
        graph: whose source says in which types its nodes compute.
        name: of the type: float32, tf32, bfloat16, float16, float8 or int8.

    Raises:
        GraphError: another type, or a graph that does not say in which it computes.
    """
    wanted = wanted_type(name)
    if graph.element_type is None:
        raise GraphError(
            f"graph {graph.name!r} does not say in which element types it computes; read it from "
            "the model itself"
        )
    of_node = np.isin(graph.element_type, REPLACED)
    before = np.array([each.bits / 8 for each in ElementType])[graph.element_type]
    factor = np.where(of_node, wanted.bits / 8 / np.where(of_node, before, 1.0), 1.0)
    results, weights = (
        np.where(size == before, factor, 1.0)
        for size in (graph.output_itemsize, graph.weight_itemsize)
    )
    tied = np.ones(len(graph.tied_bytes))
    tied[graph.tied_array[::-1]] = weights[graph.tied_node[::-1]]
    return replace(
        graph,
        name=f"{graph.name} in {wanted.label}",
        element_type=np.where(of_node, np.int8(wanted), graph.element_type),
        bytes_accessed=graph.bytes_accessed * factor,
        output_bytes=graph.output_bytes * results,
        output_itemsize=graph.output_itemsize * results,
        weight_bytes=graph.weight_bytes * weights,
        weight_itemsize=graph.weight_itemsize * weights,
        tied_bytes=graph.tied_bytes * tied,
        edge_bytes=graph.edge_bytes * results[graph.senders],
    )
