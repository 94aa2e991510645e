"""Recurrent layers (`lstm`, `gru`, `rnn_tanh`, `rnn_relu`) as their steps, as those of ONNX."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

from go_rl.core.errors import ReadError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.onnx.call import Call
from go_rl.graphs.readers.onnx.costs.fused import recurrent
from go_rl.graphs.readers.onnx.recurrent import UNROLL_NODES, RecurrentLayer, add_steps
from go_rl.graphs.readers.onnx.values import OnnxValue
from go_rl.graphs.readers.torch.graph import add_node, bind_results, unique_name
from go_rl.graphs.readers.torch.program.schema import Ref, TorchNode
from go_rl.graphs.readers.torch.scope import (
    ProgramScope,
    TorchValue,
    TorchWalk,
    operand,
    operator_of,
    refs_in,
    source_text,
    typed,
    values_in,
)

RECURRENT = {"aten.gru": "GRU", "aten.lstm": "LSTM", "aten.rnn_relu": "RNN", "aten.rnn_tanh": "RNN"}
"""Recurrent operators and what ONNX calls them."""
JOIN = "torch.ops.aten.cat.default"
"""Operator that lays the last states of all layers one beside the other."""


@dataclass(frozen=True)
class _Stack:
    """All layers of one recurrent operator."""

    kind: str
    x: TorchValue
    states: list[TorchValue]
    """States before the first step, and cells."""
    params: list[TorchValue]
    biased: bool
    layers: int
    directions: int
    batch_first: bool
    where: str

    @property
    def each(self) -> int:
        """Parameters of one direction of one layer; one more than these where it projects."""
        return len(self.params) // (self.layers * self.directions)

    @property
    def packed(self) -> bool:
        """Whether sequences of several lengths lie one after the other."""
        return len(self.x.tensor.shape) == 2

    def parameter(self, layer: int, position: int) -> OnnxValue:
        """Return a parameter of all directions of a layer."""
        first = layer * self.directions
        found = [self.params[(first + d) * self.each + position] for d in range(self.directions)]
        shape = (self.directions, *found[0].tensor.shape)
        weights = reduce(lambda a, b: {**a, **b.weights}, found, dict[str, Tensor]())
        tensor = replace(found[0].tensor, shape=shape)
        return OnnxValue(tensor, found[0].producer, found[0].output, weights)

    def biases(self, layer: int) -> OnnxValue | None:
        """Return both biases of a layer as one."""
        if not self.biased:
            return None
        both = [self.parameter(layer, 2), self.parameter(layer, 3)]
        width = 2 * both[0].tensor.shape[-1]
        tensor = replace(both[0].tensor, shape=(self.directions, width))
        return replace(both[0], tensor=tensor, weights={**both[0].weights, **both[1].weights})

    def state(self, position: int) -> OnnxValue | None:
        """Return the share of one layer in the states, or cells, before the first step."""
        if position >= len(self.states):
            return None
        value = self.states[position]
        tensor = replace(value.tensor, shape=(self.directions, *value.tensor.shape[1:]))
        return OnnxValue(tensor, value.producer, value.output, value.weights)


def add_recurrent(walk: TorchWalk, scope: ProgramScope, node: TorchNode) -> None:
    """Add a recurrent operator step by step, or as one node where that would be too many.

    Raises:
        ReadError: operands are missing or do not fit.
    """
    stack = _stack(walk, scope, node)
    made = list(refs_in(node.outputs))
    types = [typed(walk, scope, ref) for ref in made]
    layers = list(_layers(stack, types))
    unrolled = sum(layer.unrolled_nodes for layer in layers)
    steps = layers[0].sizes[0] if layers else 0
    projects = stack.each != 2 + 2 * stack.biased
    if stack.packed or projects or not steps or walk.unrolled + unrolled > UNROLL_NODES:
        _fold(walk, scope, node, layers, made, types)
        return
    walk.unrolled += unrolled
    read = scope.read_names
    name, source = unique_name(walk, scope, node), source_text(node.metadata)
    x, ends = layers[0].operands[0], []
    for number, layer in enumerate(layers):
        title = f"{name}/layer {number}" if len(layers) > 1 else name
        outputs = [t if i == 0 or (i < len(made) and made[i].name in read) else None
                   for i, t in enumerate(layer.call.outputs)]  # fmt: skip
        layer = replace(layer, call=replace(layer.call, outputs=tuple(outputs)), name=title,
                        source=source, operands=[x, *layer.operands[1:]])  # fmt: skip
        x, *last = add_steps(walk.builder, layer)
        ends.append(last)
    _bind(walk, scope, node, made, types, [[x], *map(list, zip(*ends, strict=True))])


def _bind(
    walk: TorchWalk,
    scope: ProgramScope,
    node: TorchNode,
    made: list[Ref],
    types: list[Tensor],
    results: list[list[Any]],
) -> None:
    """Give names to the results: all states of the last layer, and last states of all."""
    read = scope.read_names
    wanted = [0, *(i for i in range(1, len(made)) if made[i].name in read)]
    for position, parts in zip(wanted, results, strict=False):
        tensor, first = types[position], parts[0]
        producer, output = first.producer, first.output
        if len(parts) > 1:
            values = [
                TorchValue(part.tensor, part.tensor.nbytes, part.producer, part.output)
                for part in parts
            ]
            cost = (OpKind.MOVEMENT, 0.0, 2.0 * tensor.nbytes)
            last = replace(node, name=f"{node.name}/last{position}", target=JOIN)
            producer, output = add_node(walk, scope, last, values, (tensor,), cost), 0
        value = TorchValue(tensor, tensor.nbytes, producer, output)
        scope.values[made[position].name] = value
    for position, ref in enumerate(made):
        scope.values.setdefault(ref.name, TorchValue(types[position], types[position].nbytes))


def _stack(walk: TorchWalk, scope: ProgramScope, node: TorchNode) -> _Stack:
    given = {a.name: operand(walk, scope, a.value, node) for a in node.inputs}
    where = f"{walk.where}: node {node.name!r} ({operator_of(node.target)[0]})"
    x = next(values_in([given.get("input"), given.get("data")]), None)
    params = list(values_in(given.get("params")))
    states = list(values_in(given.get("hx")))
    layers, directions = given.get("num_layers", 1), 1 + bool(given.get("bidirectional"))
    biased = bool(given.get("has_biases"))
    least = layers * directions * (2 + 2 * biased) if isinstance(layers, int) else 0
    ranks = [len(value.tensor.shape) for value in states]
    if x is None or not states or least < 1 or len(params) < least or min(ranks) < 2:
        raise ReadError(
            f"{where}: input, states and {least} parameters of its {layers} layers are wanted"
        )
    if len(params) % (layers * directions) or not 2 <= len(x.tensor.shape) <= 3:
        raise ReadError(f"{where}: {len(params)} parameters do not fit its {layers} layers")
    kind = RECURRENT[operator_of(node.target)[0]]
    first = bool(given.get("batch_first"))
    return _Stack(kind, x, states, params, biased, layers, directions, first, where)


def _layers(stack: _Stack, types: list[Tensor]) -> Iterator[RecurrentLayer]:
    """Yield the layers, the first with its input, the others with the type of theirs."""
    shape, item, kind = stack.x.tensor.shape, stack.x.tensor.itemsize, stack.x.tensor.type
    batch = stack.states[0].tensor.shape[-2]
    steps = shape[1 if stack.batch_first else 0] if len(shape) == 3 else shape[0]
    batch, inputs = (1 if stack.packed else batch), shape[-1]
    hidden = stack.params[1].tensor.shape[-1]
    for layer in range(stack.layers):
        x = Tensor((steps, batch, inputs), item, kind)
        value = OnnxValue(x, stack.x.producer, stack.x.output)
        weights = [stack.parameter(layer, 0), stack.parameter(layer, 1), stack.biases(layer)]
        operands = [value, *weights, None, stack.state(0), stack.state(1)]
        all_states = Tensor((steps, stack.directions, batch, hidden), item, kind)
        last = Tensor((stack.directions, batch, hidden), item, kind)
        call = Call(
            stack.kind, 14, stack.where, {"hidden_size": hidden},
            tuple(each and each.tensor for each in operands),
            (all_states, *[last] * (len(types) - 1)),
        )  # fmt: skip
        yield RecurrentLayer(call, recurrent(call), operands, "", "")
        inputs = stack.directions * hidden


def _fold(
    walk: TorchWalk,
    scope: ProgramScope,
    node: TorchNode,
    layers: list[RecurrentLayer],
    made: list[Ref],
    types: list[Tensor],
) -> None:
    walk.notes.append(f"{node.name}: its steps are folded into one node")
    read = list(values_in([operand(walk, scope, a.value, node) for a in node.inputs]))
    moved = sum(v.num_bytes for v in read) + sum(t.nbytes for t in types)
    cost = (OpKind.CONTROL, sum(layer.flops for layer in layers), moved)
    number = add_node(walk, scope, node, read, tuple(types), cost)
    bind_results(walk, scope, made, tuple(types), number)
