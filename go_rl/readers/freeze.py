"""Building a reader's graph, with errors that name the user's file."""

from __future__ import annotations

from pathlib import Path

from go_rl.core import GraphError, OpGraph, ReadError
from go_rl.readers.graph_builder import GraphBuilder, Node


def freeze(builder: GraphBuilder, path: str | Path) -> OpGraph:
    """Build the graph; an invariant that it breaks becomes a `ReadError` naming ``path``."""
    try:
        return builder.build()
    except GraphError as error:
        raise ReadError(f"{path}: {error}") from error


def add_node(builder: GraphBuilder, node: Node, path: str | Path) -> int:
    """Add a node; a repeated id becomes a `ReadError` naming ``path``."""
    try:
        return builder.add_node(node)
    except GraphError as error:
        raise ReadError(f"{path}: {error}") from error


def add_edge(
    builder: GraphBuilder, ends: tuple[int, int], num_bytes: float, path: str | Path
) -> None:
    """Add an edge; a node that reads itself becomes a `ReadError` naming ``path``."""
    try:
        builder.add_edge(*ends, num_bytes)
    except GraphError as error:
        raise ReadError(f"{path}: {error}") from error
