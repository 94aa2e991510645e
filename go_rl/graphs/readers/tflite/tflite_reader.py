"""LiteRT (TensorFlow Lite) models as `OpGraph`: any file whose operators are known.

Quantised arrays count the bytes that they are stored in. A weight that is only brought into another
precision or layout is still that weight. Sizes are those in the file.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from go_rl.core import OpGraph, OpKind, ReadError
from go_rl.graphs.readers.cost import Tensor, type_computed_in
from go_rl.graphs.readers.file_errors import naming
from go_rl.graphs.readers.graph_builder import GraphBuilder
from go_rl.graphs.readers.model_options import Unknown, unpriced
from go_rl.graphs.readers.operand import Operand, add_input, add_operator, operator_node, weights_of
from go_rl.graphs.readers.tflite.operators import RULES
from go_rl.graphs.readers.tflite.tflite_file import (
    DAMAGED,
    TfliteModel,
    TfliteOperator,
    damage,
    read_tflite_file,
    reading_part,
)
from go_rl.graphs.tables import names

FORMAT = "tflite"
LAYOUT_OF_WEIGHTS = names("CAST DENSIFY DEQUANTIZE EXPAND_DIMS QUANTIZE RESHAPE SQUEEZE TRANSPOSE")
"""Operators that leave a weight a weight."""


def read_tflite(path: str | Path, unknown: Unknown = "error") -> OpGraph:
    """Read the first subgraph of a LiteRT model.

    Args:
        path: a FlatBuffer with the identifier ``TFL3``.
        unknown: what to do about operators without a cost rule, custom ones among them: ``error``,
            or ``bytes`` to count the bytes that they read and write.

    Raises:
        ReadError: the file is damaged, or an operator lacks an operand.
        UnknownOperatorError: operators without a cost rule, named with their counts.
        GraphError: the graph breaks an invariant.
    """
    path = Path(path)
    model = read_tflite_file(path)
    counts = Counter(op.name for op in model.operators if op.name not in RULES)
    notes = unpriced(counts, unknown, path)
    if model.signatures:
        opened = ", ".join(model.signatures)
        notes.append(f"sizes that the file leaves open, of {opened}, are those it was made with")
    builder = GraphBuilder(path.stem, {"format": FORMAT, "dims": {}, "notes": notes})
    with naming(path):
        try:
            _TfliteWalk(model, builder).run()
        except ReadError as error:
            raise ReadError(f"{path}: {error}") from error
        return builder.build()


class _TfliteWalk:
    """One walk over the operators, in the order of the file, which is that of execution."""

    def __init__(self, model: TfliteModel, builder: GraphBuilder) -> None:
        self.model = model
        self.builder = builder
        self.values: dict[int, Operand] = {}
        self.taken: Counter[str] = Counter()

    def run(self) -> None:
        """Add inputs and operators, and mark the results."""
        with reading_part("inputs"):
            for number in self.model.inputs:
                self._add_input(number)
        for place, op in enumerate(self.model.operators):
            with reading_part(f"{op.name} at operators[{place}]"):
                self._add_operator(op, place)
        for number in self.model.outputs:
            with reading_part("outputs"):
                producer = self._value(number).producer
            self.builder.mark_output(producer)

    def _add_input(self, number: int) -> None:
        tensor = self.model.tensors[number]
        name, source = self._name(tensor.name), f"tensor {number}"
        self.values[number] = add_input(self.builder, name, tensor.type, source, "Input")

    def _value(self, number: int) -> Operand:
        """A stored tensor, one that an operator made, or the state of a variable."""
        if not 0 <= number < len(self.model.tensors):
            raise ValueError(f"tensor {number} is not among the {len(self.model.tensors)}")
        if number not in self.values:
            tensor = self.model.tensors[number]
            weights = {f"buffer {tensor.buffer}": tensor.type} if tensor.stored else {}
            self.values[number] = Operand(tensor.type, weights=weights)
        return self.values[number]

    def _add_operator(self, op: TfliteOperator, place: int) -> None:
        operands = [None if i < 0 else self._value(i) for i in op.inputs]
        given = [value for value in operands if value is not None]
        results = [self.model.tensors[i].type for i in op.outputs if i >= 0]
        if not results:
            return
        if op.name in LAYOUT_OF_WEIGHTS and given and all(value.weights for value in given):
            self.values[op.outputs[0]] = Operand(results[0], weights=given[0].weights)
            return
        kind, flops = self._price(op, operands, results[0], place)
        moved = sum(v.num_bytes for v in given) + sum(t.nbytes for t in results)
        title = self.model.tensors[op.outputs[0]].name
        node = operator_node(
            self._name(title),
            op.name,
            (kind, flops, moved),
            results,
            weights_of(given),
            weight_itemsize=max((v.tensor.itemsize for v in given if v.weights), default=0.0),
            element_type=type_computed_in(kind, [v.tensor for v in given], results),
            source=f"{op.name}({title}) at operators[{place}]",
        )
        number = add_operator(self.builder, node, given)
        for output, made in enumerate(i for i in op.outputs if i >= 0):
            self.values[made] = Operand(results[output], number, output)

    def _price(
        self, op: TfliteOperator, operands: list[Operand | None], result: Tensor, place: int
    ) -> tuple[OpKind, float]:
        if op.name not in RULES:
            return OpKind.OTHER, 0.0
        kind, formula = RULES[op.name]
        types: list[Any] = [value and value.tensor for value in operands]
        try:
            return kind, float(formula(types, result, op.options))
        except (*DAMAGED, ReadError) as error:
            shapes = [None if t is None else list(t.shape) for t in types]
            raise ReadError(
                f"{op.name} at operators[{place}]: operand shapes {shapes} do not fit the operator "
                f"({damage(error)})"
            ) from error

    def _name(self, title: str) -> str:
        self.taken[title] += 1
        return title if self.taken[title] == 1 else f"{title}_{self.taken[title] - 1}"
