"""`nested_layout`: a place for every operator and block, each block around what it holds.

``N`` operators, ``K`` blocks and ``I = N + K`` items as in `go_rl.report.page.scopes`; ``L`` lines.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float64, Int64

from go_rl.core import OpGraph
from go_rl.core.layered_drawing import arrange
from go_rl.report.page.scopes import ROOT, ScopeTree

OPERATOR = (104.0, 22.0)
"""Width and height of an operator."""
MARGIN, HEAD = 14.0, 26.0
"""Least free space inside a block, and the least height of its name."""
MARGIN_SHARE, HEAD_SHARE = 0.02, 0.09
"""Margin and head as shares of the height of a block, whose name then shows from afar."""


@dataclass(frozen=True, eq=False)
class NestedLayout:
    """Boxes, and the lines between those that share a block."""

    box: Float64[np.ndarray, "I 4"]
    """[I, 4] left and upper edge, width and height of each item; y grows downwards."""
    line: Int64[np.ndarray, "L 2"]
    """[L, 2] items that a line joins: ends of an edge, or the outermost blocks around one end."""
    line_bytes: Float64[np.ndarray, "L"]
    """[L] bytes of all tensors of a line."""


def nested_layout(graph: OpGraph, tree: ScopeTree) -> NestedLayout:
    """Return where everything goes."""
    line, line_bytes = _lines(graph, tree)
    inside: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for (u, v), block in zip(line.tolist(), tree.parent[line[:, 0]].tolist(), strict=True):
        inside[block].append((u, v))
    box = np.zeros((len(tree.parent), 4))
    box[: tree.num_nodes, 2:] = OPERATOR
    for block in range(len(tree.names) - 1, -1, -1):  # inner ones first
        _arrange_block(box, tree, block, inside[block])
    for block, held in enumerate(tree.children):  # outer ones first
        box[list(held), :2] += box[tree.num_nodes + block, :2]
    return NestedLayout(box, line, line_bytes)


def _arrange_block(
    box: Float64[np.ndarray, "I 4"], tree: ScopeTree, block: int, lines: list[tuple[int, int]]
) -> None:
    """Size of a block, and places of its items relative to it."""
    held = tree.children[block]
    number = {item: i for i, item in enumerate(held)}
    found = arrange([(w, h) for _, _, w, h in box[list(held)].tolist()],
                    [(number[u], number[v]) for u, v in lines])  # fmt: skip
    width, height = found.size
    margin = max(MARGIN, MARGIN_SHARE * height)
    head = margin if block == ROOT else max(HEAD, HEAD_SHARE * height)
    box[list(held), :2] = np.array(found.corner).reshape(-1, 2) + np.array([margin, head])
    box[tree.num_nodes + block, 2:] = width + 2 * margin, height + margin + head


def _lines(
    graph: OpGraph, tree: ScopeTree
) -> tuple[Int64[np.ndarray, "L 2"], Float64[np.ndarray, "L"]]:
    """Each edge, raised to the two items in the innermost block around both ends; equal ones add
    up."""
    depth = np.zeros(len(tree.parent), np.int64)
    for block, held in enumerate(tree.children):
        depth[list(held)] = depth[tree.num_nodes + block] + 1
    ends = np.stack([graph.senders, graph.receivers]).astype(np.int64)
    while (apart := tree.parent[ends[0]] != tree.parent[ends[1]]).any():
        deep = depth[ends]
        for side in (0, 1):
            raised = apart & (deep[side] >= deep[1 - side])
            ends[side, raised] = tree.num_nodes + tree.parent[ends[side, raised]]
    pairs, which = np.unique(ends.T, axis=0, return_inverse=True)
    size = np.bincount(which.ravel(), weights=graph.edge_bytes, minlength=len(pairs))
    return pairs.reshape(-1, 2), size.astype(np.float64)
