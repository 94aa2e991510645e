"""Recurrent layers (`lstm`, `gru`, `rnn_tanh`, `rnn_relu`) as their steps, as those of ONNX."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from go_rl.core.errors import ReadError
from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.decompositions import GATES, recurrent_step
from go_rl.graphs.readers.operand import Operand, weights_of
from go_rl.graphs.readers.recurrent import UNROLL_NODES, RecurrentLayer, add_steps
from go_rl.graphs.readers.torch.graph import add_node, unique_name
from go_rl.graphs.readers.torch.program.schema import TorchNode
from go_rl.graphs.readers.torch.scope import (
    ProgramScope,
    operator_of,
    refs_in,
    source_text,
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
    x: Operand
    states: list[Operand]
    """States before the first step, and cells."""
    params: list[Operand]
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

    def parameter(self, layer: int, position: int) -> Operand:
        """Return a parameter of all directions of a layer."""
        first = layer * self.directions
        found = [self.params[(first + d) * self.each + position] for d in range(self.directions)]
        shape = (self.directions, *found[0].tensor.shape)
        tensor = replace(found[0].tensor, shape=shape)
        return Operand(tensor, found[0].producer, found[0].output, weights_of(found))

    def biases(self, layer: int) -> Operand | None:
        """Return both biases of a layer as one."""
        if not self.biased:
            return None
        both = [self.parameter(layer, 2), self.parameter(layer, 3)]
        width = 2 * both[0].tensor.shape[-1]
        tensor = replace(both[0].tensor, shape=(self.directions, width))
        return replace(both[0], tensor=tensor, weights=weights_of(both))

    def state(self, position: int) -> Operand | None:
        """Return the share of one layer in the states, or cells, before the first step."""
        if position >= len(self.states):
            return None
        value = self.states[position]
        tensor = replace(value.tensor, shape=(self.directions, *value.tensor.shape[1:]))
        return Operand(tensor, value.producer, value.output, value.weights)


def add_recurrent(scope: ProgramScope, node: TorchNode) -> None:
    """Add a recurrent operator step by step, or as one node where that would be too many.

    Raises:
        ReadError: operands are missing or do not fit.
    """
    walk, stack, types = scope.walk, _stack(scope, node), scope.result_types(node)
    layers = list(_layers(stack, len(types)))
    unrolled = sum(layer.unrolled_nodes for layer in layers)
    steps = layers[0].sizes[0] if layers else 0
    projects = stack.each != 2 + 2 * stack.biased
    if stack.packed or projects or not steps or walk.unrolled + unrolled > UNROLL_NODES:
        walk.notes.append(f"{node.name}: its steps are folded into one node")
        read = scope.read(node)
        moved = sum(v.num_bytes for v in read) + sum(t.nbytes for t in types)
        add_node(scope, node, read, (OpKind.CONTROL, sum(each.flops for each in layers), moved))
        return
    walk.unrolled += unrolled
    made = list(refs_in(node.outputs))
    wanted = [i for i, ref in enumerate(made) if i == 0 or ref.name in scope.read_names]
    name, source = unique_name(scope, node), source_text(node.metadata)
    x, ends = layers[0].operands[0], list[list[Operand]]()
    for number, layer in enumerate(layers):
        title = f"{name}/layer {number}" if len(layers) > 1 else name
        outputs = tuple(t if i in wanted else None for i, t in enumerate(layer.results))
        layer = replace(layer, results=outputs, name=title, source=source,
                        operands=[x, *layer.operands[1:]])  # fmt: skip
        x, *last = add_steps(walk.builder, layer)
        ends.append(last)
    assert x is not None
    for position, parts in zip(wanted, [(x,), *zip(*ends, strict=True)], strict=False):
        _bind(scope, node, position, parts)
    for ref, tensor in zip(made, types, strict=True):
        scope.values.setdefault(ref.name, Operand(tensor))


def _bind(scope: ProgramScope, node: TorchNode, position: int, parts: Sequence[Operand]) -> None:
    """Give its name to a result: all states of the last layer, or last states of all layers, one
    beside the other."""
    ref = list(refs_in(node.outputs))[position]
    tensor = scope.typed(ref)
    producer, output = parts[0].producer, parts[0].output
    if len(parts) > 1:
        price = (OpKind.MOVEMENT, 0.0, 2.0 * tensor.nbytes)
        name = f"{node.name}/last{position}"
        last = replace(node, name=name, target=JOIN, outputs=(ref,))
        producer, output = add_node(scope, last, list(parts), price), 0
    scope.values[ref.name] = Operand(tensor, producer, output)


def _stack(scope: ProgramScope, node: TorchNode) -> _Stack:
    given = {a.name: scope.operand(a.value, node) for a in node.inputs}
    kind = operator_of(node.target)
    where = f"{scope.place(node)} ({kind})"
    x = next(values_in([given.get("input"), given.get("data")]), None)
    params = list(values_in(given.get("params")))
    states = list(values_in(given.get("hx")))
    layers, directions = given.get("num_layers", 1), 1 + bool(given.get("bidirectional"))
    biased = bool(given.get("has_biases"))
    least = layers * directions * (2 + 2 * biased) if isinstance(layers, int) else 0
    ranks = [len(value.shape) for value in states]
    if x is None or not states or least < 1 or len(params) < least or min(ranks) < 2:
        raise ReadError(
            f"{where}: input, states and {least} parameters of its {layers} layers are wanted"
        )
    if len(params) % (layers * directions) or not 2 <= len(x.shape) <= 3:
        raise ReadError(f"{where}: {len(params)} parameters do not fit its {layers} layers")
    first = bool(given.get("batch_first"))
    return _Stack(RECURRENT[kind], x, states, params, biased, layers, directions, first, where)


def _layers(stack: _Stack, results: int) -> Iterator[RecurrentLayer]:
    """Yield the layers, the first with its input, the others with the type of theirs."""
    shape, item, kind = stack.x.tensor.shape, stack.x.tensor.itemsize, stack.x.tensor.type
    batch = stack.states[0].tensor.shape[-2]
    steps = shape[1 if stack.batch_first else 0] if len(shape) == 3 else shape[0]
    batch, inputs = (1 if stack.packed else batch), shape[-1]
    hidden = stack.params[1].tensor.shape[-1]
    for layer in range(stack.layers):
        x = Tensor((steps, batch, inputs), item, kind)
        value = Operand(x, stack.x.producer, stack.x.output)
        weights = [stack.parameter(layer, 0), stack.parameter(layer, 1), stack.biases(layer)]
        operands = [value, *weights, None, stack.state(0), stack.state(1)]
        all_states = Tensor((steps, stack.directions, batch, hidden), item, kind)
        last = Tensor((stack.directions, batch, hidden), item, kind)
        each = recurrent_step(stack.kind, inputs, hidden, stack.biased)
        sizes = steps, batch, inputs, hidden, GATES[stack.kind], stack.directions
        flops = steps * batch * stack.directions * each
        made = (all_states, *[last] * (results - 1))
        yield RecurrentLayer(stack.kind, sizes, made, flops, operands)
        inputs = stack.directions * hidden
