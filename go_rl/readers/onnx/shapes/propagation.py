"""Completing an ONNX model: a static type for every tensor, shape arithmetic folded away.

`complete` walks each graph once in topological order. It folds constants (`readers.onnx.fold`),
takes a tensor's shape from the file where it is static, and otherwise asks ONNX's own inference for
that one node, with the values of constants at hand. That inference is C++ and may crash, so that
untrusted models are processed in a subprocess (`go_rl.readers.onnx.worker`).
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from go_rl.core.errors import ReadError, nearest
from go_rl.readers.onnx.fold import constant_tensor, evaluate, shape_result, small_value
from go_rl.readers.onnx.order import (
    captured_names,
    drop_unread_results,
    live_nodes,
    topological_nodes,
)
from go_rl.readers.onnx.scope import Completion, FileFacts, Scope
from go_rl.readers.onnx.shapes.guesses import GUESSED, guess_note
from go_rl.readers.onnx.shapes.inference import result_types
from go_rl.readers.onnx.structure import DEFAULT_DOMAINS, fitting
from go_rl.readers.onnx.types import element_type, is_static, static_shape, tensor_type

BRANCH = "go_rl_branch"
"""Attribute of a completed `If`: the branch taken, when its condition is constant."""
TRIPS = "go_rl_trips"
"""Attribute of a completed `Loop` or `Scan`: how often its body runs."""


def complete(model: onnx.ModelProto, run: Completion) -> None:
    """Fold and type ``model`` in place: nodes in order, dead ones gone, every output static.

    Raises:
        MissingShapeError: a shape is missing and ``run.infer`` is false.
        ReadError: a shape depends on data, a trip count is unknown, a name is undefined or
            defined twice, or the graph has a cycle.
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
    facts = _facts(graph, run)
    for value in graph.input:
        if value.name not in initial and value.name not in scope.types:
            scope.types[value.name] = value.type
    drop_unread_results(graph)
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
    array = small_value(tensor)
    if array is not None:
        scope.constants[name] = array


def _visit(node: onnx.NodeProto, scope: Scope, facts: FileFacts, run: Completion) -> bool:
    """Type the outputs of ``node``; True when it was folded to constants."""
    default = node.domain in DEFAULT_DOMAINS
    if default and node.op_type == "Constant":
        return False if node.attribute[0].name == "ref" else _fold_constant(node, scope)
    if _fold(node, scope, run.opsets):
        return True
    if default and node.op_type == "If":
        return _complete_if(node, scope, run)
    if default and node.op_type in ("Loop", "Scan"):
        _complete_loop(node, scope, run)
        return False
    types = facts.types
    found = {o: types[o] for o in node.output if o in types and is_static(types[o])}
    if any(o and o not in found for o in node.output):
        found = result_types(node, scope, run, facts, found)
    for output in node.output:
        if output:
            scope.types[output] = found[output]
    return False


def _fold_constant(node: onnx.NodeProto, scope: Scope) -> bool:
    tensor = constant_tensor(node)
    _define_tensor(scope, node.output[0], tensor)
    if node.output[0] in scope.constants:
        return True
    node.attribute[0].Clear()  # keep the header of a large tensor only
    node.attribute[0].name = "value"
    node.attribute[0].type = onnx.AttributeProto.TENSOR
    header = node.attribute[0].t
    header.data_type, header.name = tensor.data_type, tensor.name
    header.dims.extend(tensor.dims)
    return False


def _fold(node: onnx.NodeProto, scope: Scope, opsets: dict[str, int]) -> bool:
    if node.op_type in ("Shape", "Size") and node.domain in DEFAULT_DOMAINS:
        shape = static_shape(scope.types[node.input[0]])
        if shape is None:
            return False
        results: list[np.ndarray] | None = [shape_result(node, shape)]
    else:
        constants = scope.constants
        if not node.input or any(i and i not in constants for i in node.input):
            return False
        results = evaluate(node, [constants[i] if i else None for i in node.input], opsets)
    if results is None:
        return False
    for output, array in zip(node.output, results, strict=False):
        if output:
            _define_constant(scope, output, array)
    return True


def _define_constant(scope: Scope, name: str, array: np.ndarray) -> None:
    scope.constants[name] = array
    element = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
    scope.types[name] = tensor_type(element, array.shape)


def _subgraphs(node: onnx.NodeProto) -> dict[str, onnx.GraphProto]:
    return {a.name: a.g for a in node.attribute if a.HasField("g")}


def _complete_if(node: onnx.NodeProto, scope: Scope, run: Completion) -> bool:
    branches = _subgraphs(node)
    chosen = list(branches)
    if node.input[0] in scope.constants:
        taken = bool(scope.constants[node.input[0]].reshape(-1)[0])
        chosen = ["then_branch" if taken else "else_branch"]
        node.attribute.append(onnx.helper.make_attribute(BRANCH, chosen[0]))
    inner = {name: scope.child() for name in chosen}
    for name in chosen:
        _complete_graph(branches[name], inner[name], run, f"{node.doc_string}.{name}")
    results = [o.name for o in branches[chosen[0]].output]
    first = inner[chosen[0]]
    folded = len(chosen) == 1 and all(r in first.constants for r in results)
    for output, result in zip(node.output, results, strict=True):
        scope.types[output] = first.types[result]
        if len(chosen) == 1 and result in first.constants:
            scope.constants[output] = first.constants[result]
    return folded


def _complete_loop(node: onnx.NodeProto, scope: Scope, run: Completion) -> None:
    body = _subgraphs(node)["body"]
    inner = scope.child()
    complete_body = _enter_loop if node.op_type == "Loop" else _enter_scan
    trips, carried, axes = complete_body(node, body, scope, inner, run)
    _complete_graph(body, inner, run, f"{node.doc_string}.body")
    if trips is None:
        trips = _loop_trips(node, body, scope, inner, run)
    node.attribute.append(onnx.helper.make_attribute(TRIPS, trips))
    first = 1 if node.op_type == "Loop" else 0
    for i, output in enumerate(node.output):
        if not output:
            continue
        kind = inner.types[body.output[first + i].name]
        if i < carried:
            scope.types[output] = kind
            continue
        shape = list(static_shape(kind) or ())
        axis = axes[i - carried] % (len(shape) + 1) if axes else 0
        scope.types[output] = tensor_type(element_type(kind), [*shape[:axis], trips, *shape[axis:]])


def _enter_loop(
    node: onnx.NodeProto, body: onnx.GraphProto, scope: Scope, inner: Scope, run: Completion
) -> tuple[int | None, int, list[int]]:
    counter, condition, *state = body.input
    inner.types[counter.name] = tensor_type(onnx.TensorProto.INT64, ())
    _define_constant(inner, condition.name, np.array(True))
    for value, outer in zip(state, node.input[2:], strict=True):
        inner.types[value.name] = scope.types[outer]
    return None, len(node.input) - 2, []


def _enter_scan(
    node: onnx.NodeProto, body: onnx.GraphProto, scope: Scope, inner: Scope, run: Completion
) -> tuple[int | None, int, list[int]]:
    if run.opsets.get("", 9) < 9:
        raise ReadError(f"Scan {node.name!r} ({node.doc_string}): opset 8 form; convert to 9")
    attributes = {a.name: a for a in node.attribute}
    scanned = attributes["num_scan_inputs"].i
    carried = len(node.input) - scanned
    axes = list(attributes["scan_input_axes"].ints) if "scan_input_axes" in attributes else []
    trips = 1
    for i, (value, outer) in enumerate(zip(body.input, node.input, strict=True)):
        kind = scope.types[outer]
        if i >= carried:
            shape = list(static_shape(kind) or ())
            trips = shape.pop(axes[i - carried] if axes else 0)
            kind = tensor_type(element_type(kind), shape)
        inner.types[value.name] = kind
    outputs = attributes.get("scan_output_axes")
    return trips, carried, list(outputs.ints) if outputs else []


def _loop_trips(
    node: onnx.NodeProto, body: onnx.GraphProto, scope: Scope, inner: Scope, run: Completion
) -> int:
    name = node.name or node.output[0]
    if name in run.trips:
        return run.trips[name]
    limit = scope.constants.get(node.input[0]) if node.input[0] else None
    start = scope.constants.get(node.input[1]) if len(node.input) > 1 and node.input[1] else None
    if start is not None and not bool(start.reshape(-1)[0]):
        return 0
    goes_on = inner.constants.get(body.output[0].name)
    if limit is None or (int(limit.reshape(-1)[0]) > 1 << 20 and goes_on is None):
        if run.trip_count is not None:
            return run.trip_count
        raise ReadError(
            f"Loop {name!r} ({node.doc_string}): its trip count depends on data; give it with "
            f"--dim {name}.trips=<count>, or that of all such loops with --trip-count <count>"
        )
    if goes_on is None:
        run.notes.append(f"Loop {name!r} may stop early; its largest trip count {limit} is used")
    elif not bool(goes_on.reshape(-1)[0]):
        return min(1, int(limit.reshape(-1)[0]))
    return max(0, int(limit.reshape(-1)[0]))


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
            graph.initializer.append(numpy_helper.from_array(array, name))
    typed = {o for n in nodes for o in n.output if o}
    typed |= {v.name for v in graph.input} - set(initial)
    del graph.node[:]
    graph.node.extend(nodes)
    del graph.value_info[:]
    for name in sorted(typed):
        if name in scope.types:
            graph.value_info.append(onnx.ValueInfoProto(name=name, type=scope.types[name]))
