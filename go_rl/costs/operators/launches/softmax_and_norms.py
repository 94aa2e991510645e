"""Softmax and normalisations that a graph has in pieces, as the one kernel that PyTorch launches.

A softmax is known by its exponential, a norm by its reciprocal root; from there the nodes between
the tensor that enters and the one that leaves are collected. Pieces that are not complete stay
apart: nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Iterator

from go_rl.costs.operator_sizes import FLOAT_BYTES
from go_rl.costs.operators.launches.launch import Launch, batch_norm, moved, stream
from go_rl.costs.operators.launches.operator_view import OperatorView

SUMS = frozenset({"reduce_sum", "ReduceMean"})
SQUARES = frozenset({"square", "integer_pow", "pow", "mul"})
HLO_REDUCTION = "reduce"
"""HLO's name of sums and maxima alike."""
ROOTS = frozenset({"rsqrt", "sqrt"})
BETWEEN = frozenset({"add", "sub", "mul", "div", "max", "neg", "convert_element_type", *SQUARES})
LONGEST = 40
"""Nodes of a norm."""


def softmax_launches(view: OperatorView) -> Iterator[Launch]:
    """Yield softmax and its logarithm, forward."""
    for node, op in enumerate(view.op):
        if view.backward[node] or not view.live[node]:
            continue
        if op == "exp" and not view.is_launch[node]:
            found = _softmax(view, node)
            if found is not None:
                yield found
        elif op in ("Softmax", "LogSoftmax", "softmax"):
            yield stream("softmax", view.shape[node], (node,), "softmax")


def norm_launches(view: OperatorView) -> Iterator[Launch]:
    """Yield layer norms, batch norms and the like, forward."""
    for node, op in enumerate(view.op):
        if view.backward[node] or not view.live[node]:
            continue
        if op in ROOTS and not view.is_launch[node]:
            found = _norm(view, node)
            if found is not None:
                yield found
        elif op == "LayerNormalization":
            yield stream("ln", view.shape[node], (node,), "layer norm")
        elif op in ("RMSNormalization", "SimplifiedLayerNormalization"):
            yield stream("rmsnorm", view.shape[node], (node,), "root mean square norm")
        elif op in ("BatchNormalization", "batch-norm-inference", "InstanceNormalization",
                    "GroupNormalization", "batch-norm-training"):  # fmt: skip
            yield batch_norm(view.shape[node], (node,))


def _softmax(view: OperatorView, node: int) -> Launch | None:
    """The softmax of an exponential: max, difference, exponential, sum, quotient."""
    minus = next((o for o in view.sources(node) if view.op[o] == "sub"), None)
    if minus is None:
        return None
    inside = {node, minus}
    largest = _largest(view, minus, inside)
    if not largest:
        return None
    users = view.real_users(node)
    total = next((u for u in users if view.op[u] == "reduce_sum"), None)
    if total is None:
        return None
    inside.add(total)
    ends = [
        user for user in view.forward_users(total)
        if user > total
        and (view.op[user] == "log" or (view.op[user] in ("div", "mul") and user in users))
    ]  # fmt: skip
    if not ends:
        return None
    inside.add(ends[0])
    if view.op[ends[0]] == "log":
        last = [u for u in view.real_users(ends[0]) if view.op[u] == "sub"
                and minus in view.sources(u)]  # fmt: skip
        if not last:
            return None
        inside.add(last[0])
    name = "softmax" if view.op[ends[0]] != "log" else "log of softmax"
    return stream("softmax", view.shape[node], _with_views(view, inside), name)


def _largest(view: OperatorView, minus: int, inside: set[int]) -> bool:
    """Collect the maximum that a difference subtracts; whether there is one."""
    for operand in view.sources(minus):
        node, path = operand, set()
        while view.op[node] in ("max", "stop_gradient") and len(view.sources(node)) == 1:
            path.add(node)
            node = view.sources(node)[0]
        if view.op[node] == "reduce_max" or view.graph.op_type[node] == HLO_REDUCTION:
            inside |= path | {node}
            return True
    return False


def _norm(view: OperatorView, root: int) -> Launch | None:
    """The norm of a root: moments before it, scale and shift after it."""
    inside, sums = _moments(view, root)
    if not sums:
        return None
    enters = view.sources(min(sums))
    if len(enters) != 1:
        return None
    given = enters[0]
    if given in inside and view.op[given] in SQUARES and len(sums) == 1:
        given = (view.sources(given) or [given])[0]  # root mean square: no mean is taken
    inside = {node for node in inside if node > given or node in sums} - {given}
    scaled = _scaled(view, root, given, inside)
    if scaled is None:
        return None
    nodes = _with_views(view, inside)
    shape = view.shape[given]
    length = view.elements[given] // max(1, view.elements[min(sums)])
    if shape and length == shape[-1] and _along_last(view, min(sums), shape):
        return stream("ln", shape, nodes, "layer norm")
    return moved(3 * FLOAT_BYTES * view.elements[given], shape[-1] if shape else 1, nodes,
                 "batch norm", unlike=False)  # fmt: skip


def _along_last(view: OperatorView, node: int, shape: tuple[int, ...]) -> bool:
    made = [size for size in view.shape[node] if size > 1]
    return made == [size for size in shape[:-1] if size > 1]


def _moments(view: OperatorView, root: int) -> tuple[set[int], set[int]]:
    """Nodes before a root that lead to reductions, and the reductions."""
    inside, sums, stack = {root}, set(), [root]
    while stack and len(inside) < LONGEST:
        node = stack.pop()
        for operand in view.sources(node):
            if operand in inside or not _leads(view, operand, node, view.elements[root]):
                continue
            if view.op[operand] in SUMS:
                sums.add(operand)
            inside.add(operand)
            stack.append(operand)
    return inside, sums


def _leads(view: OperatorView, operand: int, node: int, rows: int) -> bool:
    """Whether a moment is computed of an operand: small tensors, sums, and of large ones squares
    and the differences that are squared."""
    op = view.op[operand]
    if not view.live[operand] or view.backward[operand]:
        return False
    if op in SUMS:
        return True
    if op not in BETWEEN or (view.op[node] in SUMS and op not in SQUARES):
        return False
    if view.elements[operand] <= rows:
        return True
    if view.op[node] in SQUARES:
        return op == "sub"
    return op in SQUARES


def _scaled(view: OperatorView, root: int, given: int, inside: set[int]) -> int | None:
    """Collect what follows a root until the shift; returns the last node, None: nothing does."""
    big, last, weighted = view.elements[given], None, {"mul": 0, "add": 0}
    known = inside | {given}
    frontier = sorted({u for n in inside for u in view.real_users(n)})
    for _ in range(3 * LONGEST):
        node = next((n for n in frontier if n not in inside and _joins(
            view, n, known, inside, given, weighted)), None)  # fmt: skip
        if node is None:
            break
        if view.weights[node] or any(view.only_weights(o) for o in view.operands[node]):
            weighted["add" if view.op[node] in ("add", "sub") else "mul"] += 1
        inside.add(node)
        known.add(node)
        frontier = sorted({*frontier, *view.real_users(node)} - inside)
        if view.elements[node] == big:
            last = node if last is None else max(last, node)
    return last


def _joins(
    view: OperatorView, node: int, known: set[int], inside: set[int], given: int,
    weighted: dict[str, int],
) -> bool:  # fmt: skip
    """Whether a node after a root still belongs to its norm."""
    op = view.op[node]
    if view.backward[node] or op not in ("mul", "div", "sub", "add", "convert_element_type"):
        return False
    operands = view.sources(node)
    if not any(o in inside for o in operands):
        return False
    if any(o not in known and view.live[o] for o in operands):
        return False
    has_weight = view.weights[node] > 0 or any(not view.live[o] for o in operands)
    if op == "add":
        return has_weight and not weighted["add"]
    if op in ("mul", "div") and has_weight:
        return not weighted["mul"]
    if op in ("mul", "div") and len(operands) == 1:
        return view.elements[node] < view.elements[given]
    return True


def _with_views(view: OperatorView, inside: set[int]) -> tuple[int, ...]:
    """Nodes with the views between them."""
    found = set(inside)
    for node in inside:
        for operand in view.operands[node]:
            path = []
            while view.is_view[operand] and len(view.operands[operand]) == 1:
                path.append(operand)
                operand = view.operands[operand][0]
            if operand in inside:
                found.update(path)
    return tuple(sorted(found))
