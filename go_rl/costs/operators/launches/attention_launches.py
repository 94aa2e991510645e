"""Attention as the one kernel that a library has for it: where a graph names it, and, on request,
where a graph has its pieces (product, scale, mask, softmax, product)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

from go_rl.core import OpKind
from go_rl.costs.operators.launches.launch import Launch
from go_rl.costs.operators.launches.operator_view import OperatorView
from go_rl.costs.operators.launches.product_launches import product_sizes
from go_rl.costs.operators.tables.operator_rows import ATTENTION, ATTENTION_SIZES

OF_SCORE = 5
"""FLOP of a score beside its products, as readers count them; one more of a masked one."""
BETWEEN = frozenset({"add", "sub", "mul", "div", "max", "min", "select_n", "where", "Where", "tanh",
                     "convert_element_type", "transpose", "broadcast_in_dim"})  # fmt: skip
"""Operators that scores may pass between the first product and softmax, and probabilities before
the second."""
MOST_BETWEEN = 8
"""Operators between a product and softmax."""
WHOLE = 1e-4
"""Largest distance of a number of keys, computed from FLOP, from a whole one."""
PACKED = "com.microsoft.Attention"
"""Attention with the projection of its input to queries, keys and values."""
BY_GEOMETRY = frozenset({
    "Attention", PACKED, "com.microsoft.DecoderMaskedMultiHeadAttention",
    "com.microsoft.GroupQueryAttention", "com.microsoft.MultiHeadAttention",
})  # fmt: skip
"""Operators whose `go_rl.core.Geometry` has the heads, where their attributes say them."""


def fused_attention(view: OperatorView, node: int) -> Launch | None:
    """Return the one launch of a node that is a whole attention and nothing else; None: it is none,
    or projects its input besides (`attention_launches`), or the graph tells too little."""
    found = attention_launches(view, node)
    return found[0] if len(found) == 1 else None


def attention_launches(view: OperatorView, node: int) -> tuple[Launch, ...]:
    """Return the launch of a node that is a whole attention, after that of its projection where it
    has one; empty: it is none, or neither its geometry nor its operands tell heads and keys."""
    told = view.geometry(node, "groups") >= 1 and view.graph.op_type[node] in BY_GEOMETRY
    if told and len(view.shape[node]) == 3:
        return _of_geometry(view, node)
    whole = _of_operands(view, node)
    return () if whole is None else (whole,)


def _of_geometry(view: OperatorView, node: int) -> tuple[Launch, ...]:
    """Attention whose geometry has its heads, as ONNX's on operands [B, S, heads · depth]."""
    heads, share = (round(view.geometry(node, name)) for name in ("groups", "stride"))
    batch, queries, width = view.shape[node]
    if width % heads:
        return ()
    flops = float(view.graph.flops[node])
    found = [
        (keys, features)
        for features, rest in _after_projection(view, node, flops)
        for keys in _counts(rest, batch * heads, queries, width // heads)
    ]
    if not found:
        return ()
    keys, features = next((each for each in found if each[0] == queries), found[0])
    causal = view.geometry(node, "minor") == 1 and 1 < queries == keys
    sizes = (batch, heads, share, queries, keys, width // heads, int(causal))
    if not features:
        return (_launch(sizes, (node,)),)
    projected = {"batch": 1, "rows": batch * queries, "depth": features, "columns": 3 * width}
    return Launch("linear", projected, (node,), "projection"), _launch(sizes, ())


def _after_projection(view: OperatorView, node: int, flops: float) -> list[tuple[int, float]]:
    """Features of each row that a projection to queries, keys and values of one width may read,
    and the FLOP that it leaves, with a bias and without; 0 features: there is none."""
    if view.graph.op_type[node] != PACKED or not view.operands[node]:
        return [(0, flops)]
    made, width = view.elements[node], view.shape[node][2]
    features = view.elements[view.operands[node][0]] * width // made
    rest = ((features, flops - 3.0 * made * (2.0 * features + bias)) for bias in (1, 0))
    return [(each, left) for each, left in rest if left > 0]


def _counts(flops: float, heads: int, queries: int, depth: int) -> list[int]:
    """Whole numbers of keys that explain FLOP, with up to two masks, and with the bias of queries,
    keys and values that `MultiHeadAttention` adds or without.

    Args:
        flops: of all heads: for each query ``keys * (4 * depth + OF_SCORE + masks) - 1``; a bias is
            one more for each element of queries, keys and values.
        heads: of all sequences.
        queries: of each head.
        depth: of queries, keys and values.
    """
    found = []
    for biased in (0, 1):
        each = flops / (heads * queries) + 1 - biased * depth
        for masks in range(3):
            keys = each / (4 * depth + OF_SCORE + masks + biased * 2 * depth / queries)
            if keys > 0.5 and abs(keys - round(keys)) < WHOLE:
                found.append(round(keys))
    return found


def _of_operands(view: OperatorView, node: int) -> Launch | None:
    """Attention on operands of rank 4; None: it is none, or they do not tell heads and keys."""
    name = view.graph.op_type[node].lower()
    shapes = [view.shape[o] for o in view.operands[node] if len(view.shape[o]) == 4]
    if "attention" not in name or "backward" in name:
        return None
    # Operands come in the order of the graph: queries are those of which the result has as many.
    query = next((each for each in shapes if prod(each) == view.elements[node]), None)
    if query is None:
        return None
    key = next((each for each in shapes if each != query and each[-1] == query[-1]), query)
    heads_last = view.shape[node][-1] == query[2] * query[3] and len(view.shape[node]) == 3
    batch, heads, queries, depth = (query[i] for i in ((0, 2, 1, 3) if heads_last else range(4)))
    groups = max(1, heads // max(1, key[2 if heads_last else 1]))
    masked, keys = _keys(float(view.graph.flops[node]), batch * heads * queries, depth)
    if keys < 1:
        return None
    causal = masked and queries > 1 and len(view.operands[node]) < 4
    return _launch((batch, heads, groups, queries, keys, depth, int(causal)), (node,))


def _keys(flops: float, rows: int, depth: int) -> tuple[bool, int]:
    """Whether scores are masked, and to how many keys each of ``rows`` queries attends; 0: the FLOP
    are no whole number of keys either way."""
    for masked in (False, True):
        keys = (flops / max(1, rows) + 1) / (4 * depth + OF_SCORE + masked)
        if keys > 0 and abs(keys - round(keys)) < 1e-6 * keys:
            return masked, round(keys)
    return False, 0


def attention_of_pieces(view: OperatorView, softmax: Sequence[Launch]) -> Iterator[Launch]:
    """Yield launches that each stand for a softmax and the products before and after it.

    Args:
        view: of the graph.
        softmax: its launches of softmax, forward.
    """
    for launch in softmax:
        before = _product_before(view, launch.nodes)
        after = _product_after(view, launch.nodes)
        if not before or not after:
            continue
        all_heads, queries, keys, depth = product_sizes(view, before[-1])
        shape = view.shape[max(launch.nodes)]
        if all_heads * queries * keys != prod(shape):
            continue
        batch = shape[0] if len(shape) > 3 and all_heads % shape[0] == 0 else 1
        nodes = tuple(sorted({*before, *launch.nodes, *after}))
        yield _launch((batch, all_heads // batch, 1, queries, keys, depth, 0), nodes)


def _launch(sizes: tuple[int, ...], nodes: tuple[int, ...]) -> Launch:
    return Launch(
        ATTENTION, dict(zip(ATTENTION_SIZES, sizes, strict=True)), nodes, "fused attention"
    )


def _product_before(view: OperatorView, nodes: Sequence[int]) -> list[int]:
    """Nodes from a softmax back to the product of which its scores are, that product last; empty:
    there is none, or somebody else reads what lies between."""
    inside, found, size = set(nodes), list[int](), view.elements[max(nodes)]
    last = set(nodes)
    while len(found) < MOST_BETWEEN:
        scores = {o for n in last for o in view.sources(n) if o not in inside and view.live[o]
                  and view.elements[o] == size
                  and (_is_product(view, o) or view.op[o] in BETWEEN)}  # fmt: skip
        if len(scores) != 1 or not set(view.real_users(min(scores))) <= inside:
            return []
        (node,) = scores
        last = {node}
        found.append(node)
        inside.add(node)
        if _is_product(view, node):
            return found
    return []


def _product_after(view: OperatorView, nodes: Sequence[int]) -> list[int]:
    """Nodes from a softmax on to the product that reads its probabilities; empty: there is none."""
    found, node = list[int](), max(nodes)
    while len(found) < MOST_BETWEEN:
        users = [user for user in view.forward_users(node) if user not in nodes]
        if len(users) != 1:
            return []
        node = users[0]
        found.append(node)
        if _is_product(view, node):
            return found
        if view.op[node] not in BETWEEN:
            return []
    return []


def _is_product(view: OperatorView, node: int) -> bool:
    return int(view.graph.kind[node]) == OpKind.MATMUL and not view.backward[node]
