"""Completing an ONNX model: a static type for every tensor, shape arithmetic folded away.

`complete` walks each graph once in topological order. It folds constants (`onnx_fold`), takes a
tensor's shape from the file where it is static, and otherwise asks ONNX's own inference for that
one node, with the values of constants at hand. Since that inference is C++ and may crash, callers
who cannot trust a model run this in a subprocess (`onnx_worker`).
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import MutableMapping
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import numpy_helper

from go_rl.core.errors import ReadError, nearest
from go_rl.readers.onnx_fold import constant_tensor, evaluate, shape_result, small_value
from go_rl.readers.onnx_microsoft_shapes import infer_without_schema
from go_rl.readers.onnx_order import (
    captured_names,
    drop_unread_results,
    live_nodes,
    topological_nodes,
)
from go_rl.readers.onnx_structure import DEFAULT_DOMAINS, fitting
from go_rl.readers.onnx_types import element_type, static_shape, tensor_type

BRANCH = "go_rl_branch"
"""Attribute of a completed `If`: the branch taken, when its condition is constant."""
TRIPS = "go_rl_trips"
"""Attribute of a completed `Loop` or `Scan`: how often its body runs."""


class MissingShapeError(ReadError):
    """A shape is absent from the file and inference was not allowed."""


@dataclass(frozen=True)
class Scope:
    """What is known at one point of the walk; subgraphs see their outer scope."""

    types: MutableMapping[str, onnx.TypeProto] = field(default_factory=lambda: ChainMap())
    """Static types by tensor name."""
    constants: MutableMapping[str, np.ndarray] = field(default_factory=lambda: ChainMap())
    """Small constant arrays by tensor name."""

    def child(self) -> Scope:
        """Return a scope for a subgraph."""
        return Scope(ChainMap({}, *_maps(self.types)), ChainMap({}, *_maps(self.constants)))


@dataclass(frozen=True)
class Completion:
    """Settings and findings of one completion."""

    opsets: dict[str, int]
    """Opset version by domain."""
    trips: dict[str, int]
    """Trip counts that the user gave, by name of the `Loop`."""
    infer: bool
    """Whether ONNX's C++ inference may be called."""
    unknown_as_bytes: bool
    """Give a node without a schema the type of its first input."""
    trip_count: int | None = None
    """Trips of every loop that depends on data and is not in `trips`."""
    notes: list[str] = field(default_factory=list)
    """Sentences about approximations."""


def complete(model: onnx.ModelProto, run: Completion) -> None:
    """Fold and type ``model`` in place: nodes in order, dead ones gone, every output static.

    Raises:
        MissingShapeError: a shape is missing and ``run.infer`` is false.
        ReadError: a shape depends on data, a trip count is unknown, a name is undefined or
            defined twice, or the graph has a cycle.
    """
    _complete_graph(model.graph, Scope(), run, "graph")


def _maps(mapping: MutableMapping) -> list[MutableMapping]:
    return mapping.maps if isinstance(mapping, ChainMap) else [mapping]


def _complete_graph(graph: onnx.GraphProto, scope: Scope, run: Completion, where: str) -> None:
    initial = {t.name: t for t in graph.initializer}
    for name, tensor in initial.items():
        _define_tensor(scope, name, tensor)
    for sparse in graph.sparse_initializer:
        kind = tensor_type(sparse.values.data_type, sparse.dims)
        scope.types[sparse.values.name] = kind
    declared = {v.name: v.type for v in (*graph.value_info, *graph.output)}
    for value in graph.input:
        if value.name not in initial and value.name not in scope.types:
            scope.types[value.name] = value.type
    drop_unread_results(graph)
    kept: list[onnx.NodeProto] = []
    for node in topological_nodes(graph, scope.types, where):
        with fitting(node):
            if not _visit(node, scope, declared, run):
                kept.append(node)
    for output in graph.output:
        if output.name not in scope.types:
            near = nearest(output.name, scope.types)
            raise ReadError(f"{where}: nothing defines the result {output.name!r}{near}")
    _rewrite(graph, live_nodes(graph, kept), initial, scope)


def _define_tensor(scope: Scope, name: str, tensor: onnx.TensorProto) -> None:
    scope.types[name] = tensor_type(tensor.data_type, tensor.dims)
    array = small_value(tensor)
    if array is not None:
        scope.constants[name] = array


def _visit(
    node: onnx.NodeProto, scope: Scope, declared: dict[str, onnx.TypeProto], run: Completion
) -> bool:
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
    found = {o: declared[o] for o in node.output if o in declared and _is_static(declared[o])}
    if any(o and o not in found for o in node.output):
        found = _infer(node, scope, run, found)
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


def _is_static(kind: onnx.TypeProto) -> bool:
    return static_shape(kind) is not None


def _infer(
    node: onnx.NodeProto, scope: Scope, run: Completion, found: dict[str, onnx.TypeProto]
) -> dict[str, onnx.TypeProto]:
    if not run.infer:
        raise MissingShapeError(f"the shape of {node.output[0]!r} is missing")
    inferred, reason = _schema_types(node, scope, run)
    for name in node.output:
        if name and name not in found and name in inferred and _is_static(inferred[name]):
            found[name] = inferred[name]
    for i, name in enumerate(node.output):
        if name and name not in found:
            found[name] = _bounded_type(node, i, scope, run, inferred.get(name), reason)
    return found


def _schema_types(
    node: onnx.NodeProto, scope: Scope, run: Completion
) -> tuple[dict[str, onnx.TypeProto], str]:
    domain = "" if node.domain == "ai.onnx" else node.domain
    types = {i: scope.types[i] for i in node.input if i}
    try:
        schema = onnx.defs.get_schema(node.op_type, run.opsets.get(domain, 1), domain)
    except onnx.defs.SchemaError:
        return infer_without_schema(node, types), "no schema for this operator"
    data = {
        i: numpy_helper.from_array(scope.constants[i], i)
        for i in node.input
        if i in scope.constants and scope.constants[i].dtype != object
    }
    imports = [onnx.helper.make_opsetid(d, v) for d, v in run.opsets.items()]
    try:
        infer = onnx.shape_inference.infer_node_outputs
        return infer(schema, node, types, data, opset_imports=imports), ""
    except Exception as error:  # onnx raises InferenceError, ValueError and RuntimeError here
        return {}, str(error).strip().split("\n")[0]


def _bounded_type(
    node: onnx.NodeProto,
    output: int,
    scope: Scope,
    run: Completion,
    partial: onnx.TypeProto | None,
    reason: str,
) -> onnx.TypeProto:
    """Bound a shape that depends on data by its largest possible value, or raise."""
    first = scope.types.get(node.input[0]) if node.input else None
    shape = static_shape(first) if first is not None else None
    bound = _largest_shape(node, shape, scope, partial) if shape is not None else None
    if bound is None and run.unknown_as_bytes and first is not None and node.domain:
        run.notes.append(f"{node.op_type}: result {node.output[output]!r} sized as its first input")
        return first
    if bound is None:
        what = f"operator {node.op_type} {node.name!r} ({node.doc_string})"
        raise ReadError(
            f"{what}: the shape of its result {node.output[output]!r} is not in the file and "
            f"cannot be inferred{': ' + reason if reason else ' (it depends on data)'}"
        )
    run.notes.append(
        f"{node.op_type}: the shape of {node.output[output]!r} depends on data; "
        f"its upper bound {list(bound)} is used"
    )
    element = element_type(partial) if partial is not None else 0
    return tensor_type(element or element_type(first or onnx.TypeProto()), bound)


def _largest_shape(
    node: onnx.NodeProto, shape: tuple[int, ...], scope: Scope, partial: onnx.TypeProto | None
) -> tuple[int, ...] | None:
    elements = math.prod(shape)
    axis = next((a.i for a in node.attribute if a.name == "axis"), None)
    match node.op_type:
        case "NonZero":
            return (len(shape), elements)
        case "NonMaxSuppression":
            return (_most_boxes(node, shape, scope), 3)
        case "Compress" | "Unique":
            return shape if axis is not None and partial is not None else (elements,)
    return None


def _most_boxes(node: onnx.NodeProto, boxes: tuple[int, ...], scope: Scope) -> int:
    scores = static_shape(scope.types[node.input[1]]) or (1, 1, 0)
    limit = boxes[1]
    if len(node.input) > 2 and node.input[2] in scope.constants:
        limit = min(limit, int(scope.constants[node.input[2]].reshape(-1)[0]))
    return scores[0] * scores[1] * limit


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
    own_constants = _maps(scope.constants)[0]
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
