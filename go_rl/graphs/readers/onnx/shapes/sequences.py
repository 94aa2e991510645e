"""Sequences of tensors whose number of elements is known, and the sizes of what is made of them.

A sequence is typed as one array of all its elements, so that its bytes are those of all of them.
One of unknown length, such as an input of the model, counts as one of its elements.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from math import prod

import numpy as np
import onnx

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.onnx.scope import CompleteGraph, Completion, Scope, Shape, subgraphs
from go_rl.graphs.readers.onnx.shapes.unknown_values import why_unknown
from go_rl.graphs.readers.onnx.structure import BODY_OF, DEFAULT_DOMAINS, TRIPS, describe
from go_rl.graphs.readers.onnx.values import element_type, static_shape, tensor_type

LONGEST = 1 << 16
"""Elements of the longest sequence that is followed element by element."""


def sequence_type(element: int, shapes: Sequence[Shape]) -> onnx.TypeProto:
    """Return the type of one array of all elements of a sequence."""
    return tensor_type(element, (sum(map(prod, shapes)),))


def define_sequence(scope: Scope, name: str, element: int, shapes: Sequence[Shape]) -> None:
    """Enter a sequence of tensors of these ``shapes`` and ONNX element type."""
    if len(shapes) <= LONGEST:
        scope.sequences[name] = tuple(shapes)
    scope.types[name] = sequence_type(element, shapes)


def complete_sequence(node: onnx.NodeProto, scope: Scope) -> bool:
    """Type the result of an operator on sequences; False: it is none, or they are not known.

    Raises:
        ReadError: an operand does not fit the operator.
    """
    rule = _RULES.get(node.op_type) if node.domain in DEFAULT_DOMAINS else None
    return rule is not None and rule(node, scope)


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


_SequenceRule = Callable[[onnx.NodeProto, Scope], bool]


def _attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    return next((a.i for a in node.attribute if a.name == name), default)


def _operand(node: onnx.NodeProto, position: int) -> str:
    return node.input[position] if position < len(node.input) else ""


def _construct(node: onnx.NodeProto, scope: Scope) -> bool:
    shapes = [static_shape(scope.types[i]) for i in node.input]
    known = [shape for shape in shapes if shape is not None]
    if any(i in scope.sequences for i in node.input) or len(known) < len(shapes) or not known:
        return False
    define_sequence(scope, node.output[0], element_type(scope.types[node.input[0]]), known)
    return True


def _empty(node: onnx.NodeProto, scope: Scope) -> bool:
    element = _attribute(node, "dtype", onnx.TensorProto.FLOAT)
    define_sequence(scope, node.output[0], element, ())
    return True


def _same(node: onnx.NodeProto, scope: Scope) -> bool:
    """Operators that hand a sequence on."""
    if not node.input or node.input[0] not in scope.sequences:
        return False
    scope.sequences[node.output[0]] = scope.sequences[node.input[0]]
    scope.types[node.output[0]] = scope.types[node.input[0]]
    return True


def _place(node: onnx.NodeProto, operand: int, scope: Scope, elements: Collection[Shape]) -> int:
    """The position that an operand names; any where all elements are alike.

    Raises:
        ReadError: it is not known, and matters.
    """
    name = _operand(node, operand)
    if name in scope.constants:
        return int(scope.constants[name].reshape(-1)[0])
    if name and len(set(elements)) > 1:
        reason, _ = why_unknown(name, scope)
        raise ReadError(
            f"{describe(node)}: its place in a sequence of elements of different shapes is not "
            f"known: {reason}"
        )
    return -1


def _insert(node: onnx.NodeProto, scope: Scope) -> bool:
    before, shape = scope.sequences.get(node.input[0]), static_shape(scope.types[node.input[1]])
    if before is None or shape is None:
        return False
    at = _place(node, 2, scope, {*before, shape})
    if not _operand(node, 2) or _operand(node, 2) not in scope.constants:
        at = len(before)
    after = [*before[:at], shape, *before[at:]]
    define_sequence(scope, node.output[0], element_type(scope.types[node.input[1]]), after)
    return True


def _erase(node: onnx.NodeProto, scope: Scope) -> bool:
    before = scope.sequences.get(node.input[0])
    if not before:
        return False
    at = _place(node, 1, scope, before)
    _check_place(node, at, before)
    after = list(before)
    del after[at]
    define_sequence(scope, node.output[0], element_type(scope.types[node.input[0]]), after)
    return True


def _at(node: onnx.NodeProto, scope: Scope) -> bool:
    elements = scope.sequences.get(node.input[0])
    if not elements:
        return False
    at = _place(node, 1, scope, elements)
    _check_place(node, at, elements)
    scope.types[node.output[0]] = tensor_type(
        element_type(scope.types[node.input[0]]), elements[at]
    )
    return True


def _has_element(node: onnx.NodeProto, scope: Scope) -> bool:
    scope.types[node.output[0]] = tensor_type(onnx.TensorProto.BOOL, ())
    return True


def _check_place(node: onnx.NodeProto, at: int, elements: Sequence[Shape]) -> None:
    if not -len(elements) <= at < len(elements):
        raise ReadError(
            f"{describe(node)}: the sequence has {len(elements)} elements, and none at {at}"
        )


def _concat(node: onnx.NodeProto, scope: Scope) -> bool:
    elements = scope.sequences.get(node.input[0])
    if not elements:
        return False
    axis, first = _attribute(node, "axis", 0), list(elements[0])
    if _attribute(node, "new_axis", 0):
        first.insert(axis % (len(first) + 1), len(elements))
    else:
        first[axis] = sum(shape[axis] for shape in elements)
    scope.types[node.output[0]] = tensor_type(element_type(scope.types[node.input[0]]), first)
    return True


def _split(node: onnx.NodeProto, scope: Scope) -> bool:
    shape, sizes = static_shape(scope.types[node.input[0]]), _operand(node, 1)
    if shape is None or (sizes and sizes not in scope.constants):
        return False
    axis = _attribute(node, "axis", 0) % len(shape)
    keep = bool(sizes) or bool(_attribute(node, "keepdims", 1))
    parts = _parts(shape[axis], scope.constants[sizes] if sizes else np.array(1))
    pieces = [(*shape[:axis], *([n] if keep else []), *shape[axis + 1 :]) for n in parts]
    define_sequence(scope, node.output[0], element_type(scope.types[node.input[0]]), pieces)
    return True


def _parts(size: int, sizes: np.ndarray) -> list[int]:
    """Sizes of the parts of an axis: those listed, or equal ones and what is left over."""
    if sizes.ndim:
        return [int(n) for n in sizes]
    each = int(sizes)
    return [each] * (size // each) + ([size % each] if size % each else [])


_RULES: dict[str, _SequenceRule] = {
    "ConcatFromSequence": _concat,
    "Identity": _same,
    "Optional": _same,
    "OptionalGetElement": _same,
    "OptionalHasElement": _has_element,
    "SequenceAt": _at,
    "SequenceConstruct": _construct,
    "SequenceEmpty": _empty,
    "SequenceErase": _erase,
    "SequenceInsert": _insert,
    "SplitToSequence": _split,
}
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
