"""Types of one node's results where the file does not have them: inferred, bounded or guessed.

ONNX's own inference is asked, with the values of constants at hand; operators without a schema and
those of ``ai.onnx.ml`` have rules of their own. Sizes that depend on data get their largest value.
"""

from __future__ import annotations

import math

import onnx
from onnx import numpy_helper

from go_rl.core.errors import ReadError
from go_rl.readers.onnx.costs.operators import RULES
from go_rl.readers.onnx.load import COUNTED
from go_rl.readers.onnx.scope import Completion, FileFacts, MissingShapeError, Scope
from go_rl.readers.onnx.shapes.guesses import guessed_type
from go_rl.readers.onnx.shapes.microsoft import infer_without_schema
from go_rl.readers.onnx.shapes.ml import ML_DOMAIN, ml_result_types
from go_rl.readers.onnx.structure import DEFAULT_DOMAINS
from go_rl.readers.onnx.types import element_type, is_static, static_shape, tensor_type

NO_SCHEMA = "no schema for this operator"


def result_types(
    node: onnx.NodeProto,
    scope: Scope,
    run: Completion,
    facts: FileFacts,
    found: dict[str, onnx.TypeProto],
) -> dict[str, onnx.TypeProto]:
    """Return a static type for every result of ``node``, adding to those ``found`` in the file.

    Raises:
        MissingShapeError: one is missing, and ``run.infer`` is false.
        ReadError: one cannot be inferred.
    """
    if not run.infer:
        raise MissingShapeError(f"the shape of {node.output[0]!r} is missing")
    inferred, reason = _schema_types(node, scope, run)
    for name in node.output:
        if name and name not in found and name in inferred and is_static(inferred[name]):
            found[name] = inferred[name]
    for i, name in enumerate(node.output):
        if name and name not in found:
            partial = inferred.get(name) or facts.types.get(name)
            found[name] = _bounded_type(node, i, scope, run, partial) or _guessed(
                node, i, scope, run, facts, partial, reason
            )
    return found


def _schema_types(
    node: onnx.NodeProto, scope: Scope, run: Completion
) -> tuple[dict[str, onnx.TypeProto], str]:
    domain = "" if node.domain == "ai.onnx" else node.domain
    types = {i: scope.types[i] for i in node.input if i}
    if domain == ML_DOMAIN and (found := ml_result_types(node, types)):
        return found, ""
    try:
        schema = onnx.defs.get_schema(node.op_type, run.opsets.get(domain, 1), domain)
    except onnx.defs.SchemaError:
        return infer_without_schema(node, types), NO_SCHEMA
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
) -> onnx.TypeProto | None:
    """Bound a shape that depends on data by its largest possible value; None: it has no bound."""
    first = scope.types.get(node.input[0]) if node.input else None
    shape = static_shape(first) if first is not None else None
    bound = _largest_shape(node, shape, scope, partial, run) if shape is not None else None
    if bound is None:
        return None
    run.notes.append(
        f"{node.op_type}: the shape of {node.output[output]!r} depends on data; "
        f"its upper bound {list(bound)} is used"
    )
    element = element_type(partial) if partial is not None else 0
    return tensor_type(element or element_type(first or onnx.TypeProto()), bound)


def _guessed(
    node: onnx.NodeProto,
    output: int,
    scope: Scope,
    run: Completion,
    facts: FileFacts,
    partial: onnx.TypeProto | None,
    reason: str,
) -> onnx.TypeProto:
    """Guess a type where the user asked for that and the model is not known to be wrong."""
    name = node.output[output]
    kind = node.op_type if node.domain in DEFAULT_DOMAINS else f"{node.domain}.{node.op_type}"
    open_ended = reason in ("", NO_SCHEMA)
    unsure = open_ended or kind not in RULES or not run.uncertain.isdisjoint(node.input)
    if run.unknown_as_bytes and unsure:
        run.guessed[name] = kind
        run.uncertain.add(name)
        readers = facts.readers.get(name, ())
        return guessed_type(name, node, scope.types, partial, readers, facts.types)
    raise ReadError(
        f"operator {node.op_type} {node.name!r} ({node.doc_string}): the shape of its result "
        f"{name!r} is not in the file and cannot be inferred"
        f"{': ' + reason if reason else ' (it depends on data)'}"
        f"{_way_out(node) if open_ended else ''}"
    )


def _way_out(node: onnx.NodeProto) -> str:
    if node.op_type in COUNTED:
        return f"; give it with --dim {node.name or node.output[0]}{COUNTED[node.op_type]}=<count>"
    return "; guess it from the operator's neighbours with --unknown bytes"


def _largest_shape(
    node: onnx.NodeProto,
    shape: tuple[int, ...],
    scope: Scope,
    partial: onnx.TypeProto | None,
    run: Completion,
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
        case "StringNormalizer":
            return shape
        case "StringSplit" | "Tokenizer":
            words = run.trips.get(node.name or node.output[0])
            return None if words is None else (*shape, words)
    return None


def _most_boxes(node: onnx.NodeProto, boxes: tuple[int, ...], scope: Scope) -> int:
    scores = static_shape(scope.types[node.input[1]]) or (1, 1, 0)
    limit = boxes[1]
    if len(node.input) > 2 and node.input[2] in scope.constants:
        limit = min(limit, int(scope.constants[node.input[2]].reshape(-1)[0]))
    return scores[0] * scores[1] * limit
