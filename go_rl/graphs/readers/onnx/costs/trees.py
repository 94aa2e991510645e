"""Depths of decision trees in the attributes of ``ai.onnx.ml`` tree ensembles.

A forest may have millions of nodes, so that all trees are walked at once, level by level.
Letters: N nodes of all trees, T trees.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.onnx.call import Call

LEAF = b"LEAF"
NO_NODE = -1
"""Marks a branch that ends in a leaf that is not a node."""
SIDES = ("true", "false")


@dataclass(frozen=True)
class Forest:
    """The trees of one operator; nodes are numbered across them."""

    children: np.ndarray
    """Int64 [2, N]: the node that each branch leads to, or `NO_NODE`."""
    leaf: np.ndarray
    """Bool [N]: nodes that compare nothing."""
    roots: np.ndarray
    """Int64 [T]."""


def tree_depths(call: Call) -> np.ndarray:
    """Return the comparisons from the root to the farthest leaf of each tree: int64 [T].

    Raises:
        ReadError: a node leads to one that is not there, or several lead to the same one.
    """
    forest = _indexed(call) if call.op.endswith(".TreeEnsemble") else _named(call)
    depth = np.zeros(len(forest.roots), np.int64)
    level, tree, seen = forest.roots, np.arange(len(forest.roots)), len(forest.roots)
    while level.size and seen <= len(forest.leaf):
        inner = ~forest.leaf[level]
        depth[tree[inner]] += 1  # once a tree, however many of its nodes are on this level
        ends, trees = forest.children[:, level[inner]].ravel(), np.tile(tree[inner], 2)
        level, tree = ends[ends != NO_NODE], trees[ends != NO_NODE]
        seen += level.size
    if seen > len(forest.leaf) or (forest.leaf.any() and seen < len(forest.leaf)):
        raise ReadError(f"{call.where}: its trees have a cycle, or branches that meet")
    return depth


def _indexed(call: Call) -> Forest:
    """`TreeEnsemble`: only inner nodes are listed; a flag marks a branch that ends in a leaf."""
    count = len(call.get("nodes_featureids", ()))
    children = np.full((2, count), NO_NODE)
    for row, side in zip(children, SIDES, strict=True):
        inner = _numbers(call, f"nodes_{side}leafs") == 0
        row[inner] = _checked(call, _numbers(call, f"nodes_{side}nodeids")[inner], count)
    roots = _checked(call, _numbers(call, "tree_roots"), count)
    return Forest(children, np.zeros(count, bool), roots)


def _named(call: Call) -> Forest:
    """`TreeEnsembleClassifier` and `…Regressor`: nodes have a tree, a number in it and a mode."""
    trees, ids = _numbers(call, "nodes_treeids"), _numbers(call, "nodes_nodeids")
    leaf = np.array(call.get("nodes_modes", ()), bytes) == LEAF
    count, inner = len(ids), ~leaf
    if not len(trees) == len(leaf) == count:
        raise ReadError(
            f"{call.where}: nodes_treeids has {len(trees)} entries, nodes_nodeids {count}, "
            f"nodes_modes {len(leaf)}; all must have as many"
        )
    tree = np.unique(trees, return_inverse=True)[1]
    span = int(ids.max(initial=0)) + 1
    order = np.argsort(tree * span + ids)
    keys = (tree * span + ids)[order]
    children = np.full((2, count), NO_NODE)
    for row, side in zip(children, SIDES, strict=True):
        ends = _checked(call, _numbers(call, f"nodes_{side}nodeids")[inner], span)
        wanted = tree[inner] * span + ends
        at = np.minimum(np.searchsorted(keys, wanted), count - 1)
        _checked(call, np.where(keys[at] == wanted, 0, NO_NODE), 1)
        row[inner] = order[at]
    reached = np.zeros(count, bool)
    reached[children[:, inner]] = True
    return Forest(children, leaf, np.flatnonzero(~reached))


def _numbers(call: Call, attribute: str) -> np.ndarray:
    return np.array(call.get(attribute, ()), np.int64)


def _checked(call: Call, ends: np.ndarray, count: int) -> np.ndarray:
    if ((ends < 0) | (ends >= count)).any():
        raise ReadError(f"{call.where}: a node of its trees leads to one that is not there")
    return ends
