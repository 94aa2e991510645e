"""Sequences of tensors whose number of elements is known, and the sizes of what is made of them.

A sequence is typed as one array of all its elements, so that its bytes are those of all of them.
One of unknown length, such as an input of the model, counts as one of its elements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
import onnx

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.onnx.scope import CompleteGraph, Completion, Scope, Shape, subgraphs
from go_rl.graphs.readers.onnx.shapes.unknown_values import why_unknown
from go_rl.graphs.readers.onnx.structure import BODY_OF, DEFAULT_DOMAINS, TRIPS, describe
from go_rl.graphs.readers.onnx.values import element_type, static_shape, tensor_type
from go_rl.graphs.tables import by_name

LONGEST = 1 << 16
"""Elements of the longest sequence that is followed element by element."""


def define_sequence(scope: Scope, name: str, element: int, shapes: Sequence[Shape]) -> None:
    """Enter a sequence of tensors of these ``shapes`` and ONNX element type."""
    if len(shapes) <= LONGEST:
        scope.sequences[name] = tuple(shapes)
    scope.types[name] = tensor_type(element, (sum(map(prod, shapes)),))


def complete_sequence(node: onnx.NodeProto, scope: Scope) -> bool:
    """Type the result of an operator on sequences; False: it is none, or they are not known.

    Raises:
        ReadError: an operand does not fit the operator.
    """
    rule = _RULES.get(node.op_type) if node.domain in DEFAULT_DOMAINS else None
    return rule is not None and rule(_SequenceCall(node, scope))


def sequence_length(node: onnx.NodeProto, scope: Scope) -> np.ndarray | None:
    """Return the value of a `SequenceLength`; None where the length is not known."""
    elements = scope.sequences.get(node.input[0])
    return None if elements is None else np.array(len(elements), np.int64)


def has_element(node: onnx.NodeProto, scope: Scope) -> np.ndarray | None:
    """Return the value of an `OptionalHasElement`; None where an input of the model decides it."""
    if not any(node.input):
        return np.array(False)
    given = node.input[0]
    known = given in scope.sequences or not scope.types[given].HasField("optional_type")
    return np.array(True) if known else None


@dataclass(frozen=True)
class _SequenceCall:
    """An operator on sequences, and what is known before it."""

    node: onnx.NodeProto
    scope: Scope

    @property
    def elements(self) -> tuple[Shape, ...] | None:
        """Shapes of the elements of the first operand; None: it is no sequence of known length."""
        return self.scope.sequences.get(self.operand(0))

    def operand(self, position: int) -> str:
        """Return the name of an operand; empty where it is left out."""
        return self.node.input[position] if position < len(self.node.input) else ""

    def shape(self, position: int) -> Shape | None:
        """Return the shape of an operand that is a tensor."""
        return static_shape(self.scope.types[self.node.input[position]])

    def element(self, position: int = 0) -> int:
        """Return the ONNX element type of an operand."""
        return element_type(self.scope.types[self.node.input[position]])

    def attribute(self, name: str, default: int) -> int:
        """Return a number among the attributes."""
        return next((a.i for a in self.node.attribute if a.name == name), default)

    def define(self, shapes: Sequence[Shape], element: int | None = None) -> bool:
        """Enter the result, a sequence of such elements; by default of the first operand's type."""
        kind = self.element() if element is None else element
        define_sequence(self.scope, self.node.output[0], kind, shapes)
        return True

    def define_tensor(self, shape: Sequence[int], element: int | None = None) -> bool:
        """Enter the result, a tensor; by default of the first operand's type."""
        kind = self.element() if element is None else element
        self.scope.types[self.node.output[0]] = tensor_type(kind, shape)
        return True

    def place(self, operand: int, elements: Collection[Shape]) -> int:
        """Return the position that an operand names; any where all elements are alike.

        Raises:
            ReadError: it is not known, and matters.
        """
        name = self.operand(operand)
        if name in self.scope.constants:
            return int(self.scope.constants[name].reshape(-1)[0])
        if name and len(set(elements)) > 1:
            reason, _ = why_unknown(name, self.scope)
            raise ReadError(
                f"{describe(self.node)}: its place in a sequence of elements of different shapes "
                f"is not known: {reason}"
            )
        return -1

    def element_place(self, elements: Sequence[Shape]) -> int:
        """Return the position of one of ``elements`` that the second operand names."""
        at = self.place(1, elements)
        if not -len(elements) <= at < len(elements):
            raise ReadError(
                f"{describe(self.node)}: the sequence has {len(elements)} elements, and none at "
                f"{at}"
            )
        return at


def _construct(call: _SequenceCall) -> bool:
    shapes = [call.shape(i) for i in range(len(call.node.input))]
    known = [shape for shape in shapes if shape is not None]
    nested = any(i in call.scope.sequences for i in call.node.input)
    return not nested and len(known) == len(shapes) > 0 and call.define(known)


def _empty(call: _SequenceCall) -> bool:
    return call.define((), call.attribute("dtype", onnx.TensorProto.FLOAT))


def _same(call: _SequenceCall) -> bool:
    """Operators that hand a sequence on."""
    scope, given = call.scope, call.operand(0)
    if given not in scope.sequences:
        return False
    scope.sequences[call.node.output[0]] = scope.sequences[given]
    scope.types[call.node.output[0]] = scope.types[given]
    return True


def _insert(call: _SequenceCall) -> bool:
    before, shape = call.elements, call.shape(1)
    if before is None or shape is None:
        return False
    at = call.place(2, {*before, shape})
    if call.operand(2) not in call.scope.constants:
        at = len(before)
    return call.define([*before[:at], shape, *before[at:]], call.element(1))


def _erase(call: _SequenceCall) -> bool:
    if not (before := call.elements):
        return False
    after = list(before)
    del after[call.element_place(before)]
    return call.define(after)


def _at(call: _SequenceCall) -> bool:
    elements = call.elements
    return bool(elements) and call.define_tensor(elements[call.element_place(elements)])


def _has_element(call: _SequenceCall) -> bool:
    return call.define_tensor((), onnx.TensorProto.BOOL)


def _concat(call: _SequenceCall) -> bool:
    if not (elements := call.elements):
        return False
    axis, first = call.attribute("axis", 0), list(elements[0])
    if call.attribute("new_axis", 0):
        first.insert(axis % (len(first) + 1), len(elements))
    else:
        first[axis] = sum(shape[axis] for shape in elements)
    return call.define_tensor(first)


def _split(call: _SequenceCall) -> bool:
    shape, sizes, constants = call.shape(0), call.operand(1), call.scope.constants
    if shape is None or (sizes and sizes not in constants):
        return False
    axis = call.attribute("axis", 0) % len(shape)
    keep = bool(sizes) or bool(call.attribute("keepdims", 1))
    parts = _parts(shape[axis], constants[sizes] if sizes else np.array(1))
    return call.define([(*shape[:axis], *[n] * keep, *shape[axis + 1 :]) for n in parts])


def _parts(size: int, sizes: np.ndarray) -> list[int]:
    """Sizes of the parts of an axis: those listed, or equal ones and what is left over."""
    if sizes.ndim:
        return [int(n) for n in sizes]
    each = int(sizes)
    return [each] * (size // each) + ([size % each] if size % each else [])


_RULES: dict[str, Callable[[_SequenceCall], bool]] = by_name(
    {
        "ConcatFromSequence": _concat,
        "Identity Optional OptionalGetElement": _same,
        "OptionalHasElement": _has_element,
        "SequenceAt": _at,
        "SequenceConstruct": _construct,
        "SequenceEmpty": _empty,
        "SequenceErase": _erase,
        "SequenceInsert": _insert,
        "SplitToSequence": _split,
    }
)
"""Operators on sequences."""

_Shapes = tuple[Shape, ...]
"""Shapes of the operands of one element's body."""


def complete_sequence_map(
    node: onnx.NodeProto, scope: Scope, run: Completion, complete_graph: CompleteGraph
) -> None:
    """Complete a body for each different shape of the elements and type the results.

    A sequence of unknown length counts as one of its elements.

    Raises:
        ReadError: sequences of different lengths, or elements that do not fit the body.
    """
    pristine, elements = subgraphs(node)["body"], _elements(node, scope)
    counts = Counter(elements)
    made: dict[_Shapes, list[tuple[int, Shape]]] = {}
    for i, shapes in enumerate(counts):
        body = onnx.GraphProto()
        body.CopyFrom(pristine)
        inner = scope.child()
        for value, outer, shape in zip(body.input, node.input, shapes, strict=True):
            inner.types[value.name] = tensor_type(element_type(scope.types[outer]), shape)
            inner.failures[value.name] = "is an element of a sequence"
        complete_graph(body, inner, run, f"{node.doc_string}.body")
        kinds = [inner.types[o.name] for o in body.output]
        made[shapes] = [(element_type(kind), static_shape(kind) or ()) for kind in kinds]
        node.attribute.append(onnx.helper.make_attribute(f"{BODY_OF}{i}", body))
    pristine.Clear()
    node.attribute.append(onnx.helper.make_attribute(TRIPS, list(counts.values())))
    for i, output in enumerate(node.output):
        results = [made[shapes][i] for shapes in elements]
        element = results[0][0] if results else element_type(scope.types[node.input[0]])
        if output and node.input[0] in scope.sequences:
            define_sequence(scope, output, element, [shape for _, shape in results])
        elif output:
            kind = tensor_type(element, results[0][1])
            scope.types[output] = onnx.helper.make_sequence_type_proto(kind)


def _elements(node: onnx.NodeProto, scope: Scope) -> list[_Shapes]:
    """Shapes of all operands of the body, element by element."""
    known = {name: scope.sequences[name] for name in node.input if name in scope.sequences}
    length = len(known.get(node.input[0], ((),)))
    for name, elements in known.items():
        if len(elements) != length:
            raise ReadError(
                f"{describe(node)}: sequence {name!r} has {len(elements)} elements, and "
                f"{node.input[0]!r} has {length}"
            )
    whole = {name: static_shape(scope.types[name]) or () for name in node.input}
    return [
        tuple(known[name][i] if name in known else whole[name] for name in node.input)
        for i in range(length)
    ]
