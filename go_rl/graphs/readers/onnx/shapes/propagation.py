"""Completing an ONNX model: a static type for every tensor, shape arithmetic folded away.

`complete` walks each graph once in topological order. It folds constants (`readers.onnx.fold`),
takes a tensor's shape from the file where it is static and the inputs are those of the file, and
otherwise asks ONNX's own inference for that one node, with the values of constants at hand. That
inference is C++ and may crash, so that untrusted models are processed in a subprocess
(`go_rl.graphs.readers.onnx.worker`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from go_rl.core.errors import ReadError, nearest
from go_rl.graphs.readers.onnx.fold import (
    FILLED,
    constant_tensor,
    evaluate,
    is_filled,
    shape_result,
    small_value,
    why_no_value,
)
from go_rl.graphs.readers.onnx.graph import subgraph_flops
from go_rl.graphs.readers.onnx.order import (
    captured_names,
    drop_unread_results,
    live_nodes,
    topological_nodes,
)
from go_rl.graphs.readers.onnx.scope import Completion, FileFacts, Scope, subgraphs
from go_rl.graphs.readers.onnx.shapes.control import complete_if, complete_loop
from go_rl.graphs.readers.onnx.shapes.guesses import GUESSED, guess_note
from go_rl.graphs.readers.onnx.shapes.inference import result_types
from go_rl.graphs.readers.onnx.shapes.sequences import (
    complete_sequence,
    complete_sequence_map,
    has_element,
    sequence_length,
)
from go_rl.graphs.readers.onnx.shapes.stated import check_stated
from go_rl.graphs.readers.onnx.structure import DEFAULT_DOMAINS, fitting
from go_rl.graphs.readers.onnx.values import (
    LAYOUT_OF_WEIGHTS,
    element_type,
    is_static,
    static_shape,
    tensor_of,
    tensor_type,
)
from go_rl.graphs.readers.operand import Operand


def complete(model: onnx.ModelProto, run: Completion) -> None:
    """Fold and type ``model`` in place: nodes in order, dead ones gone, every output static.

    Raises:
        MissingShapeError: a shape is missing and ``run.infer`` is false.
        ReadError: a shape or a trip count is not known, a name is undefined or defined twice, or
            the graph has a cycle.
    """
    _complete_graph(model.graph, Scope(), run, "graph")
    if run.guessed:
        run.notes.append(guess_note(run.guessed, len(run.uncertain)))


def _complete_graph(graph: onnx.GraphProto, scope: Scope, run: Completion, where: str) -> None:
    initial = {t.name: t for t in graph.initializer}
    for name, tensor in initial.items():
        _define_tensor(scope, name, tensor)
    for sparse in graph.sparse_initializer:
        kind = tensor_type(sparse.values.data_type, sparse.dims)
        scope.types[sparse.values.name] = kind
        scope.stored[sparse.values.name] = None
    facts = _facts(graph, run)
    for value in graph.input:
        if value.name not in initial and value.name not in scope.types:
            scope.types[value.name] = value.type
    drop_unread_results(graph, run.opsets)
    kept: list[onnx.NodeProto] = []
    for node in topological_nodes(graph, scope.types, where):
        with fitting(node):
            if not _visit(node, scope, facts, run):
                kept.append(node)
            if run.uncertain:
                _spread_doubt(node, facts, run)
    for output in graph.output:
        if output.name not in scope.types:
            near = nearest(output.name, scope.types)
            raise ReadError(f"{where}: nothing defines the result {output.name!r}{near}")
    _rewrite(graph, live_nodes(graph, kept), initial, scope)


def _facts(graph: onnx.GraphProto, run: Completion) -> FileFacts:
    readers: dict[str, list[onnx.NodeProto]] = {}
    for node in graph.node if run.unknown_as_bytes else ():
        for name in node.input:
            readers.setdefault(name, []).append(node)
    return FileFacts({v.name: v.type for v in (*graph.value_info, *graph.output)}, readers)


def _spread_doubt(node: onnx.NodeProto, facts: FileFacts, run: Completion) -> None:
    """Mark ``node``, and its results of undeclared size, when it reads or has a guessed size."""
    if run.uncertain.isdisjoint({*node.input, *node.output, *captured_names(node)}):
        return
    node.attribute.append(onnx.helper.make_attribute(GUESSED, 1))
    certain = {o for o in node.output if o in facts.types and is_static(facts.types[o])}
    run.uncertain.update({o for o in node.output if o} - certain)


def _define_tensor(scope: Scope, name: str, tensor: onnx.TensorProto) -> None:
    scope.types[name] = tensor_type(tensor.data_type, tensor.dims)
    scope.stored[name] = None
    array = small_value(tensor)
    if array is not None:
        scope.constants[name] = array
    else:
        scope.failures[name] = why_no_value(tensor)


def _visit(node: onnx.NodeProto, scope: Scope, facts: FileFacts, run: Completion) -> bool:
    """Type the outputs of ``node``; True when it was folded to constants."""
    default = node.domain in DEFAULT_DOMAINS
    scope.producers.update({o: node for o in node.output if o})
    if default and node.op_type == "Constant":
        return False if node.attribute[0].name == "ref" else _fold_constant(node, scope)
    if default and node.op_type == "CastLike":
        _cast_by_name(node, scope)
    if _fold(node, scope, run.opsets):
        return True
    if default and node.op_type == "Cast":
        _rename_idle_cast(node, scope)
    if default and node.op_type in LAYOUT_OF_WEIGHTS and _all_stored(node, scope):
        scope.stored[node.output[0]] = None
    if default and node.op_type == "If":
        return complete_if(node, scope, run, _complete_graph, _branch_flops)
    if default and node.op_type in ("Loop", "Scan"):
        complete_loop(node, scope, run, _complete_graph)
    elif default and node.op_type == "SequenceMap":
        complete_sequence_map(node, scope, run, _complete_graph)
    elif not complete_sequence(node, scope):
        _type_results(node, scope, facts, run)
    return False


def _cast_by_name(node: onnx.NodeProto, scope: Scope) -> None:
    """Make, in place, a `Cast` of a `CastLike`, which reads the type of its second operand only."""
    like = scope.types.get(node.input[1])
    if wanted := element_type(like) if like else 0:
        node.op_type = "Cast"
        del node.input[1:]
        node.attribute.append(onnx.helper.make_attribute("to", wanted))


def _rename_idle_cast(node: onnx.NodeProto, scope: Scope) -> None:
    """Make, in place, an `Identity` of a cast to the type that its operand has."""
    given = element_type(scope.types[node.input[0]])
    wanted = next((a.i for a in node.attribute if a.name == "to"), 0)
    if given and given == wanted:
        node.op_type = "Identity"
        del node.attribute[:]


def _all_stored(node: onnx.NodeProto, scope: Scope) -> bool:
    return all(i in scope.stored for i in node.input if i)


def _type_results(node: onnx.NodeProto, scope: Scope, facts: FileFacts, run: Completion) -> None:
    types = facts.types
    found = {o: types[o] for o in node.output if o in types and is_static(types[o])}
    if not run.trust_file or any(o and o not in found for o in node.output):
        found = result_types(node, scope, run, facts, found)
    for output in node.output:
        if output:
            scope.types[output] = found[output]
    if run.uncertain.isdisjoint({*node.input, *node.output}):
        *operands, result = (
            static_shape(scope.types[name]) if name else None
            for name in (*node.input, node.output[0])
        )
        check_stated(node, operands, result)


def _fold_constant(node: onnx.NodeProto, scope: Scope) -> bool:
    tensor = constant_tensor(node)
    _define_tensor(scope, node.output[0], tensor)
    if node.output[0] in scope.constants:
        return True
    if node.attribute[0].HasField("sparse_tensor"):
        return False
    node.attribute[0].Clear()  # keep the header of a large tensor only
    node.attribute[0].name = "value"
    node.attribute[0].type = onnx.AttributeProto.TENSOR
    header = node.attribute[0].t
    header.data_type, header.name = tensor.data_type, tensor.name
    header.dims.extend(tensor.dims)
    return False


def _fold(node: onnx.NodeProto, scope: Scope, opsets: dict[str, int]) -> bool:
    results = _results(node, scope, opsets)
    if isinstance(results, str):
        scope.failures.update({o: results for o in node.output if o and results})
        return False
    for output, array in zip(node.output, results, strict=False):
        if output:
            _define_constant(scope, output, array)
    return True


def _results(
    node: onnx.NodeProto, scope: Scope, opsets: dict[str, int]
) -> Sequence[np.ndarray] | str:
    """The values of a node's results; text: why not, empty where an operand is not known."""
    default, constants = node.domain in DEFAULT_DOMAINS, scope.constants
    if default and node.op_type in ("Shape", "Size"):
        shape = static_shape(scope.types[node.input[0]])
        return "" if shape is None else [shape_result(node, shape)]
    if default and node.op_type == "SequenceLength":
        length = sequence_length(node, scope)
        return "reads a sequence of unknown length" if length is None else [length]
    if default and node.op_type == "OptionalHasElement":
        given = has_element(node, scope)
        return "" if given is None else [given]
    if not node.input or any(i and i not in constants for i in node.input):
        return ""
    return evaluate(node, [constants[i] if i else None for i in node.input], opsets)


def _define_constant(scope: Scope, name: str, array: np.ndarray) -> None:
    scope.constants[name] = array
    element = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    scope.types[name] = tensor_type(element, array.shape)
    scope.stored[name] = None


def _branch_flops(node: onnx.NodeProto, name: str, inner: Scope, run: Completion) -> float:
    """Return the FLOP of a completed branch by the rules that count it later."""
    values = {
        i: Operand(
            tensor_of(inner.types[i], i),
            weights={i: tensor_of(inner.types[i], i)} if i in inner.stored else {},
            array=inner.constants.get(i),
        )
        for i in captured_names(node)
        if i in inner.types
    }
    return subgraph_flops(subgraphs(node)[name], values, run.opsets)


def _rewrite(
    graph: onnx.GraphProto,
    kept: list[onnx.NodeProto],
    initial: dict[str, onnx.TensorProto],
    scope: Scope,
) -> None:
    """Write nodes, folded constants that are still read, and all types back into ``graph``."""
    fresh = onnx.GraphProto(node=kept)
    nodes = fresh.node
    own_constants = scope.constants.maps[0]
    read = {i for n in nodes for i in (*n.input, *captured_names(n))}
    read |= {o.name for o in graph.output}
    for name in sorted(read & set(own_constants) - set(initial)):
        array = own_constants[name]
        if array.dtype != object:
            folded = numpy_helper.from_array(array, name)
            folded.doc_string = FILLED if is_filled(array) else ""
            graph.initializer.append(folded)
    typed = {o for n in nodes for o in n.output if o}
    typed |= {v.name for v in graph.input} - set(initial)
    del graph.node[:]
    graph.node.extend(nodes)
    del graph.value_info[:]
    for name in sorted(typed):
        if name in scope.types:
            graph.value_info.append(onnx.ValueInfoProto(name=name, type=scope.types[name]))
