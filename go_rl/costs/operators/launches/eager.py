"""`eager_launches`: a network's graph as the kernels that PyTorch launches operator by operator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from go_rl.core import OpGraph, OpKind
from go_rl.core.graph.op_kind import PRODUCT_KINDS
from go_rl.costs.operators.launches.activations import (
    activation_launches,
    dropout_launches,
    random_nodes,
)
from go_rl.costs.operators.launches.attention_launches import (
    attention_launches,
    attention_of_pieces,
)
from go_rl.costs.operators.launches.backward_launches import Bundle, backward_bundles
from go_rl.costs.operators.launches.launch import Launch, Launches, batch_norm
from go_rl.costs.operators.launches.operator_view import OperatorView
from go_rl.costs.operators.launches.product_launches import product_launches, product_sizes
from go_rl.costs.operators.launches.softmax_and_norms import norm_launches, softmax_launches
from go_rl.costs.operators.launches.stream_launches import stream_launch
from go_rl.costs.operators.tables import OperatorError


def eager_launches(graph: OpGraph, *, fuses_attention: bool = False) -> Launches:
    """Return the launches of a graph, in the order in which PyTorch issues them.

    Args:
        graph: a network.
        fuses_attention: whether attention whose pieces the graph has is one launch too.

    Raises:
        OperatorError: the graph launches nothing, or has no shapes (a profile of seconds).
    """
    if not graph.has_flops and graph.seconds:
        raise OperatorError(
            f"{graph.name}: is a profile of measured seconds, without shapes; launches follow from "
            "shapes: give the model itself (ONNX, HLO, zoo:NAME or module:function)"
        )
    view = OperatorView(graph)
    forward = _forward(view, fuses_attention=fuses_attention)
    backward = backward_bundles(view, forward)
    bundles = [*forward, *_products(view, backward=True), *backward, *_updates(view)]
    if not bundles:
        raise OperatorError(f"{graph.name}: launches no kernel: it only moves or names data")
    if any(view.is_bounded):
        bundles = [tuple(_as_bounded(view, launch) for launch in bundle) for bundle in bundles]
    return _ordered(view, bundles)


def _as_bounded(view: OperatorView, launch: Launch) -> Launch:
    """A launch, unlike what was measured if its sizes are upper bounds."""
    bounded = any(view.is_bounded[node] for node in launch.nodes)
    return replace(launch, unlike=launch.unlike or bounded)


def _forward(view: OperatorView, *, fuses_attention: bool) -> list[Bundle]:
    """Launches of the forward pass: what is recognised, products, then everything else."""
    taken: dict[int, None] = {}
    found: list[Bundle] = []
    random = random_nodes(view)
    softmax = list(softmax_launches(view))
    whole = attention_of_pieces(view, softmax) if fuses_attention else ()
    for launch in (
        *whole, *softmax, *norm_launches(view), *activation_launches(view),
        *dropout_launches(view, random), *_affine(view),
    ):  # fmt: skip
        if not any(node in taken for node in launch.nodes):
            taken.update(dict.fromkeys(launch.nodes))
            found.append((launch,))
    for bundle in _products(view, backward=False):
        if next(node for launch in reversed(bundle) for node in launch.nodes) in taken:
            continue
        taken.update(dict.fromkeys(node for launch in bundle for node in launch.nodes))
        found.append(bundle)
    for node in range(view.graph.num_nodes):
        if node in taken or node in random or view.backward[node] or view.after[node]:
            continue
        launch = stream_launch(view, node)
        found += [(launch,)] if launch is not None else []
    return found


def _products(view: OperatorView, backward: bool) -> Iterator[Bundle]:
    for node, kind in enumerate(view.graph.kind.tolist()):
        is_one = kind in PRODUCT_KINDS and view.elements[node] > 0
        if is_one and view.backward[node] is backward and view.live[node]:
            bias = () if backward else _bias(view, node)
            yield attention_launches(view, node) or tuple(product_launches(view, node, bias))


def _bias(view: OperatorView, node: int) -> tuple[int, ...]:
    """The node that adds a linear layer's bias, with the views before it."""
    users = view.forward_users(node)
    if len(users) != 1 or view.graph.kind[node] != OpKind.MATMUL:
        return ()
    (added,) = users
    others = [o for o in view.sources(added) if o != node]
    if view.op[added] != "add" or any(view.live[o] for o in others):
        return ()
    weights = view.weights[added] + sum(view.elements[o] for o in others)
    if weights != product_sizes(view, node)[2] or len(others) > 1:
        return ()
    return _path(view, added, node)


def _path(view: OperatorView, node: int, start: int) -> tuple[int, ...]:
    """A node and the views between it and where its operand comes from."""
    found = [node]
    for operand in view.operands[node]:
        path = []
        while operand != start and view.is_view[operand] and view.operands[operand]:
            path.append(operand)
            operand = view.operands[operand][0]
        if operand == start:
            found += path
    return tuple(sorted(found))


def _affine(view: OperatorView) -> Iterator[Launch]:
    """Yield scale and shift by weights alone, one after the other: a batch norm in inference."""
    used: set[int] = set()
    for node in range(view.graph.num_nodes):
        chain = [node]
        while _is_affine(view, chain[-1]) and chain[-1] not in used:
            users = view.real_users(chain[-1])
            if len(users) != 1 or not _is_affine(view, users[0]):
                break
            chain.append(users[0])
        ops = [view.op[n] for n in chain]
        if len(chain) > 1 and "mul" in ops and {"add", "sub"} & set(ops):
            used.update(chain)
            yield batch_norm(view.shape[node], tuple(chain))


def _is_affine(view: OperatorView, node: int) -> bool:
    """Whether an element-wise node changes one tensor by weights that are broadcast."""
    if view.op[node] not in ("add", "sub", "mul") or not view.live[node] or view.is_launch[node]:
        return False
    if view.backward[node] or view.after[node]:
        return False
    alive = [o for o in view.sources(node) if view.live[o]]
    weights = view.weights[node] + sum(
        view.elements[o] for o in view.sources(node) if not view.live[o]
    )
    from_product = alive and view.graph.kind[alive[0]] == OpKind.MATMUL
    return len(alive) == 1 and 1 < weights < view.elements[node] and not from_product


def _updates(view: OperatorView) -> Iterator[Bundle]:
    """Yield what follows the backward pass: a scaled gradient is added to its weights in one
    launch."""
    taken: set[int] = set()
    for node in reversed(range(view.graph.num_nodes)):
        if not view.after[node] or node in taken:
            continue
        launch = stream_launch(view, node)
        if launch is None:
            continue
        scaled = [
            o for o in view.sources(node)
            if view.after[o] and view.op[o] == "mul" and view.scalar_only(o)
            and view.real_users(o) == [node]
        ]  # fmt: skip
        if view.op[node] in ("sub", "add") and view.weights[node] and scaled:
            taken.update(scaled)
            launch = Launch(launch.op, launch.sizes, (*sorted(scaled), node), "update")
        yield (launch,)


def _ordered(view: OperatorView, bundles: Sequence[Bundle]) -> Launches:
    """Launches by the last node that they stand for, and which they wait for."""
    anchored = sorted(bundles, key=lambda b: max(n for launch in b for n in launch.nodes))
    owner = {n: i for i, b in enumerate(anchored) for launch in b for n in launch.nodes}
    reach: list[frozenset[int]] = []
    needs: list[set[int]] = [set() for _ in anchored]
    nothing: frozenset[int] = frozenset()
    for node, operands in enumerate(view.operands):
        before = nothing.union(*(reach[o] for o in operands))
        if node in owner:
            needs[owner[node]] |= before
        reach.append(frozenset((owner[node],)) if node in owner else before)
    each: list[Launch] = []
    waits: list[tuple[int, ...]] = []
    last: list[int] = []
    for number, bundle in enumerate(anchored):
        first = tuple(sorted(last[n] for n in needs[number] if n < number))
        for place, launch in enumerate(bundle):
            waits.append(first if place == 0 else (len(each) - 1,))
            each.append(launch)
        last.append(len(each) - 1)
    return Launches(view.graph, tuple(each), tuple(waits))
