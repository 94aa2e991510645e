"""Operators that hold graphs: branches, loops, and regions that are inlined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from go_rl.core.errors import ReadError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers import decompositions as dense
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.graph_builder import GraphBuilder
from go_rl.graphs.readers.torch.costs.attention import BACKWARD_FLOPS
from go_rl.graphs.readers.torch.graph import add_node, bind_results, walk_graph, weights_of
from go_rl.graphs.readers.torch.program.schema import Argument, TorchGraph, TorchNode
from go_rl.graphs.readers.torch.recurrent import RECURRENT, add_recurrent
from go_rl.graphs.readers.torch.scope import (
    OPERATORS,
    ProgramScope,
    TorchValue,
    TorchWalk,
    operand,
    operator_of,
    refs_in,
    typed,
    values_in,
)
from go_rl.graphs.tables import by_name

Handler = Callable[[TorchWalk, ProgramScope, TorchNode], None]
Body = tuple[float, float, dict[str, Tensor]]
"""FLOP and bytes of one run of a body, and the stored arrays that it reads."""


def graphs_of(walk: TorchWalk, node: TorchNode, count: int) -> list[TorchGraph]:
    """Return the graphs among an operator's operands; a `ReadError` where some are missing."""
    found = [a.value for a in node.inputs if isinstance(a.value, TorchGraph)]
    if len(found) < count:
        raise ReadError(
            f"{walk.where}: node {node.name!r} ({node.target}) must hold {count} graphs, not "
            f"{len(found)}"
        )
    return found


def tensors_after(walk: TorchWalk, scope: ProgramScope, node: TorchNode) -> list[TorchValue]:
    """Return the tensors that an operator hands to its graph: those after the last graph."""
    last = max(
        (i for i, a in enumerate(node.inputs) if isinstance(a.value, TorchGraph)), default=-1
    )
    given = [operand(walk, scope, a.value, node) for a in node.inputs[last + 1 :]]
    return list(values_in(given))


def _inner(walk: TorchWalk, node: TorchNode, graph: TorchGraph, given: list[TorchValue]) -> dict:
    """Values of a graph's inputs: its tensors in the order in which they are given."""
    wanted = list(refs_in(graph.inputs))
    if len(wanted) > len(given):
        raise ReadError(
            f"{walk.where}: graph {graph.name!r} of node {node.name!r} reads {len(wanted)} tensors "
            f"and is given {len(given)}"
        )
    return {ref.name: value for ref, value in zip(wanted, given, strict=False)}


def _inline(
    walk: TorchWalk,
    scope: ProgramScope,
    node: TorchNode,
    graph: TorchGraph,
    given: list[TorchValue],
) -> None:
    """Add a graph's operators in the place of its node."""
    inner = ProgramScope(graph, _inner(walk, node, graph, given), f"{scope.prefix}{node.name}/")
    walk_graph(walk, inner)
    results = list(refs_in(graph.outputs))
    for made, result in zip(refs_in(node.outputs), results, strict=False):
        if result.name not in inner.values:
            raise ReadError(
                f"{walk.where}: graph {graph.name!r} of node {node.name!r} returns "
                f"{result.name!r}, which none of its nodes makes"
            )
        scope.values[made.name] = inner.values[result.name]


def _region(walk: TorchWalk, scope: ProgramScope, node: TorchNode) -> None:
    """A region under one setting (no gradients, automatic precision, recomputed in the backward
    pass) is its graph."""
    graph = graphs_of(walk, node, 1)[0]
    _inline(walk, scope, node, graph, tensors_after(walk, scope, node))


def _autograd(walk: TorchWalk, scope: ProgramScope, node: TorchNode) -> None:
    """An autograd function is its forward graph, the first; its backward graph is traced where it
    runs."""
    graph = graphs_of(walk, node, 1)[0]
    _inline(walk, scope, node, graph, tensors_after(walk, scope, node))


def work_of(walk: TorchWalk, node: TorchNode, graph: TorchGraph, given: list[TorchValue]) -> Body:
    """Return the work of one run of a graph, none of whose nodes is added."""
    counting = replace(walk, builder=GraphBuilder("body"))
    # Values from outside the body have no producer inside it, so that no edge is drawn to them.
    outside = [replace(value, producer=None) for value in given]
    inner = ProgramScope(graph, _inner(walk, node, graph, outside), "")
    walk_graph(counting, inner)
    nodes = [counting.builder.node(i) for i in range(len(counting.builder))]
    weights = {w: t for value in outside for w, t in value.weights.items()}
    return sum(n.flops for n in nodes), sum(n.bytes_accessed for n in nodes), weights


def _cond(walk: TorchWalk, scope: ProgramScope, node: TorchNode) -> None:
    """The branch of most FLOP (then bytes), which is noted."""
    given = tensors_after(walk, scope, node)
    branches = graphs_of(walk, node, 2)
    if id(node) not in walk.chosen:
        chosen = max(branches, key=lambda graph: work_of(walk, node, graph, given)[:2])
        walk.notes.append(f"{node.name}: of its branches the dearest is taken, {chosen.name}")
        walk.chosen[id(node)] = chosen
    _inline(walk, scope, node, walk.chosen[id(node)], given)


def _loop(walk: TorchWalk, scope: ProgramScope, node: TorchNode) -> None:
    """A loop whose values decide its trips: one node, body and condition times the trips."""
    trips = walk.sizes.trips.get(node.name, walk.trip_count)
    if trips is None:
        raise ReadError(
            f"{walk.where}: node {node.name!r} is a loop whose trips depend on values; give their "
            f"number: --trip-count 8, or --dim {node.name}.trips=8"
        )
    condition, body = graphs_of(walk, node, 2)[:2]
    given = tensors_after(walk, scope, node)
    one = work_of(walk, node, condition, given), work_of(walk, node, body, given)
    _fold(walk, scope, node, (sum(w[0] for w in one), sum(w[1] for w in one), one[1][2]), trips)


def _scan(walk: TorchWalk, scope: ProgramScope, node: TorchNode) -> None:
    """A loop over rows: one node, its body times the rows."""
    body = graphs_of(walk, node, 1)[0]
    lists = [a.value for a in node.inputs if isinstance(a.value, list)]
    carried, rows, others = ([*lists, [], [], []])[:3]
    if node.target.endswith((".map", ".map_impl", ".associative_scan")):
        carried, rows, others = [], carried, rows
    scanned = list(values_in(operand(walk, scope, rows, node)))
    trips = scanned[0].tensor.shape[0] if scanned and scanned[0].tensor.shape else 1
    sliced = [replace(v, tensor=replace(v.tensor, shape=v.tensor.shape[1:])) for v in scanned]
    ahead = list(values_in(operand(walk, scope, carried, node))) or (
        sliced if node.target.endswith(".associative_scan") else []
    )
    behind = list(values_in(operand(walk, scope, others, node)))
    work = work_of(walk, node, body, [*ahead, *sliced, *behind])
    _fold(walk, scope, node, work, trips)


def _fold(walk: TorchWalk, scope: ProgramScope, node: TorchNode, work: Body, trips: int) -> None:
    """Add the one node of a loop; weights stay in place between its trips."""
    flops, num_bytes, weights = work
    read = list(values_in([operand(walk, scope, a.value, node) for a in node.inputs]))
    kept = sum(t.nbytes for t in weights.values())
    moved = trips * max(0.0, num_bytes - kept) + (kept if trips else 0.0)
    made = list(refs_in(node.outputs))
    results = tuple(typed(walk, scope, ref) for ref in made)
    cost = (OpKind.CONTROL, trips * flops, moved)
    number = add_node(walk, scope, node, read, results, cost, weights=weights_of(read))
    bind_results(walk, scope, made, results, number)


def _flex_attention(walk: TorchWalk, scope: ProgramScope, node: TorchNode) -> None:
    """Attention, and the change of each score by a graph; masked blocks are counted in full."""
    read = list(values_in([operand(walk, scope, a.value, node) for a in node.inputs]))
    backward = node.target.endswith("_backward")
    if len(read) < 3:
        raise ReadError(f"{walk.where}: node {node.name!r}: queries, keys and values are missing")
    query, key, value = (v.tensor.shape for v in read[:3])
    heads, depths = query[0] * query[1], (query[-1], value[-1])
    scores = heads * query[-2] * key[-2]
    changes = [a.value for a in node.inputs if isinstance(a.value, TorchGraph)][:1]
    each = sum(len(graph.nodes) for graph in changes)
    flops = dense.attention(heads, query[-2], key[-2], *depths, each)
    if backward:
        flops = scores * (6.0 * depths[0] + 4.0 * depths[1] + BACKWARD_FLOPS + 2 * each)
    made = list(refs_in(node.outputs))
    results = tuple(typed(walk, scope, ref) for ref in made)
    moved = sum(v.num_bytes for v in read) + sum(t.nbytes for t in results)
    number = add_node(walk, scope, node, read, results, (OpKind.MATMUL, flops, moved))
    bind_results(walk, scope, made, results, number)


def _called(walk: TorchWalk, scope: ProgramScope, node: TorchNode) -> None:
    """An operator that is called by another, which makes it functional, gives it another type or
    keeps the state of random numbers: that operator."""
    place = next((i for i, a in enumerate(node.inputs) if isinstance(a.value, str)), None)
    if place is None:
        raise ReadError(f"{walk.where}: node {node.name!r} names no operator")
    target = node.inputs[place].value.replace("::", ".")
    target = target if target.startswith(OPERATORS) else f"{OPERATORS}{target}"
    rest = node.inputs[place + 1 :]
    known = POSITIONS.get(operator_of(target)[0], ("self",))
    unnamed = iter((*known, *map(str, range(len(rest)))))
    arguments = tuple(Argument(a.name or next(unnamed), a.value) for a in rest)
    plain = replace(node, target=target, inputs=arguments)
    walk_graph(walk, ProgramScope(replace(scope.graph, nodes=(plain,)), scope.values, scope.prefix))


def _passed(walk: TorchWalk, scope: ProgramScope, node: TorchNode) -> None:
    """A mark in the program: its results are its operands."""
    given = values_in([operand(walk, scope, a.value, node) for a in node.inputs])
    scope.values.update(
        {ref.name: value for ref, value in zip(refs_in(node.outputs), given, strict=False)}
    )


POSITIONS: dict[str, tuple[str, ...]] = {
    "aten.convolution": ("input", "weight", "bias", "stride", "padding", "dilation", "transposed"),
    "aten.native_dropout": ("input", "p", "train"),
    **dict.fromkeys(
        (
            "aten._scaled_dot_product_efficient_attention",
            "aten._scaled_dot_product_flash_attention",
            "aten.scaled_dot_product_attention",
        ),
        ("query", "key", "value"),
    ),
}
"""Names of operands that an operator which calls another hands over without names."""
HIGHER_ORDER: dict[str, Handler] = {
    f"higher_order.{name}": handler
    for name, handler in by_name(
        {
            "associative_scan map map_impl scan": _scan,
            "_export_tracepoint print register_hook": _passed,
            "auto_functionalized auto_functionalized_v2 graphsafe_run_with_rng_state out_dtype"
            " run_and_save_rng_state run_with_rng_state with_effects": _called,
            "autograd_function_apply custom_function_call": _autograd,
            "cond": _cond,
            "flex_attention flex_attention_backward": _flex_attention,
            "hints_wrapper inductor_compiled_code invoke_quant invoke_subgraph local_map_hop"
            " run_const_graph strict_mode tag_activation_checkpoint wrap wrap_activation_checkpoint"
            " wrap_with_autocast wrap_with_set_grad_enabled dynamo_bypassing_wrapper": _region,
            "while_loop while_loop_stack_output": _loop,
        }
    ).items()
}
"""Handler of each operator that holds graphs."""

SPECIAL: dict[str, Handler] = {**HIGHER_ORDER, **dict.fromkeys(RECURRENT, add_recurrent)}
"""Handler of each operator that no price alone describes."""
