"""Depths of decision trees in the attributes of ``ai.onnx.ml`` tree ensembles."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import TypeVar

from go_rl.core.errors import ReadError
from go_rl.readers.onnx_call import Call

LEAF = b"LEAF"
T = TypeVar("T")


@dataclass(frozen=True)
class Forest:
    """The trees of one operator; nodes are numbered across them."""

    children: list[list[int]]
    """Nodes that each node leads to."""
    leaf: list[bool]
    """Nodes that compare nothing."""
    roots: list[int]


def tree_depths(call: Call) -> list[int]:
    """Return the comparisons from the root to the farthest leaf, for each tree.

    Raises:
        ReadError: a node leads to one that is not there, or back to itself.
    """
    forest = _indexed(call) if call.op.endswith(".TreeEnsemble") else _named(call)
    order = _parents_first(forest, call.where)
    depth = [0] * len(order)
    for node in reversed(order):
        if not forest.leaf[node]:
            depth[node] = 1 + max((depth[c] for c in forest.children[node]), default=0)
    return [depth[root] for root in forest.roots]


def _indexed(call: Call) -> Forest:
    """`TreeEnsemble`: only inner nodes are listed; a flag says whether a branch ends in a leaf."""
    count = len(call.get("nodes_featureids", ()))
    children: list[list[int]] = [[] for _ in range(count)]
    for side in ("true", "false"):
        ends, leaves = call.get(f"nodes_{side}nodeids", ()), call.get(f"nodes_{side}leafs", ())
        for i in range(count):
            if not leaves[i]:
                children[i].append(_known(call, int(ends[i]), range(count)))
    roots = [_known(call, int(root), range(count)) for root in call.get("tree_roots", ())]
    return Forest(children, [False] * count, roots)


def _named(call: Call) -> Forest:
    """`TreeEnsembleClassifier` and `…Regressor`: nodes have a tree, a number in it and a mode."""
    names = list(zip(call.get("nodes_treeids", ()), call.get("nodes_nodeids", ()), strict=True))
    at = {name: i for i, name in enumerate(names)}
    leaf = [mode == LEAF for mode in call.get("nodes_modes", ())]
    children: list[list[int]] = [[] for _ in names]
    for side in ("true", "false"):
        ends = call.get(f"nodes_{side}nodeids", ())
        for i, (tree, _) in enumerate(names):
            if not leaf[i]:
                children[i].append(at[_known(call, (tree, ends[i]), at)])
    reached = {child for ends in children for child in ends}
    return Forest(children, leaf, [i for i in range(len(names)) if i not in reached])


def _known(call: Call, node: T, nodes: Container[T]) -> T:
    if node not in nodes:
        raise ReadError(f"{call.where}: a node of its trees leads to {node}, which is not there")
    return node


def _parents_first(forest: Forest, where: str) -> list[int]:
    waiting = [0] * len(forest.children)
    for child in (c for ends in forest.children for c in ends):
        waiting[child] += 1
    ready = [i for i, count in enumerate(waiting) if count == 0]
    order: list[int] = []
    while ready:
        order.append(ready.pop())
        for child in forest.children[order[-1]]:
            waiting[child] -= 1
            if waiting[child] == 0:
                ready.append(child)
    if len(order) < len(waiting):
        raise ReadError(f"{where}: its trees have a cycle")
    return order
