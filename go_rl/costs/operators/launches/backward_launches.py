"""Launches of the backward pass: what PyTorch's autograd starts for each launch of the forward one.

Products of the backward pass are nodes of the graph and are read as such. The rest is not what
PyTorch computes: JAX differentiates softmax or layer norm piece by piece, PyTorch has one kernel
for each. So the remaining nodes are gathered by the forward launch whose scope and source line they
carry, and replaced by its gradient's kernels. Nodes that carry none stay kernels of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from go_rl.core.graph.op_kind import PRODUCT_KINDS
from go_rl.costs.operator_sizes import FLOAT_BYTES
from go_rl.costs.operators.launches.launch import Launch, moved, stream
from go_rl.costs.operators.launches.operator_view import OperatorView
from go_rl.costs.operators.launches.stream_launches import MAXIMUM, stream_launch
from go_rl.costs.operators.tables.operator_rows import PRODUCTS

OF_MAXIMUM = 5
"""Kernels of the gradient of ``torch.maximum``: equal, halved, chosen, less, masked; they move as
much as this many kernels that read and write a tensor."""
Bundle = tuple[Launch, ...]
Key = tuple[str, str]
SCALED = frozenset({"mulu", "divu"})
CURVED = frozenset({"relu", "gelu", "tanh", "powu", "softmax"})
"""Operators whose gradient reads two tensors and writes one."""


def backward_bundles(view: OperatorView, forward: Sequence[Bundle]) -> list[Bundle]:
    """Return the launches of the backward pass other than products; each bundle has the nodes that
    it stands for on its first launch."""
    nodes = [n for n in range(view.graph.num_nodes) if _is_rest(view, n)]
    if not nodes:
        return []
    owner = _owners(view, forward)
    groups: dict[int, list[int]] = {}
    members: dict[int, dict[int, None]] = {}
    found: list[Bundle] = []
    for node in nodes:
        owners = owner.get(_key(view, node), ())
        if owners:
            groups.setdefault(owners[0], []).append(node)
            members.setdefault(owners[0], {}).update(dict.fromkeys(owners))
        else:
            launch = stream_launch(view, node)
            found += [(launch,)] if launch is not None else []
    sums = _sums(view, forward, {n for each in members.values() for n in each})
    done: set[int] = set()
    for first, own in groups.items():
        numbers = [n for n in members[first] if n not in done]
        done.update(numbers)
        kernels = [k for n in numbers for k in (*sums.get(n, ()), *_gradient(view, forward[n]))]
        if kernels:
            found.append((replace(kernels[0], nodes=tuple(own)), *kernels[1:]))
    return found


def _is_rest(view: OperatorView, node: int) -> bool:
    """Whether a node of the backward pass computes something, and is no product."""
    heavy = int(view.graph.kind[node]) in PRODUCT_KINDS
    return view.backward[node] and view.live[node] and not view.is_view[node] and not heavy


def _key(view: OperatorView, node: int) -> Key:
    """Scope of a node's name, and the line of the user's code."""
    line = view.graph.source[node].split(" ")[-1]
    return str(view.graph.names[node]).rpartition("/")[0], line


def _owners(view: OperatorView, forward: Sequence[Bundle]) -> dict[Key, list[int]]:
    """Forward bundles by the scopes and lines of their nodes."""
    found: dict[Key, list[int]] = {}
    for number, bundle in enumerate(forward):
        for key in {_key(view, node) for launch in bundle for node in launch.nodes}:
            if key[1]:
                found.setdefault(key, []).append(number)
    return found


def _sums(
    view: OperatorView, forward: Sequence[Bundle], known: set[int]
) -> dict[int, list[Launch]]:
    """Additions of the gradients of tensors that several launches read, by a forward bundle with
    which they are issued: its own, or that of one that reads it."""
    place = {n: i for i, bundle in enumerate(forward) for launch in bundle for n in launch.nodes}
    readers: list[dict[int, None]] = [{} for _ in forward]
    for node, number in place.items():
        for user in view.real_users(node):
            if place.get(user, number) != number:
                readers[number].setdefault(place[user])
    found: dict[int, list[Launch]] = {}
    for number, each in enumerate(readers):
        at = next((n for n in (number, *each) if n in known), None)
        if at is not None and len(each) > 1 and _learns(view, forward[number]):
            shape = _shape(view, forward[number])
            more = [stream("add", shape, (), "sum of gradients")] * (len(each) - 1)
            found.setdefault(at, []).extend(more)
    return found


def _learns(view: OperatorView, bundle: Bundle) -> bool:
    """Whether a gradient flows through a bundle."""
    return any(view.learns[node] for launch in bundle for node in launch.nodes)


def _gradient(view: OperatorView, bundle: Bundle) -> list[Launch]:
    """Kernels of the gradient of one forward launch, its products left out."""
    last = bundle[-1]
    if not _learns(view, bundle):
        return []
    shape = _shape(view, bundle)
    if last.op in PRODUCTS:
        found = [stream("relu", _row_shape(each), (), "copy of a gradient") for each in bundle[:-1]]
        if "bias" in last.what:
            found.append(_sum_of(view, bundle, "gradient of a bias"))
        return found
    if last.what == "gather":
        return [_table_gradient(view, last)]
    if last.op == "ln":
        return [stream("mul", shape, (), "gradient of layer norm"),
                stream("relu", shape, (), "gradient of scale and shift")]  # fmt: skip
    if last.what == "batch norm":
        return [moved(5 * _bytes(last), shape[-1], (), "gradient of batch norm")]
    if last.what == "copy":
        return [stream("relu", shape, (), "copy of a gradient")]
    if last.op in SCALED:
        return [stream("mulu", shape, (), "gradient of scaling")]
    if last.op in ("mul", "div", "pow"):
        return [stream("mul", shape, (), f"gradient of {last.what}")] * 2
    if last.op in ("add", "addu"):
        return []
    if last.what == MAXIMUM:
        return [stream("relu", shape, (), "gradient of a maximum")] * OF_MAXIMUM
    if last.op in CURVED and last.what not in ("reduce_sum", "ReduceMean"):
        return [stream("mul", shape, (), f"gradient of {last.what}")]
    return [stream("relu", shape, (), f"gradient of {last.what}")]


def _shape(view: OperatorView, bundle: Bundle) -> tuple[int, ...]:
    """Shape of what a bundle makes."""
    nodes = [node for launch in bundle for node in launch.nodes]
    return view.shape[max(nodes, key=lambda n: (view.elements[n], n))]


def _row_shape(launch: Launch) -> tuple[int, int]:
    return launch.sizes["batch"], launch.sizes["width"]


def _bytes(launch: Launch) -> float:
    return float(FLOAT_BYTES * launch.sizes["batch"] * launch.sizes["width"])


def _sum_of(view: OperatorView, bundle: Bundle, what: str) -> Launch:
    """A reduction of all that a bundle makes."""
    shape = _shape(view, bundle)
    elements = max(view.elements[n] for n in bundle[-1].nodes)
    return moved(FLOAT_BYTES * elements, shape[-1], (), what)


def _table_gradient(view: OperatorView, launch: Launch) -> Launch:
    """The gradient of an embedding: a table of zeros, and rows added to it."""
    (node, *_) = launch.nodes
    table = view.weights[node] or view.elements[view.operands[node][0]]
    shape = view.shape[node]
    num_bytes = FLOAT_BYTES * (table + 2 * view.elements[node])
    return moved(num_bytes, shape[-1] if shape else 1, (), "gradient of an embedding")
