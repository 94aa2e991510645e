"""Recurrent layers as their steps: a step waits for the one before it.

A layer is, for each direction, one product of all inputs with its input weights, then a product of
the state with the recurrent weights and a cell for each time step, as libraries run it. Priced as
one operator, all steps would count as one product as large as all of them, which runs at a far
higher rate. Long layers are folded into one `OpKind.CONTROL` node, as loops of other formats are.

Letters: T steps, B batch, I inputs, H hidden, G gates, D directions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from go_rl.core.graph.op_kind import OpKind
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.graph_builder import TIE_BYTES, GraphBuilder
from go_rl.graphs.readers.operand import Operand, add_operator, operator_node

UNROLL_NODES = 20_000
"""Most nodes into which the recurrent layers of a model are unrolled."""


@dataclass(frozen=True)
class RecurrentLayer:
    """One recurrent operator: its sizes, its price and what it reads."""

    op_type: str
    sizes: tuple[int, int, int, int, int, int]
    """T, B, I, H, G, D."""
    results: tuple[Tensor | None, ...]
    """All states, the last ones, the last cells; None where nothing reads them."""
    flops: float
    """FLOP of all steps and directions."""
    operands: Sequence[Operand | None]
    """Inputs, weights of the inputs, recurrent weights, biases, lengths, first states and cells, as
    ONNX has them."""
    name: str = ""
    source: str = ""

    @property
    def unrolled_nodes(self) -> int:
        """Number of nodes after unrolling."""
        steps, *_, directions = self.sizes
        return directions * (2 * steps + 1) + 1

    def operand(self, position: int) -> Operand | None:
        """Return an operand; None where it is left out."""
        return self.operands[position] if position < len(self.operands) else None


def add_steps(builder: GraphBuilder, layer: RecurrentLayer) -> list[Operand]:
    """Add a layer step by step; return its results: all states, the last ones, the last cells.

    Args:
        builder: gets the nodes.
        layer: of at least one step.
    """
    directions = layer.sizes[-1]
    runs = [_add_direction(builder, layer, direction) for direction in range(directions)]
    results: list[Operand] = []
    for position, tensor in enumerate(layer.results):
        if tensor is None:
            continue
        cells = [cell for run in runs for cell in (run if position == 0 else run[-1:])]
        output = max(0, position - 1)
        if len(cells) == 1 and (position == 0 or directions == 1):
            results.append(Operand(tensor, cells[0], output))
            continue
        title = f"{layer.name}/{('states', 'last', 'last cells')[min(position, 2)]}"
        price = (OpKind.MOVEMENT, 0.0, 2.0 * tensor.nbytes)
        join = operator_node(
            title, "Concat", price, [tensor], {}, element_type=tensor.type, source=layer.source
        )
        part = Operand(tensor, output=output, sent_bytes=tensor.nbytes / len(cells))
        number = add_operator(builder, join, [replace(part, producer=cell) for cell in cells])
        results.append(Operand(tensor, number))
    return results


def _add_direction(builder: GraphBuilder, layer: RecurrentLayer, direction: int) -> list[int]:
    """Add one direction; return the numbers of its cells in the order of time."""
    steps, batch, inputs, hidden, gates, directions = layer.sizes
    state = replace(
        next(tensor for tensor in layer.results if tensor is not None), shape=(batch, hidden)
    )
    wide = replace(state, shape=(batch, gates * hidden))
    all_steps = replace(state, shape=(steps, batch, gates * hidden))
    x = layer.operands[0]
    place = f"{layer.name}/direction {direction}" if directions > 1 else layer.name
    of_inputs = 2.0 * steps * batch * gates * hidden * inputs
    of_state = 2.0 * batch * gates * hidden * hidden
    of_cell = max(0.0, layer.flops / directions - of_inputs - steps * of_state) / steps
    products = _Part(layer, direction, all_steps, "MatMul", OpKind.MATMUL)
    first = products.add(builder, f"{place}/inputs", of_inputs, [x], 1)
    recurrence = replace(products, result=wide)
    cells = replace(products, result=state, op_type=layer.op_type, kind=OpKind.ELEMENTWISE)
    made: list[int] = []
    before = [layer.operand(5), layer.operand(6)]
    for step in range(steps):
        product = recurrence.add(builder, f"{place}/step {step}/state", of_state, before[:1], 2)
        read = [Operand(wide, first), Operand(wide, product), *before[1:]]
        cell = cells.add(builder, f"{place}/step {step}/cell", of_cell, read, 3)
        before = [Operand(state, cell), Operand(state, cell, 1) if gates == 4 else None]
        made.append(cell)
    return made


@dataclass(frozen=True)
class _Part:
    """Nodes of one kind in one direction of a layer."""

    layer: RecurrentLayer
    direction: int
    result: Tensor
    op_type: str
    kind: OpKind

    def add(
        self,
        builder: GraphBuilder,
        name: str,
        flops: float,
        read: Sequence[Operand | None],
        weights_at: int,
    ) -> int:
        """Add a node that reads values, and its direction's share of one operand of the layer."""
        directions = self.layer.sizes[-1]
        operand = self.layer.operand(weights_at)
        stored = operand.weights if operand is not None else {}
        weights = {key: t.nbytes / directions for key, t in stored.items()}
        kept = float(sum(weights.values()))
        given = [value for value in read if value is not None]
        num_bytes = self.result.nbytes + sum(value.tensor.nbytes for value in given)
        if operand is not None:
            num_bytes += kept if stored else operand.tensor.nbytes / directions
            given += [] if stored else [operand]
        cells = 2 if self.kind is OpKind.ELEMENTWISE and self.layer.sizes[4] == 4 else 1
        node = operator_node(
            name,
            self.op_type,
            (self.kind, flops, num_bytes),
            [self.result],
            stored,
            output_bytes=cells * self.result.nbytes,
            weight_bytes=kept,
            weight_arrays=_shares(weights, self.direction, directions),
            element_type=self.result.type,
            source=self.layer.source,
        )
        return add_operator(builder, node, given)


def _shares(weights: Mapping[str, float], direction: int, directions: int) -> dict[str, float]:
    """Name the share of each stored array that one direction reads; all steps read the same."""
    ending = f"[{direction}]" if directions > 1 else ""
    return {name + ending: size for name, size in weights.items() if size > TIE_BYTES}
