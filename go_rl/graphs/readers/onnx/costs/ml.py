"""Costs of the ``ai.onnx.ml`` operators: linear models, support vectors, trees and encoders.

FLOP follow the conventions of `operators`: a comparison is 1 FLOP, a multiply-add 2, exp and
power are transcendentals. Trees are counted to their farthest leaf, an upper bound: which way a
sample goes depends on data. Coefficients, vectors, trees and dictionaries are attributes; they are
stored as weights, and read whole by everything that does arithmetic with all of them.

Source: the operator specification of ONNX (``docs/Operators-ml.md``).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from go_rl.core.errors import ReadError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.cost_rules import Costs, cost_rules, no_flops, per_element
from go_rl.graphs.readers.onnx.call import Call, default_bytes, typed_tensor
from go_rl.graphs.readers.onnx.costs.fused import gather_bytes
from go_rl.graphs.readers.onnx.shapes.ml import ML_DOMAIN, rows

POST_TRANSFORM = {"NONE": 0, "SOFTMAX": 4, "LOGISTIC": 3, "SOFTMAX_ZERO": 5, "PROBIT": 14}
"""FLOP a score of the function applied to the scores, in the order of the numbers that
`TreeEnsemble` has for them; probit by Winitzki's formula."""
ENTRY_BYTES = 16.0
"""Bytes of one key and its value, read when it is looked up."""


def attribute_arrays(node: onnx.NodeProto) -> Tensor | None:
    """Return all numbers and strings in a node's attributes as one array of their mean size."""
    count, stored = 0, 0.0
    for a in node.attribute:
        if a.HasField("t"):
            elements = typed_tensor(tuple(a.t.dims), a.t.data_type)
            count, stored = count + elements.size, stored + elements.nbytes
        count += len(a.floats) + len(a.ints) + len(a.strings)
        stored += 4.0 * len(a.floats) + 8.0 * len(a.ints) + sum(map(len, a.strings))
    return Tensor((count,), stored / count) if count else None


def _samples(call: Call) -> int:
    return rows(call.operand(0).shape)


def _transformed(call: Call, scores: int) -> float:
    """The post transform of all scores, and the comparisons that pick a classifier's label."""
    picked = call.op.endswith("Classifier") * max(0, scores - 1)
    transform = POST_TRANSFORM[_choice(call, "post_transform", "NONE", POST_TRANSFORM)]
    return float(_samples(call) * (transform * scores + picked))


def _choice(call: Call, attribute: str, default: str, table: Mapping[str, Any]) -> str:
    """Return an attribute that must be a name in ``table``, or the number of one."""
    found = call.get(attribute, default)
    names = list(table)
    if isinstance(found, int) and 0 <= found < len(names):
        return names[found]
    if not isinstance(found, str) or found not in table:
        raise ReadError(f"{call.where}: {attribute} is {found!r}; one of {', '.join(names)}")
    return found


def _scores(call: Call) -> int:
    last = call.outputs[-1] or call.result
    return last.shape[-1]


def linear(call: Call) -> float:
    """A product with the coefficients, the intercepts, the post transform."""
    coefficients, intercepts = len(call.get("coefficients", ())), len(call.get("intercepts", ()))
    product = _samples(call) * (2.0 * coefficients + intercepts)
    return product + _transformed(call, max(1, intercepts))


KERNEL_FLOPS: dict[str, tuple[int, int]] = {
    "LINEAR": (2, 0),
    "POLY": (2, 2),
    "RBF": (3, 1),
    "SIGMOID": (2, 2),
}
"""FLOP of an SVM's kernel a feature, and a support vector."""


def support_vectors(call: Call) -> float:
    """The kernel of each sample and vector, the weighted sums of it, and their offsets."""
    features = call.operand(0).shape[-1]
    vectors = len(call.get("support_vectors", ())) // max(1, features)
    coefficients, offsets = len(call.get("coefficients", ())), len(call.get("rho", ()))
    each, fixed = KERNEL_FLOPS[_choice(call, "kernel_type", "LINEAR", KERNEL_FLOPS)]
    kernel = vectors * (each * features + fixed)
    scores = max(1, offsets)
    return _samples(call) * (kernel + 2.0 * coefficients + offsets) + _transformed(call, scores)


def trees(call: Call) -> float:
    """Comparisons down to the farthest leaf of each tree, and the sums of the leaves' weights."""
    depths = tree_depths(call)
    per_leaf = 1
    if call.op.endswith("Classifier"):
        leaves = call.get("nodes_modes", ()).count(b"LEAF")
        per_leaf = max(1, len(call.get("class_ids", ())) // max(1, leaves))
    walked = float(_samples(call) * (int(depths.sum()) + per_leaf * len(depths)))
    return walked + _transformed(call, _scores(call))


def tree_bytes(call: Call) -> float:
    """Operands, results, and the nodes on each sample's way, at most all of them."""
    if call.parameters is None:
        return default_bytes(call)
    nodes = max(1, len(call.get("nodes_featureids", ())))
    read = _samples(call) * int(tree_depths(call).sum()) * call.parameters.nbytes / nodes
    return default_bytes(call) + min(call.parameters.nbytes, read)


def parameter_bytes(call: Call) -> float:
    """Operands, results and all parameters."""
    return default_bytes(call) + (call.parameters.nbytes if call.parameters else 0.0)


def look_up_bytes(call: Call) -> float:
    """Operands, results and one entry of the dictionary for each element looked up."""
    stored = call.parameters.nbytes if call.parameters else 0.0
    return default_bytes(call) + min(stored, ENTRY_BYTES * call.operand(0).size)


_TABLE: dict[OpKind, dict[str, Costs]] = {
    OpKind.ELEMENTWISE: {
        "Binarizer": per_element(1),
        "Imputer Scaler": (per_element(2), parameter_bytes),
    },
    OpKind.GATHER: {
        "ArrayFeatureExtractor": (no_flops, gather_bytes),
        "CategoryMapper DictVectorizer LabelEncoder": (no_flops, look_up_bytes),
        "OneHotEncoder": (per_element(1), look_up_bytes),
        "TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor": (trees, tree_bytes),
    },
    OpKind.MATMUL: {
        "LinearClassifier LinearRegressor": (linear, parameter_bytes),
        "SVMClassifier SVMRegressor": (support_vectors, parameter_bytes),
    },
    OpKind.MOVEMENT: {"CastMap FeatureVectorizer ZipMap": no_flops},
    OpKind.REDUCTION: {"Normalizer": per_element(3)},
}

ML_RULES = cost_rules(f"{ML_DOMAIN}.", _TABLE)
"""The rule of each ``ai.onnx.ml`` operator."""

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
    """Root node of each tree, int64 [T]."""


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
