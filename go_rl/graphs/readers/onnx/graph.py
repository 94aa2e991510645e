"""Translation of a completed ONNX model (`readers.onnx.shapes`) to the nodes and edges of an
`OpGraph`.

Rules stated once:

- A weight is an initializer, or a pure layout or precision change of one (`LAYOUT_OF_WEIGHTS`),
  which is folded into the operators that read it; they count the stored bytes. So is what is made
  of weights alone when a model is loaded (`readers.onnx.weights`).
- A view of a whole tensor (`readers.onnx.values`) is that tensor; a transposition, which is one, is
  a node without work.
- Operators that read the same weight array share it; one of at most 1 KiB each holds for itself.
- An `If` becomes the nodes of the branch that `readers.onnx.shapes.control` chose. A `Loop`,
  `Scan` or `SequenceMap` is one node of kind ``CONTROL`` with the work of its body times its trips;
  weights that its body reads whole are read once, as those of an `LSTM` are, because they stay in
  place between the trips.
"""

from __future__ import annotations

from collections import ChainMap, Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import onnx

from go_rl.core.errors import ReadError
from go_rl.core.graph.element_type import ElementType
from go_rl.core.graph.geometry import Geometry
from go_rl.core.graph.op_graph import OpGraph
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.graph_builder import TIE_BYTES, GraphBuilder, Node
from go_rl.graphs.readers.onnx.call import Call, Tensor, default_bytes
from go_rl.graphs.readers.onnx.costs.ml import attribute_arrays
from go_rl.graphs.readers.onnx.costs.operators import BYTES_ONLY, CONSTANTS, RULES
from go_rl.graphs.readers.onnx.geometry import onnx_geometry
from go_rl.graphs.readers.onnx.order import captured_names
from go_rl.graphs.readers.onnx.recurrent import GATES, UNROLL_NODES, RecurrentLayer, add_steps
from go_rl.graphs.readers.onnx.shapes.guesses import GUESSED
from go_rl.graphs.readers.onnx.shapes.ml import ML_DOMAIN
from go_rl.graphs.readers.onnx.structure import (
    BRANCH,
    DEFAULT_DOMAINS,
    TRIPS,
    counted_bodies,
    describe,
    fitting,
)
from go_rl.graphs.readers.onnx.values import (
    TRANSPOSITION,
    OnnxValue,
    as_view,
    stored_type,
    tensor_of,
    type_of_operator,
)
from go_rl.graphs.readers.onnx.weights import (
    Values,
    define_weights,
    fold_weight,
    made_at_load,
    operator_name,
    sparse_weight,
    stored_weight,
)


@dataclass
class GraphWalk:
    """One walk over a graph and the subgraphs that are inlined into it."""

    builder: GraphBuilder
    opsets: Mapping[str, int]
    notes: list[str]
    names: Counter[str] = field(default_factory=Counter)
    """Occurrences of each node name in the file."""
    copies: Counter[str] = field(default_factory=Counter)
    """Number of nodes of a name, where names had to be made unique."""
    held: dict[str, float] = field(default_factory=dict)
    """Bytes of each weight that some operator reads whole, by operand."""
    unrolled: int = 0
    """Nodes that recurrent layers were unrolled into."""
    held_reads: float = 0.0
    """Bytes of those weights, counted as often as they are read."""


def build_graph(
    model: onnx.ModelProto, name: str, meta: dict[str, Any], notes: list[str]
) -> OpGraph:
    """Return the `OpGraph` of a completed ``model``.

    Raises:
        ReadError: an operator lacks an operand or attribute that its cost needs.
        GraphError: the graph cannot be built.
    """
    opsets = {_domain(o.domain): o.version for o in model.opset_import}
    walk = GraphWalk(GraphBuilder(name, meta), opsets, notes)
    walk.names.update(n.name for n in model.graph.node if n.name)
    values: Values = ChainMap()
    _add_inputs(walk, model.graph, values)
    _walk_graph(walk, model.graph, values, prefix="")
    for output in model.graph.output:
        value = values.get(output.name)
        if value is not None and value.producer is not None:
            node = walk.builder.node(value.producer)
            walk.builder.replace_node(value.producer, replace(node, is_output=True))
    return walk.builder.build()


def _domain(domain: str) -> str:
    return "" if domain in DEFAULT_DOMAINS else domain


def _add_inputs(walk: GraphWalk, graph: onnx.GraphProto, values: Values) -> None:
    initial = {t.name for t in graph.initializer}
    for i, value in enumerate(graph.input):
        if value.name in initial:
            continue
        tensor = tensor_of(value.type, value.name)
        number = walk.builder.add_node(
            Node(
                name=value.name,
                op_type="Input",
                kind=OpKind.INPUT,
                output_bytes=tensor.nbytes,
                output_itemsize=tensor.itemsize,
                output_shape=tensor.shape,
                element_type=tensor.type,
                source=f"Input({value.name}) at graph.input[{i}]",
            )
        )
        values[value.name] = OnnxValue(tensor, number)


def _walk_graph(walk: GraphWalk, graph: onnx.GraphProto, values: Values, prefix: str) -> None:
    define_weights(graph, values, prefix)
    types = {v.name: v.type for v in graph.value_info}
    for node in graph.node:
        with fitting(node):
            _walk_node(walk, node, values, types, prefix)


def _walk_node(
    walk: GraphWalk,
    node: onnx.NodeProto,
    values: Values,
    types: Mapping[str, onnx.TypeProto],
    prefix: str,
) -> None:
    default = node.domain in DEFAULT_DOMAINS
    if default and node.op_type == "Constant":
        held, name = node.attribute[0], node.output[0]
        values[name] = (
            sparse_weight(prefix + name, held.sparse_tensor)
            if held.HasField("sparse_tensor")
            else stored_weight(prefix + name, held.t.data_type, held.t.dims)
        )
    elif default and node.op_type == "If":
        _inline_branch(walk, node, values, prefix)
    elif not (fold_weight(node, values, types) or made_at_load(node, values, types)):
        _add_operator(walk, node, values, types, prefix)


def _inline_branch(walk: GraphWalk, node: onnx.NodeProto, values: Values, prefix: str) -> None:
    attributes = {a.name: a for a in node.attribute}
    name = node.name or next(o for o in node.output if o)
    branch = attributes[attributes[BRANCH].s.decode()].g
    inner = values.new_child()
    _walk_graph(walk, branch, inner, f"{prefix}{name}/")
    for output, result in zip(node.output, branch.output, strict=True):
        if output:
            values[output] = inner[result.name]


def subgraph_flops(
    body: onnx.GraphProto, values: Mapping[str, OnnxValue], opsets: Mapping[str, int]
) -> float:
    """Return the FLOP of one run of a completed subgraph.

    Args:
        body: the subgraph.
        values: what it reads from outside.
        opsets: version by domain.

    Raises:
        ReadError: an operator lacks an operand or attribute that its cost needs.
    """
    walk = GraphWalk(GraphBuilder("body"), opsets, [])
    return _body_work(walk, body, ChainMap(dict(values))).flops


@dataclass(frozen=True)
class _Work:
    flops: float
    num_bytes: float
    """Bytes read and written, without those of `held`."""
    weights: Mapping[str, Tensor]
    held: Mapping[str, float]
    """Bytes of each weight that is read whole, by operand."""


def _body_work(walk: GraphWalk, body: onnx.GraphProto, values: Values) -> _Work:
    """Return the work of one run of ``body`` and the stored arrays that it reads."""
    inner = values.new_child()
    types = {v.name: v.type for v in (*body.input, *body.value_info)}
    for value in body.input:
        inner[value.name] = OnnxValue(tensor_of(types[value.name], value.name))
    counting = GraphWalk(GraphBuilder("body"), walk.opsets, walk.notes)
    # Values from outside the body have no producer inside it, so that no edge is drawn to them.
    read = {i for n in body.node for i in (*n.input, *captured_names(n)) if i}
    for name in read & inner.keys():
        inner[name] = replace(inner[name], producer=None)
    _walk_graph(counting, body, inner, "")
    nodes = [counting.builder.node(i) for i in range(len(counting.builder))]
    weights: dict[str, Tensor] = {}
    for name in read & inner.keys():
        weights.update(inner[name].weights)
    flops = float(sum(n.flops for n in nodes))
    num_bytes = sum(n.bytes_accessed for n in nodes)
    return _Work(flops, max(0.0, num_bytes - counting.held_reads), weights, counting.held)


def _repeated_work(walk: GraphWalk, node: onnx.NodeProto, values: Values) -> _Work:
    """Return the work of all trips of a node's bodies; weights that they hold are read once."""
    flops = num_bytes = 0.0
    weights: dict[str, Tensor] = {}
    held: dict[str, float] = {}
    for trips, body in counted_bodies(node):
        work = _body_work(walk, body, values)
        flops += trips * work.flops
        num_bytes += trips * work.num_bytes
        weights.update(work.weights)
        held.update(work.held if trips else {})
    return _Work(flops, num_bytes, weights, held)


def _call(
    walk: GraphWalk, node: onnx.NodeProto, values: Values, types: Mapping[str, onnx.TypeProto]
) -> Call:
    return Call(
        op=operator_name(node),
        version=walk.opsets.get(_domain(node.domain), 1),
        where=describe(node),
        attributes={
            a.name: onnx.helper.get_attribute_value(a)
            for a in node.attribute
            if a.type != onnx.AttributeProto.TENSOR
        },
        inputs=tuple(values[i].tensor if i else None for i in node.input),
        outputs=tuple(tensor_of(types[o], o) if o else None for o in node.output),
        arrays=tuple(values[i].array if i else None for i in node.input),
        parameters=attribute_arrays(node) if node.domain == ML_DOMAIN else None,
    )


def _add_operator(
    walk: GraphWalk,
    node: onnx.NodeProto,
    values: Values,
    types: Mapping[str, onnx.TypeProto],
    prefix: str,
) -> None:
    call = _call(walk, node, values, types)
    rule = RULES.get(call.op, BYTES_ONLY)
    if call.op in GATES and _add_recurrent(walk, node, call, values, prefix):
        return
    operands = {i: p for p, i in reversed(list(enumerate(node.input))) if i}
    viewed = as_view(call, values[node.input[0]] if any(node.input[:1]) else None)
    if viewed and call.op != TRANSPOSITION and _is_set_up(node, values):
        values[node.output[0]] = viewed
        return
    weights: dict[str, Tensor] = {}
    for operand, position in operands.items():
        if position not in rule.settings:
            weights.update(values[operand].weights)
    if call.parameters is not None:
        weights[f"{prefix}{node.output[0]} (attributes)"] = call.parameters
    read = set(operands)
    if any(a.name == TRIPS for a in node.attribute):
        work = _repeated_work(walk, node, values)
        weights.update(work.weights)
        read |= {n for n in captured_names(node) if n in values}
        kind, flops = OpKind.CONTROL, work.flops
        num_bytes = work.num_bytes + sum(work.held.values())
        _hold(walk, work.held)
    else:
        kind, flops, num_bytes = _price(call, rule)
        if call.op in GATES:  # too many steps for a node each
            kind = OpKind.CONTROL
        if call.op in CONSTANTS and all(values[i].producer is None for i in operands):
            kind, flops = OpKind.CONSTANT, 0.0
        if viewed:
            num_bytes = 0.0
        elif rule.num_bytes is default_bytes:
            reads = ((i, values[i]) for i in node.input if i)
            _hold(walk, {i: value.tensor.nbytes for i, value in reads if value.weights})
    computed_in = type_of_operator(kind, call, [values.get(i) for i in node.input])
    cost = (kind, flops, num_bytes)
    number = walk.builder.add_node(_node(walk, node, call, prefix, cost, computed_in, weights))
    _connect(walk, number, [values[i] for i in sorted(read)])
    for i, output in enumerate(node.output):
        if output:
            tensor = call.outputs[i] or call.result
            values[output] = (
                replace(viewed, tensor=tensor, producer=number, output=i, weights={}, array=None)
                if viewed
                else OnnxValue(tensor, number, i, stored_type=stored_type(call))
            )


def _is_set_up(node: onnx.NodeProto, values: Values) -> bool:
    """Whether no operand but the first is computed."""
    return all(values[i].producer is None for i in node.input[1:] if i)


def _add_recurrent(
    walk: GraphWalk, node: onnx.NodeProto, call: Call, values: Values, prefix: str
) -> bool:
    """Add a recurrent layer step by step; False: that would be too many nodes, or it has none."""
    if GUESSED in call.attributes:
        return False
    _, flops, _ = _price(call, RULES[call.op])
    name = _unique_name(walk, node, prefix)
    operands = [values[i] if i else None for i in node.input]
    source = f"{call.op}({node.name or name}) at {node.doc_string}"
    layer = RecurrentLayer(call, flops, operands, name, source)
    steps = layer.sizes[0]
    if walk.unrolled + layer.unrolled_nodes > UNROLL_NODES or not steps:
        walk.notes.append(f"{call.op} {name!r}: its {steps} steps are folded into one node")
        return False
    walk.unrolled += layer.unrolled_nodes
    results = iter(add_steps(walk.builder, layer))
    for output in node.output:
        if output:
            values[output] = next(results)
    return True


def _hold(walk: GraphWalk, held: Mapping[str, float]) -> None:
    """Note weights that one operator reads whole."""
    walk.held.update(held)
    walk.held_reads += sum(held.values())


def _price(call: Call, rule: Any) -> tuple[OpKind, float, float]:
    try:
        return rule.kind, float(rule.flops(call)), float(rule.num_bytes(call))
    except (ArithmeticError, IndexError, ValueError, TypeError, KeyError, ReadError) as error:
        if GUESSED in call.attributes:  # sizes that are guessed need not fit
            return rule.kind, 0.0, BYTES_ONLY.num_bytes(call)
        if isinstance(error, ReadError):
            raise
        shapes = [t.shape if t is not None else None for t in call.inputs]
        raise ReadError(
            f"{call.where}: operand shapes {shapes} do not fit the operator ({error})"
        ) from error


def _node(
    walk: GraphWalk,
    node: onnx.NodeProto,
    call: Call,
    prefix: str,
    cost: tuple[OpKind, float, float],
    computed_in: ElementType,
    weights: Mapping[str, Tensor],
) -> Node:
    name = _unique_name(walk, node, prefix)
    stored = sum(t.nbytes for t in weights.values())
    elements = sum(t.size for t in weights.values())
    return Node(
        name=name,
        op_type=call.op,
        kind=cost[0],
        flops=cost[1],
        bytes_accessed=cost[2],
        output_bytes=float(sum(t.nbytes for t in call.outputs if t is not None)),
        weight_bytes=float(stored),
        output_itemsize=call.result.itemsize,
        weight_itemsize=stored / elements if elements else 0.0,
        weight_arrays={w: float(t.nbytes) for w, t in weights.items() if t.nbytes > TIE_BYTES},
        output_shape=call.result.shape,
        source=f"{call.op}({node.name or name}) at {node.doc_string}",
        geometry=Geometry() if GUESSED in call.attributes else onnx_geometry(call),
        element_type=computed_in,
    )


def _unique_name(walk: GraphWalk, node: onnx.NodeProto, prefix: str) -> str:
    if node.name and (prefix or walk.names[node.name] == 1):
        first = prefix + node.name
    else:
        first = prefix + next(o for o in node.output if o)
    name = first
    while name in walk.builder:
        walk.copies[first] += 1
        name = f"{first}#{walk.copies[first] + 1}"
    return name


def _connect(walk: GraphWalk, number: int, read: list[OnnxValue]) -> None:
    for value in read:
        if value.producer is not None:
            walk.builder.add_edge(value.producer, number, value.tensor.nbytes, value.output)
