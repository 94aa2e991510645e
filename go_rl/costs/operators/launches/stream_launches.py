"""Launches of everything that is no product: element-wise operators, reductions, copies."""

from __future__ import annotations

from math import prod
from types import MappingProxyType

from go_rl.core import OpKind
from go_rl.core.graph.op_kind import PRODUCT_KINDS
from go_rl.costs.operators.launches.launch import Launch, moved, stream
from go_rl.costs.operators.launches.operator_view import OperatorView

NAMED = MappingProxyType({
    "add": "add", "add_any": "add", "sub": "add", "mul": "mul", "div": "div", "pow": "pow",
    "max": "add", "min": "add",
})  # fmt: skip
"""Operators of two tensors, by the one of the table that moves as much."""
ALONE = MappingProxyType({
    "add": "addu", "add_any": "addu", "sub": "addu", "mul": "mulu", "div": "divu", "pow": "powu",
    "integer_pow": "powu", "square": "powu", "sqrt": "powu", "rsqrt": "powu", "max": "relu",
    "min": "relu", "tanh": "tanh", "Relu": "relu", "relu": "relu", "gelu": "gelu",
})  # fmt: skip
"""Operators of one tensor, with a number, or with a smaller tensor that is broadcast."""
MAXIMUM = "maximum"
"""Description of a floor under the scores of a softmax, which is no ReLU to PyTorch's autograd."""
LOOK_UPS = frozenset({"gather", "GatherElements", "GatherND", "dynamic_slice"})
"""Operators that read as much of an operand as they write."""
RIDGE = 16.0
"""FLOP a byte beyond which GPUs compute longer than they move."""
POOLING = ("reduce_window", "Pool", "select_and_scatter")


def stream_launch(view: OperatorView, node: int) -> Launch | None:
    """Return the launch of a node that is no product; None: there is none."""
    if view.graph.is_fed[node] or not view.live[node] or view.is_view[node]:
        return None
    kind, op = view.graph.kind[node], view.op[node]
    if op == "transpose":
        return _copy(view, node) if is_copied(view, node) else None
    if op == "convert_element_type" and _same_size(view, node):
        return None
    if op == "reshape" and view.operands[node]:
        return stream("copy", view.shape[node], (node,), "copy")
    if kind == OpKind.ELEMENTWISE and view.elements[node]:
        return _elementwise(view, node)
    if kind == OpKind.GATHER and op == "gather":
        return stream("gather", view.shape[node], (node,), "gather")
    if op == "concatenate" and view.elements[node] and _has_width(view, node):
        return stream("concat", view.shape[node], (node,), op)
    if kind == OpKind.CONTROL:
        return _folded_loop(view, node)
    if kind == OpKind.REDUCTION and (found := _sum(view, node)) is not None:
        return found
    unlike = kind == OpKind.OTHER or any(part in op for part in POOLING)
    return _by_bytes(view, node, unlike)


def _folded_loop(view: OperatorView, node: int) -> Launch:
    """One product of equal sides that computes as much as all trips of a loop, where that takes
    longer than moving their bytes; else a stream of these."""
    num_bytes, flops = (float(each[node]) for each in (view.graph.bytes_accessed, view.graph.flops))
    if flops > RIDGE * num_bytes:
        side = max(1, round((flops / 2) ** (1 / 3)))
        sizes = {"batch": 1, "rows": side, "depth": side, "columns": side}
        return Launch("linear", sizes, (node,), view.op[node], unlike=True)
    row = view.shape[node][-1] if view.shape[node] else 1
    return moved(max(1.0, num_bytes), row, (node,), view.op[node], unlike=True)


def is_copied(view: OperatorView, node: int) -> bool:
    """Whether PyTorch copies where a tensor is transposed: before a reshape that needs its elements
    in order, and before a batched product, unless only its last two dimensions change places."""
    given, made = view.shape[view.source(view.operands[node][0])], view.shape[node]
    direct = view.shape[view.operands[node][0]]
    if not view.live[node] or [s for s in direct if s > 1] == [s for s in made if s > 1]:
        return False
    users = view.users[node]
    if any(view.op[user] == "reshape" for user in users) or given == ():
        return True
    heavy = [user for user in users if view.graph.kind[user] in PRODUCT_KINDS]
    if not heavy or (direct[:-2] == made[:-2]):
        return False
    return made[0] > 1 or any(len(view.shape[user]) < len(made) for user in heavy)


def _copy(view: OperatorView, node: int) -> Launch:
    given, made = view.shape[view.operands[node][0]], view.shape[node]
    of_product = view.graph.kind[view.source(view.operands[node][0])] in PRODUCT_KINDS
    keeps_rows = of_product or (bool(given) and bool(made) and given[-1] == made[-1])
    return stream("copy" if keeps_rows else "transpose", made, (node,), "copy")


def _sum(view: OperatorView, node: int) -> Launch | None:
    """A reduction over the last dimensions, or the first ones; None: over others."""
    if len(view.operands[node]) != 1 or not _has_width(view, node):
        return None
    given = [size for size in view.shape[view.operands[node][0]] if size > 1]
    made = [size for size in view.shape[node] if size > 1]
    kept, summed = prod(made), prod(given) // max(1, prod(made))
    if len(made) >= len(given):
        return None
    if given[: len(made)] == made:
        return Launch("sum", {"batch": kept, "width": summed}, (node,), view.op[node])
    if given[-len(made) :] == made:
        return Launch("columnsum", {"batch": summed, "width": kept}, (node,), view.op[node])
    return None


def _has_width(view: OperatorView, node: int) -> bool:
    """Whether a node and what it reads have elements of one width that tells their type: 4 bytes,
    or 2 where the graph states types."""
    graph = view.graph
    widths = {int(graph.output_itemsize[n]) for n in (node, *view.operands[node])}
    return widths == {4} or (widths == {2} and graph.element_type is not None)


def _same_size(view: OperatorView, node: int) -> bool:
    """Whether a conversion keeps the width of elements: of float32, it does nothing."""
    sizes = view.graph.output_itemsize
    return all(sizes[o] == sizes[node] for o in view.operands[node])


def _elementwise(view: OperatorView, node: int) -> Launch:
    op, made = view.op[node], view.elements[node]
    full = [o for o in view.operands[node] if view.elements[o] == made]
    count = len(full) + (view.weights[node] == made)
    wide = _has_width(view, node) or all(view.graph.output_itemsize[n] == 4 for n in (node, *full))
    if wide and count == 2 and op in NAMED:
        return stream(NAMED[op], view.shape[node], (node,), _what(view, node))
    if wide and count <= 1 and op in ALONE:
        return stream(ALONE[op], view.shape[node], (node,), _what(view, node))
    return _by_bytes(view, node, False)


def _what(view: OperatorView, node: int) -> str:
    """Description of a stream, for people."""
    if view.after[node]:
        return "update"
    if view.op[node] in ("add", "add_any") and len(view.operands[node]) == 2:
        small = any(view.elements[o] < view.elements[node] for o in view.operands[node])
        return "add of a mask or the like" if small else "add"
    if view.op[node] == "max":
        scores = any(view.op[user] == "reduce_max" for user in view.real_users(node))
        return MAXIMUM if scores else "relu"
    return "relu" if view.op[node] == "Relu" else view.op[node]


def _by_bytes(view: OperatorView, node: int, unlike: bool) -> Launch:
    """A kernel that reads each operand, or of a table what it looks up, and writes its result."""
    graph = view.graph
    written = max(float(graph.output_bytes[node]), 1.0)
    parts = [float(view.elements[o] * graph.output_itemsize[o]) for o in view.operands[node]]
    read = sum(min(part, written) if view.op[node] in LOOK_UPS else part for part in parts)
    if view.op[node].startswith("scatter"):
        read = 0.0
    weights = min(float(graph.weight_bytes[node]), written)
    shape = view.shape[node]
    return moved(read + written + weights, shape[-1] if shape else 1, (node,), view.op[node],
                 unlike)  # fmt: skip
