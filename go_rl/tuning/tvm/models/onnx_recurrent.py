"""Recurrent operators of ONNX written out, step by step: LSTM, GRU and RNN.

The names of tensors are those of the operators' documentation: ``X`` [T, B, I] inputs, ``W``
[D, G H, I] and ``R`` [D, G H, H] weights, ``B`` [D, 2 G H] biases, with T steps, D directions and G
gates.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from go_rl.graphs.readers.decompositions import GATES
from go_rl.tuning.tvm.models.onnx_decomposed import REWRITTEN_OPSET, Parts, rewritten

RECURRENT = frozenset(GATES)
LONGEST = 512
"""Steps that are written out, at most."""
PLAIN = frozenset({"Sigmoid", "Tanh", "Relu", "Softsign", "Softplus"})
"""Activations without parameters."""
DEFAULTS: Mapping[str, tuple[str, ...]] = {
    "LSTM": ("Sigmoid", "Tanh", "Tanh"), "GRU": ("Sigmoid", "Tanh"), "RNN": ("Tanh",),
}  # fmt: skip


def unrolled(model: onnx.ModelProto, shapes: Mapping[str, Sequence[int]]) -> onnx.ModelProto:
    """Return a model whose recurrent operators are written out, those of the graph itself whose
    sizes are known and that have no sequence lengths, peepholes or clipping.

    Args:
        model: it is changed.
        shapes: of its tensors, as far as they are known.
    """

    def steps(node: onnx.NodeProto, number: int) -> Parts | None:
        if node.op_type not in RECURRENT:
            return None
        written = _Writer(node, f"{node.name or node.op_type}.{number}", shapes)
        if not written.possible:
            return None
        written.write()
        model.graph.initializer.extend(written.constants)
        return written.nodes

    return rewritten(model, REWRITTEN_OPSET, steps)


@dataclass
class _Writer:
    """Writer of one recurrent operator."""

    node: onnx.NodeProto
    name: str
    shapes: Mapping[str, Sequence[int]]
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.attributes = {x.name: helper.get_attribute_value(x) for x in self.node.attribute}
        direction = _text(self.attributes.get("direction", b"forward"))
        self.directions = ["forward", "reverse"] if direction == "bidirectional" else [direction]
        kind = self.node.op_type
        given = [_text(each) for each in self.attributes.get("activations", [])]
        self.activations = given or list(DEFAULTS[kind]) * len(self.directions)

    @property
    def possible(self) -> bool:
        """Whether the operator can be written out."""
        sizes, sequence = self.shapes.get(self.node.input[0]), self._input(4)
        return (
            sizes is not None and len(sizes) == 3 and 0 < sizes[0] <= LONGEST
            and not sequence and not self._input(7)
            and not self.attributes.get("clip") and not self.attributes.get("layout")
            and not self.attributes.get("input_forget") and set(self.activations) <= PLAIN
        )  # fmt: skip

    def write(self) -> None:
        """Write all directions, and join them."""
        steps, batch, _ = self.shapes[self.node.input[0]]
        hidden = int(self.attributes["hidden_size"])
        each = [self._direction(i, steps, batch, hidden) for i in range(len(self.directions))]
        whole, last, cell = ([state[i] for state in each] for i in range(3))
        for names, output, axis in ((whole, 0, 1), (last, 1, 0), (cell, 2, 0)):
            if len(self.node.output) > output and self.node.output[output]:
                self._add("Concat", names, self.node.output[output], axis=axis)

    def _direction(self, number: int, steps: int, batch: int, hidden: int) -> tuple[str, str, str]:
        """[T, 1, B, H] results, [1, B, H] last state and, of an LSTM, cell."""
        kind, gates = self.node.op_type, GATES[self.node.op_type]
        inputs, weights, state_weights = (self._input(i) for i in range(3))
        w = self._add("Transpose", [self._of(weights, number)], perm=[1, 0])
        r = self._add("Transpose", [self._of(state_weights, number)], perm=[1, 0])
        biases = self._biases(number, gates * hidden)
        of_input = self._add("MatMul", [inputs, w])
        if biases:
            of_input = self._add("Add", [of_input, biases[0]])
        state, cell = (self._start(i, number, batch, hidden) for i in (5, 6))
        acts = self.activations[number * len(DEFAULTS[kind]) :]
        found: list[str] = [""] * steps
        order = range(steps) if self.directions[number] == "forward" else reversed(range(steps))
        for step in order:
            now = self._row(of_input, step)
            if kind == "LSTM":
                state, cell = self._lstm(now, state, cell, (r, biases), acts, hidden)
            elif kind == "GRU":
                state = self._gru(now, state, (r, biases), acts, hidden)
            else:
                state = self._add(acts[0], [self._gate_sum(now, state, r, biases)])
            found[step] = self._add("Unsqueeze", [state, self._ints([0, 1])])
        return (
            self._add("Concat", found, axis=0),
            self._add("Unsqueeze", [state, self._ints([0])]),
            self._add("Unsqueeze", [cell, self._ints([0])]),
        )

    def _gate_sum(self, now: str, state: str, r: str, biases: list[str]) -> str:
        made = self._add("Add", [now, self._add("MatMul", [state, r])])
        return self._add("Add", [made, biases[1]]) if biases else made

    def _lstm(
        self, now: str, state: str, cell: str, weights: tuple[str, list[str]],
        acts: Sequence[str], hidden: int,
    ) -> tuple[str, str]:  # fmt: skip
        """The gates are input, output, forget and cell."""
        total = self._gate_sum(now, state, *weights)
        entry, out, forget, fresh = (self._part(total, i, hidden) for i in range(4))
        entry, out, forget = (self._add(acts[0], [x]) for x in (entry, out, forget))
        kept = self._add("Mul", [forget, cell])
        cell = self._add("Add", [kept, self._add("Mul", [entry, self._add(acts[1], [fresh])])])
        return self._add("Mul", [out, self._add(acts[2], [cell])]), cell

    def _gru(
        self, now: str, state: str, weights: tuple[str, list[str]], acts: Sequence[str],
        hidden: int,
    ) -> str:  # fmt: skip
        """The gates are update, reset and hidden."""
        r, biases = weights
        parts = [self._part(now, i, hidden) for i in range(3)]
        if self.attributes.get("linear_before_reset"):
            product = self._add("MatMul", [state, r])
            whole = self._add("Add", [product, biases[1]]) if biases else product
            of_state = [self._part(whole, i, hidden) for i in range(3)]
        else:
            of_state = [
                self._biased(self._add("MatMul", [state, self._part(r, i, hidden)]), biases, i,
                             hidden)
                for i in range(2)
            ]  # fmt: skip
        update, reset = (
            self._add(acts[0], [self._add("Add", [parts[i], of_state[i]])]) for i in range(2)
        )
        if self.attributes.get("linear_before_reset"):
            hide = self._add("Mul", [reset, of_state[2]])
        else:
            left = self._add("Mul", [reset, state])
            product = self._add("MatMul", [left, self._part(r, 2, hidden)])
            hide = self._biased(product, biases, 2, hidden)
        fresh = self._add(acts[1], [self._add("Add", [parts[2], hide])])
        one = self._constant(np.ones((), np.float32))
        kept = self._add("Mul", [update, state])
        taken = self._add("Mul", [self._add("Sub", [one, update]), fresh])
        return self._add("Add", [taken, kept])

    def _biased(self, made: str, biases: list[str], gate: int, hidden: int) -> str:
        if not biases:
            return made
        return self._add("Add", [made, self._part(biases[1], gate, hidden, axis=0)])

    def _biases(self, number: int, size: int) -> list[str]:
        """Biases of the input and of the state; none where there are none."""
        given = self._input(3)
        if not given:
            return []
        both = self._of(given, number)
        return [self._part(both, i, size, axis=0) for i in range(2)]

    def _start(self, place: int, number: int, batch: int, hidden: int) -> str:
        given = self._input(place)
        if given:
            return self._of(given, number)
        return self._constant(np.zeros((batch, hidden), np.float32))

    def _of(self, name: str, direction: int) -> str:
        """An operand's part of a direction."""
        return self._row(name, direction)

    def _row(self, name: str, row: int) -> str:
        taken = self._add("Slice", [name, self._ints([row]), self._ints([row + 1]),
                                    self._ints([0])])  # fmt: skip
        return self._add("Squeeze", [taken, self._ints([0])])

    def _part(self, name: str, gate: int, hidden: int, axis: int = 1) -> str:
        ends = [self._ints([hidden * (gate + i)]) for i in range(2)]
        return self._add("Slice", [name, *ends, self._ints([axis])])

    def _input(self, place: int) -> str:
        return self.node.input[place] if len(self.node.input) > place else ""

    def _ints(self, values: Sequence[int]) -> str:
        return self._constant(np.array(values, np.int64))

    def _constant(self, array: np.ndarray) -> str:
        name = f"{self.name}/{next(self.numbers)}"
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def _add(self, op: str, inputs: Sequence[str], output: str = "", **attributes: Any) -> str:
        output = output or f"{self.name}/{next(self.numbers)}"
        self.nodes.append(helper.make_node(op, list(inputs), [output], output, **attributes))
        return output


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value
