"""Operators that hold graphs: branches, loops, and regions that are inlined."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from go_rl.core.errors import ReadError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers import decompositions as dense
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.graph_builder import GraphBuilder
from go_rl.graphs.readers.operand import Operand, weights_of
from go_rl.graphs.readers.torch.costs.attention import BACKWARD_FLOPS
from go_rl.graphs.readers.torch.graph import add_node, walk_graph
from go_rl.graphs.readers.torch.program.schema import Argument, TorchGraph, TorchNode
from go_rl.graphs.readers.torch.recurrent import RECURRENT, add_recurrent
from go_rl.graphs.readers.torch.scope import (
    OPERATORS,
    ProgramScope,
    operator_of,
    refs_in,
    values_in,
)
from go_rl.graphs.readers.torch.sizes import subgraphs
from go_rl.graphs.tables import by_name

Handler = Callable[[ProgramScope, TorchNode], None]
Body = tuple[float, float, dict[str, Tensor]]
"""FLOP and bytes of one run of a body, and the stored arrays that it reads."""


def graphs_of(scope: ProgramScope, node: TorchNode, count: int) -> list[TorchGraph]:
    """Return the graphs among an operator's operands; a `ReadError` where some are missing."""
    found = list(subgraphs(node.inputs))
    if len(found) < count:
        raise ReadError(
            f"{scope.place(node)} ({node.target}) must hold {count} graphs, not {len(found)}"
        )
    return found


def tensors_after(scope: ProgramScope, node: TorchNode) -> list[Operand]:
    """Return the tensors that an operator hands to its graph: those after the last graph."""
    graphs = [i for i, a in enumerate(node.inputs) if isinstance(a.value, TorchGraph)]
    return scope.read(node, max(graphs, default=-1) + 1)


def _inner(
    scope: ProgramScope, node: TorchNode, graph: TorchGraph, given: list[Operand]
) -> ProgramScope:
    """Scope of a graph whose inputs are its tensors in the order in which they are given."""
    wanted = list(refs_in(graph.inputs))
    if len(wanted) > len(given):
        raise ReadError(
            f"{scope.walk.where}: graph {graph.name!r} of node {node.name!r} reads {len(wanted)} "
            f"tensors and is given {len(given)}"
        )
    values = {ref.name: value for ref, value in zip(wanted, given, strict=False)}
    return ProgramScope(scope.walk, graph, values, f"{scope.prefix}{node.name}/")


def _inline(scope: ProgramScope, node: TorchNode, graph: TorchGraph, given: list[Operand]) -> None:
    """Add a graph's operators in the place of its node."""
    inner = _inner(scope, node, graph, given)
    walk_graph(inner)
    for made, result in zip(refs_in(node.outputs), refs_in(graph.outputs), strict=False):
        if result.name not in inner.values:
            raise ReadError(
                f"{scope.walk.where}: graph {graph.name!r} of node {node.name!r} returns "
                f"{result.name!r}, which none of its nodes makes"
            )
        scope.values[made.name] = inner.values[result.name]


def _region(scope: ProgramScope, node: TorchNode) -> None:
    """A region under one setting (no gradients, automatic precision, recomputed in the backward
    pass) is its graph; an autograd function is its forward graph, the first, for its backward graph
    is traced where it runs."""
    _inline(scope, node, graphs_of(scope, node, 1)[0], tensors_after(scope, node))


def work_of(scope: ProgramScope, node: TorchNode, graph: TorchGraph, given: list[Operand]) -> Body:
    """Return the work of one run of a graph, none of whose nodes is added."""
    # Values from outside the body have no producer inside it, so that no edge is drawn to them.
    outside = [replace(value, producer=None) for value in given]
    counting = replace(scope.walk, builder=GraphBuilder("body"))
    inner = replace(_inner(scope, node, graph, outside), walk=counting, prefix="")
    walk_graph(inner)
    nodes = counting.builder.nodes
    return (
        sum(n.flops for n in nodes), sum(n.bytes_accessed for n in nodes), weights_of(outside)
    )  # fmt: skip


def _cond(scope: ProgramScope, node: TorchNode) -> None:
    """The branch of most FLOP (then bytes), which is noted."""
    given, chosen = tensors_after(scope, node), scope.walk.chosen
    branches = graphs_of(scope, node, 2)
    if id(node) not in chosen:
        dearest = max(branches, key=lambda graph: work_of(scope, node, graph, given)[:2])
        note = f"{node.name}: of its branches the dearest is taken, {dearest.name}"
        scope.walk.notes.append(note)
        chosen[id(node)] = dearest
    _inline(scope, node, chosen[id(node)], given)


def _loop(scope: ProgramScope, node: TorchNode) -> None:
    """A loop whose values decide its trips: one node, body and condition times the trips."""
    trips = scope.walk.sizes.trips.get(node.name, scope.walk.trip_count)
    if trips is None:
        raise ReadError(
            f"{scope.place(node)} is a loop whose trips depend on values; give their "
            f"number: --trip-count 8, or --dim {node.name}.trips=8"
        )
    condition, body = graphs_of(scope, node, 2)[:2]
    given = tensors_after(scope, node)
    one = work_of(scope, node, condition, given), work_of(scope, node, body, given)
    _fold(scope, node, (sum(w[0] for w in one), sum(w[1] for w in one), one[1][2]), trips)


def _scan(scope: ProgramScope, node: TorchNode) -> None:
    """A loop over rows: one node, its body times the rows."""
    body = graphs_of(scope, node, 1)[0]
    lists = [a.value for a in node.inputs if isinstance(a.value, list)]
    given = [list(values_in(scope.operand(each, node))) for each in [*lists, [], [], []][:3]]
    carried, scanned, others = given
    if node.target.endswith((".map", ".map_impl", ".associative_scan")):
        carried, scanned, others = [], given[0], given[1]
    trips = scanned[0].shape[0] if scanned and scanned[0].shape else 1
    # A trip reads one row, though the loop is sent the whole.
    rows = max(trips, 1)
    sliced = [
        replace(v, tensor=replace(v.tensor, shape=v.shape[1:]), sent_bytes=v.num_bytes / rows)
        for v in scanned
    ]
    if node.target.endswith(".associative_scan"):
        carried = sliced
    _fold(scope, node, work_of(scope, node, body, [*carried, *sliced, *others]), trips)


def _fold(scope: ProgramScope, node: TorchNode, work: Body, trips: int) -> None:
    """Add the one node of a loop; weights stay in place between its trips."""
    flops, num_bytes, weights = work
    kept = sum(t.nbytes for t in weights.values())
    moved = trips * max(0.0, num_bytes - kept) + (kept if trips else 0.0)
    add_node(scope, node, scope.read(node), (OpKind.CONTROL, trips * flops, moved))


def _flex_attention(scope: ProgramScope, node: TorchNode) -> None:
    """Attention, and the change of each score by a graph; masked blocks are counted in full."""
    read = scope.read(node)
    if len(read) < 3:
        raise ReadError(f"{scope.place(node)}: queries, keys and values are missing")
    query, key, value = (v.shape for v in read[:3])
    heads, depths = query[0] * query[1], (query[-1], value[-1])
    changes = list(subgraphs(node.inputs))[:1]
    each = sum(len(graph.nodes) for graph in changes)
    flops = dense.attention(heads, query[-2], key[-2], *depths, each)
    if node.target.endswith("_backward"):
        scores = heads * query[-2] * key[-2]
        flops = scores * (6.0 * depths[0] + 4.0 * depths[1] + BACKWARD_FLOPS + 2 * each)
    results = scope.result_types(node)
    moved = sum(v.num_bytes for v in read) + sum(t.nbytes for t in results)
    add_node(scope, node, read, (OpKind.MATMUL, flops, moved))


def _called(scope: ProgramScope, node: TorchNode) -> None:
    """An operator that is called by another, which makes it functional, gives it another type or
    keeps the state of random numbers: that operator."""
    place = next((i for i, a in enumerate(node.inputs) if isinstance(a.value, str)), None)
    if place is None:
        raise ReadError(f"{scope.place(node)} names no operator")
    target = node.inputs[place].value.replace("::", ".")
    target = target if target.startswith(OPERATORS) else f"{OPERATORS}{target}"
    rest = node.inputs[place + 1 :]
    known = POSITIONS.get(operator_of(target), ("self",))
    unnamed = iter((*known, *map(str, range(len(rest)))))
    arguments = tuple(Argument(a.name or next(unnamed), a.value) for a in rest)
    plain = replace(node, target=target, inputs=arguments)
    walk_graph(replace(scope, graph=replace(scope.graph, nodes=(plain,))))


def _passed(scope: ProgramScope, node: TorchNode) -> None:
    """A mark in the program: its results are its operands."""
    results = zip(refs_in(node.outputs), scope.read(node), strict=False)
    scope.values.update({ref.name: value for ref, value in results})


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
            "cond": _cond,
            "flex_attention flex_attention_backward": _flex_attention,
            "autograd_function_apply custom_function_call hints_wrapper inductor_compiled_code"
            " invoke_quant invoke_subgraph local_map_hop run_const_graph strict_mode"
            " tag_activation_checkpoint wrap wrap_activation_checkpoint wrap_with_autocast"
            " wrap_with_set_grad_enabled dynamo_bypassing_wrapper": _region,
            "while_loop while_loop_stack_output": _loop,
        }
    ).items()
}
"""Handler of each operator that holds graphs."""

SPECIAL: dict[str, Handler] = {**HIGHER_ORDER, **dict.fromkeys(RECURRENT, add_recurrent)}
"""Handler of each operator that no price alone describes."""
