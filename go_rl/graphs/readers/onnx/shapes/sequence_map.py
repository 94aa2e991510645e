"""Completing `SequenceMap`: its body is counted once for every element, by the element's shape."""

from __future__ import annotations

from collections import Counter

import onnx

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.onnx.scope import Completion, Scope, Shape
from go_rl.graphs.readers.onnx.shapes.control import CompleteGraph, subgraphs
from go_rl.graphs.readers.onnx.shapes.sequences import define_sequence
from go_rl.graphs.readers.onnx.structure import BODY_OF, TRIPS, describe
from go_rl.graphs.readers.onnx.values.types import element_type, static_shape, tensor_type

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
