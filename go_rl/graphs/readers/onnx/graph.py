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
from go_rl.core.graph.geometry import Geometry
from go_rl.core.graph.op_graph import OpGraph
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.cost_rules import CostRule, unfitting
from go_rl.graphs.readers.decompositions import GATES
from go_rl.graphs.readers.graph_builder import GraphBuilder
from go_rl.graphs.readers.onnx.call import Call, Tensor, default_bytes
from go_rl.graphs.readers.onnx.costs.ml import attribute_arrays
from go_rl.graphs.readers.onnx.costs.operators import BYTES_ONLY, CONSTANTS, RULES
from go_rl.graphs.readers.onnx.geometry import onnx_geometry
from go_rl.graphs.readers.onnx.order import captured_names
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
from go_rl.graphs.readers.operand import (
    Operand,
    Price,
    add_input,
    add_operator,
    operator_node,
    weights_of,
)
from go_rl.graphs.readers.recurrent import UNROLL_NODES, RecurrentLayer, add_steps

RECURRENT = {**GATES, "com.microsoft.DynamicQuantizeLSTM": GATES["LSTM"]}
"""Recurrent operators and their gates."""


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

    def hold(self, held: Mapping[str, float]) -> None:
        """Note weights that one operator reads whole."""
        self.held.update(held)
        self.held_reads += sum(held.values())


@dataclass(frozen=True)
class _GraphScope:
    """One graph of the file while it is walked."""

    walk: GraphWalk
    values: Values
    types: Mapping[str, onnx.TypeProto]
    prefix: str
    """Before the names of nodes: empty, or the branch that holds the graph."""

    def operands(self, node: onnx.NodeProto) -> list[Operand | None]:
        """Return the operands of a node; None where one is left out."""
        return [self.values[i] if i else None for i in node.input]

    def new_name(self, node: onnx.NodeProto) -> str:
        """Return a name that no node of the graph has: the node's own, else its first result's."""
        own = node.name and (self.prefix or self.walk.names[node.name] == 1)
        first = self.prefix + (node.name if own else next(o for o in node.output if o))
        name = first
        while name in self.walk.builder:
            self.walk.copies[first] += 1
            name = f"{first}#{self.walk.copies[first] + 1}"
        return name


def build_graph(
    model: onnx.ModelProto, name: str, meta: dict[str, Any], notes: list[str]
) -> OpGraph:
    """Return the `OpGraph` of a completed ``model``.

    Raises:
        ReadError: an operator lacks an operand or attribute that its cost needs.
        GraphError: the graph cannot be built.
    """
    opsets = {_domain(o.domain): o.version for o in model.opset_import}
    newest = onnx.defs.onnx_opset_version()
    if opsets.get("", newest) > newest:
        notes.append(
            f"Operator set {opsets['']} is newer than the onnx that is installed, which knows "
            f"{newest}: operators are read as in {newest}."
        )
    walk = GraphWalk(GraphBuilder(name, meta), opsets, notes)
    walk.names.update(n.name for n in model.graph.node if n.name)
    values: Values = ChainMap()
    _add_inputs(walk, model.graph, values)
    _walk_graph(walk, model.graph, values, prefix="")
    for output in model.graph.output:
        if output.name in values:
            walk.builder.mark_output(values[output.name].producer)
    return walk.builder.build()


def _domain(domain: str) -> str:
    return "" if domain in DEFAULT_DOMAINS else domain


def _add_inputs(walk: GraphWalk, graph: onnx.GraphProto, values: Values) -> None:
    initial = {t.name for t in graph.initializer}
    for i, value in enumerate(graph.input):
        if value.name not in initial:
            tensor = tensor_of(value.type, value.name)
            source = f"Input({value.name}) at graph.input[{i}]"
            values[value.name] = add_input(walk.builder, value.name, tensor, source, "Input")


def _walk_graph(walk: GraphWalk, graph: onnx.GraphProto, values: Values, prefix: str) -> None:
    define_weights(graph, values, prefix)
    scope = _GraphScope(walk, values, {v.name: v.type for v in graph.value_info}, prefix)
    for node in graph.node:
        with fitting(node):
            _walk_node(scope, node)


def _walk_node(scope: _GraphScope, node: onnx.NodeProto) -> None:
    default, values = node.domain in DEFAULT_DOMAINS, scope.values
    if default and node.op_type == "Constant":
        held, name = node.attribute[0], node.output[0]
        values[name] = (
            sparse_weight(scope.prefix + name, held.sparse_tensor)
            if held.HasField("sparse_tensor")
            else stored_weight(scope.prefix + name, held.t.data_type, held.t.dims)
        )
    elif default and node.op_type == "If":
        _inline_branch(scope, node)
    elif not (fold_weight(node, values, scope.types) or made_at_load(node, values, scope.types)):
        _add_operator(scope, node)


def _inline_branch(scope: _GraphScope, node: onnx.NodeProto) -> None:
    attributes = {a.name: a for a in node.attribute}
    name = node.name or next(o for o in node.output if o)
    branch = attributes[attributes[BRANCH].s.decode()].g
    inner = scope.values.new_child()
    _walk_graph(scope.walk, branch, inner, f"{scope.prefix}{name}/")
    for output, result in zip(node.output, branch.output, strict=True):
        if output:
            scope.values[output] = inner[result.name]


def subgraph_flops(
    body: onnx.GraphProto, values: Mapping[str, Operand], opsets: Mapping[str, int]
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
        inner[value.name] = Operand(tensor_of(types[value.name], value.name))
    counting = GraphWalk(GraphBuilder("body"), walk.opsets, walk.notes)
    # Values from outside the body have no producer inside it, so that no edge is drawn to them.
    read = {i for n in body.node for i in (*n.input, *captured_names(n)) if i}
    for name in read & inner.keys():
        inner[name] = replace(inner[name], producer=None)
    _walk_graph(counting, body, inner, "")
    nodes = counting.builder.nodes
    weights = weights_of(inner[name] for name in read & inner.keys())
    flops = float(sum(n.flops for n in nodes))
    num_bytes = sum(n.bytes_accessed for n in nodes)
    return _Work(flops, max(0.0, num_bytes - counting.held_reads), weights, counting.held)


def _repeated_work(scope: _GraphScope, node: onnx.NodeProto) -> _Work:
    """Return the work of all trips of a node's bodies; weights that they hold are read once."""
    flops = num_bytes = 0.0
    weights: dict[str, Tensor] = {}
    held: dict[str, float] = {}
    for trips, body in counted_bodies(node):
        work = _body_work(scope.walk, body, scope.values)
        flops += trips * work.flops
        num_bytes += trips * work.num_bytes
        weights.update(work.weights)
        held.update(work.held if trips else {})
    return _Work(flops, num_bytes, weights, held)


def _call(scope: _GraphScope, node: onnx.NodeProto) -> Call:
    operands = scope.operands(node)
    return Call(
        op=operator_name(node),
        version=scope.walk.opsets.get(_domain(node.domain), 1),
        where=describe(node),
        attributes={
            a.name: onnx.helper.get_attribute_value(a)
            for a in node.attribute
            if a.type != onnx.AttributeProto.TENSOR
        },
        inputs=tuple(value and value.tensor for value in operands),
        outputs=tuple(tensor_of(scope.types[o], o) if o else None for o in node.output),
        arrays=tuple(None if value is None else value.array for value in operands),
        parameters=attribute_arrays(node) if node.domain == ML_DOMAIN else None,
    )


def _add_operator(scope: _GraphScope, node: onnx.NodeProto) -> None:
    walk, values, call = scope.walk, scope.values, _call(scope, node)
    rule = RULES.get(call.op, BYTES_ONLY)
    if call.op in RECURRENT and _add_recurrent(scope, node, call):
        return
    operands = {i: p for p, i in reversed(list(enumerate(node.input))) if i}
    viewed = as_view(call, values[node.input[0]] if any(node.input[:1]) else None)
    if viewed and call.op != TRANSPOSITION and _is_set_up(node, values):
        values[node.output[0]] = viewed
        return
    weights = weights_of(values[i] for i, p in operands.items() if p not in rule.settings)
    if call.parameters is not None:
        weights[f"{scope.prefix}{node.output[0]} (attributes)"] = call.parameters
    read = set(operands)
    if any(a.name == TRIPS for a in node.attribute):
        work = _repeated_work(scope, node)
        weights.update(work.weights)
        read |= {n for n in captured_names(node) if n in values}
        kind, flops = OpKind.CONTROL, work.flops
        num_bytes = work.num_bytes + sum(work.held.values())
        walk.hold(work.held)
    else:
        kind, flops, num_bytes = _price(call, rule)
        if call.op in RECURRENT:  # too many steps for a node each
            kind = OpKind.CONTROL
        if call.op in CONSTANTS and all(values[i].producer is None for i in operands):
            kind, flops = OpKind.CONSTANT, 0.0
        if viewed:
            num_bytes = 0.0
        elif rule.num_bytes is None:
            walk.hold({i: values[i].num_bytes for i in operands if values[i].weights})
    name = scope.new_name(node)
    made = operator_node(
        name,
        call.op,
        (kind, flops, num_bytes),
        call.outputs,
        weights,
        source=f"{call.op}({node.name or name}) at {node.doc_string}",
        geometry=Geometry() if GUESSED in call.attributes else onnx_geometry(call),
        element_type=type_of_operator(kind, call, scope.operands(node)),
    )
    number = add_operator(walk.builder, made, [values[i] for i in sorted(read)])
    for i, output in enumerate(node.output):
        if output:
            tensor = call.outputs[i] or call.result
            values[output] = (
                replace(viewed, tensor=tensor, producer=number, output=i, weights={}, array=None)
                if viewed
                else Operand(tensor, number, i, stored_type=stored_type(call))
            )


def _is_set_up(node: onnx.NodeProto, values: Values) -> bool:
    """Whether no operand but the first is computed."""
    return all(values[i].producer is None for i in node.input[1:] if i)


def _add_recurrent(scope: _GraphScope, node: onnx.NodeProto, call: Call) -> bool:
    """Add a recurrent layer step by step; False: that would be too many nodes, or it has none."""
    if GUESSED in call.attributes:
        return False
    walk, name, sizes = scope.walk, scope.new_name(node), _recurrent_sizes(call)
    _, flops, _ = _price(call, RULES[call.op])
    source = f"{call.op}({node.name or name}) at {node.doc_string}"
    operands = scope.operands(node)
    layer = RecurrentLayer(call.op, sizes, call.outputs, flops, operands, name, source)
    steps = sizes[0]
    if walk.unrolled + layer.unrolled_nodes > UNROLL_NODES or not steps:
        walk.notes.append(f"{call.op} {name!r}: its {steps} steps are folded into one node")
        return False
    walk.unrolled += layer.unrolled_nodes
    results = add_steps(walk.builder, layer)
    scope.values.update(zip((o for o in node.output if o), results, strict=True))
    return True


def _recurrent_sizes(call: Call) -> tuple[int, int, int, int, int, int]:
    """Return T, B, I, H, G and D of a recurrent operator."""
    first, second, inputs = call.operand(0).shape
    steps, batch = (second, first) if call.get("layout", 0) else (first, second)
    weights = call.operand(2).shape
    hidden = call.get("hidden_size", 0) or min(weights[1:])
    return steps, batch, inputs, hidden, RECURRENT[call.op], weights[0]


def _price(call: Call, rule: CostRule) -> Price:
    try:
        num_bytes = (rule.num_bytes or default_bytes)(call)
        return rule.kind, float(rule.flops(call)), float(num_bytes)
    except (ArithmeticError, IndexError, ValueError, TypeError, KeyError, ReadError) as error:
        if GUESSED in call.attributes:  # sizes that are guessed need not fit
            return rule.kind, 0.0, default_bytes(call)
        if isinstance(error, ReadError):
            raise
        raise unfitting(call.where, call.inputs, error) from error
