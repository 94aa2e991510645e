"""Types of one node's results where the file does not have them: inferred, bounded or guessed.

ONNX's own inference is asked, with the values of constants at hand; operators without a schema and
those of ``ai.onnx.ml`` have rules of their own. Sizes that values decide get their largest one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
import onnx
from onnx import numpy_helper

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.model_options import option
from go_rl.graphs.readers.onnx.costs.operators import RULES
from go_rl.graphs.readers.onnx.dimensions import COUNTED
from go_rl.graphs.readers.onnx.scope import Completion, FileFacts, MissingShapeError, Scope
from go_rl.graphs.readers.onnx.shapes.guesses import guessed_type
from go_rl.graphs.readers.onnx.shapes.microsoft import as_first_operand, infer_without_schema
from go_rl.graphs.readers.onnx.shapes.ml import ML_DOMAIN, ml_result_types
from go_rl.graphs.readers.onnx.shapes.unknown_values import why_shape_unknown
from go_rl.graphs.readers.onnx.structure import DEFAULT_DOMAINS
from go_rl.graphs.readers.onnx.values import (
    element_type,
    is_static,
    partial_shape,
    static_shape,
    tensor_type,
)

NO_SCHEMA = "no schema for this operator"


def result_types(
    node: onnx.NodeProto,
    scope: Scope,
    run: Completion,
    facts: FileFacts,
    stated: Mapping[str, onnx.TypeProto],
) -> dict[str, onnx.TypeProto]:
    """Return a static type for every result of ``node``.

    Args:
        node: its operands are typed.
        scope: types and values before it.
        run: settings; findings are added.
        facts: declarations of the file.
        stated: static types that the file states for its results. They come first where
            ``run.trust_file``, else after what is inferred.

    Raises:
        MissingShapeError: one is missing, and ``run.infer`` is false.
        ReadError: one cannot be inferred.
    """
    if not run.infer:
        raise MissingShapeError(f"the shape of {node.output[0]!r} is missing")
    found = dict(stated) if run.trust_file else {}
    inferred, reason = _schema_types(node, scope, run)
    for i, name in enumerate(node.output):
        if not name or name in found:
            continue
        partial = inferred.get(name) or facts.types.get(name)
        if name in inferred and is_static(inferred[name]):
            found[name] = inferred[name]
        elif bound := _bounded_type(node, i, scope, run, partial):
            found[name] = bound
        elif name in stated and reason in ("", NO_SCHEMA):
            found[name] = stated[name]
            run.notes.append(
                f"{node.op_type}: the shape of {name!r} does not follow from its operands; "
                f"{list(static_shape(stated[name]) or ())} is used, as the file states"
            )
        else:
            found[name] = _guessed(node, i, scope, run, facts, partial, reason)
    return found


def _schema_types(
    node: onnx.NodeProto, scope: Scope, run: Completion
) -> tuple[dict[str, onnx.TypeProto], str]:
    """Return the types that a rule or ONNX's inference gives, and its refusal, if any."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    types = {i: scope.types[i] for i in node.input if i}
    if domain == ML_DOMAIN and (found := ml_result_types(node, types)):
        return found, ""
    if not domain and node.op_type == "MaxUnpool" and (shape := _third_operand(node, scope)):
        return {node.output[0]: tensor_type(element_type(types[node.input[0]]), shape)}, ""
    schema = _inferring_schema(node.op_type, run.opsets.get(domain, 1), domain)
    if schema is None:
        return infer_without_schema(node, types), NO_SCHEMA
    if schema.deprecated or not schema.has_type_and_shape_inference_function:
        return as_first_operand(node, types), ""
    data = {
        i: numpy_helper.from_array(scope.constants[i], i)
        for i in node.input
        if i in scope.constants and scope.constants[i].dtype != object
    }
    imports = [onnx.helper.make_opsetid(d, v) for d, v in run.opsets.items()]
    try:
        infer = onnx.shape_inference.infer_node_outputs
        return infer(
            schema, _for_inference(node, schema, types), types, data, opset_imports=imports
        ), ""
    except Exception as error:  # onnx raises InferenceError, ValueError and RuntimeError here
        return {}, str(error).strip().split("\n")[0]


def _third_operand(node: onnx.NodeProto, scope: Scope) -> tuple[int, ...]:
    """The size that a `MaxUnpool` states, which ONNX's inference overlooks; empty: none."""
    stated = scope.constants.get(node.input[2]) if len(node.input) > 2 else None
    return () if stated is None else tuple(int(size) for size in stated.reshape(-1))


def _inferring_schema(op: str, version: int, domain: str) -> onnx.defs.OpSchema | None:
    """Return the schema of an operator, or of its next version, that infers shapes.

    Some versions infer none: those of operator set 1, and single later ones. A later version gives
    their shapes, as far as its attributes are the same. None: ONNX has no schema.
    """
    version = max(version, _CLARIFIED.get(op, version) if not domain else version)
    try:
        own = onnx.defs.get_schema(op, version, domain)
    except onnx.defs.SchemaError:
        return None
    schema, newest = own, onnx.defs.onnx_opset_version() if not domain else version
    while not schema.has_type_and_shape_inference_function and version < newest:
        version += 1
        schema = onnx.defs.get_schema(op, version, domain)
    return schema if schema.has_type_and_shape_inference_function else own


def _for_inference(
    node: onnx.NodeProto, schema: onnx.defs.OpSchema, types: Mapping[str, onnx.TypeProto]
) -> onnx.NodeProto:
    """Return ``node`` with the attributes of ``schema``, and with defaults that ONNX overlooks."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node)
    del copy.attribute[:]
    copy.attribute.extend(a for a in node.attribute if a.name in schema.attributes)
    if node.op_type == "ConvTranspose" and any(a.s.startswith(b"SAME") for a in node.attribute):
        _state_same_size(copy, *(static_shape(types[i]) or () for i in node.input[:2]))
    for name, default in _OVERLOOKED_DEFAULTS.get(node.op_type, {}).items():
        if all(a.name != name for a in node.attribute):
            copy.attribute.append(onnx.helper.make_attribute(name, default))
    return copy


def _state_same_size(node: onnx.NodeProto, shape: Sequence[int], weight: Sequence[int]) -> None:
    """Give a `ConvTranspose` the ``output_shape`` that ``SAME_*`` means: the input times the
    stride, or what kernel and ``output_padding`` reach where that is less."""
    given = {a.name: list(a.ints) for a in node.attribute}
    ones = [1] * len(shape[2:])
    if "output_shape" in given or not ones or len(weight) != len(shape):
        return
    strides, dilations = given.get("strides", ones), given.get("dilations", ones)
    added = given.get("output_padding", [0 for _ in ones])
    axes = zip(shape[2:], weight[2:], strides, dilations, added, strict=True)
    size = [min(n * s, (n - 1) * s + (k - 1) * d + 1 + more) for n, k, s, d, more in axes]
    node.attribute.append(onnx.helper.make_attribute("output_shape", size))


_CLARIFIED = {"AveragePool": 22, "LpPool": 22, "MaxPool": 22}
"""Operators of which a later version says what all versions do: a window that ``ceil_mode`` adds is
left out if it starts behind the data, in PyTorch and ONNX Runtime as well."""
_OVERLOOKED_DEFAULTS = {"STFT": {"onesided": 1}}
"""Attributes whose defaults in the standard ONNX's shape inference does not apply."""


def _bounded_type(
    node: onnx.NodeProto, output: int, scope: Scope, run: Completion, partial: onnx.TypeProto | None
) -> onnx.TypeProto | None:
    """Bound a shape that values decide by its largest one; None: it has no bound."""
    first = scope.types.get(node.input[0]) if node.input else None
    shape = static_shape(first) if first is not None else None
    bound = _largest_shape(node, output, shape, scope, run) if shape is not None else None
    if bound is None:
        return None
    run.notes.append(
        f"{node.op_type}: the shape of {node.output[output]!r} depends on values; "
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
    why, way = why_shape_unknown(node, scope) if open_ended else (reason, "")
    known = partial_shape(partial) if partial is not None else None
    if not why:
        sizes = "no shape" if known is None else f"[{', '.join(_size(n) for n in known)}]"
        why = reason or f"ONNX's inference gives {sizes} for it"
    raise ReadError(
        f"operator {node.op_type} {node.name!r} ({node.doc_string}): the shape of its result "
        f"{name!r} is not in the file and cannot be inferred: {why}"
        f"{_way_out(node, way) if open_ended else ''}"
    )


def _size(known: int | None) -> str:
    return "?" if known is None else str(known)


def _way_out(node: onnx.NodeProto, way: str) -> str:
    if node.op_type in COUNTED:
        count = f"{node.name or node.output[0]}{COUNTED[node.op_type]}=<count>"
        return f"; give it with {option('--dim', count)}"
    given = f"; give it with {way}, or guess" if way else "; guess"
    return f"{given} it from the operator's neighbours with --unknown bytes"


def _largest_shape(
    node: onnx.NodeProto, output: int, shape: tuple[int, ...], scope: Scope, run: Completion
) -> tuple[int, ...] | None:
    elements = math.prod(shape)
    axis = next((a.i for a in node.attribute if a.name == "axis"), None)
    match node.op_type:
        case "NonZero":
            return (len(shape), elements)
        case "NonMaxSuppression":
            return (_most_boxes(node, shape, scope), 3)
        case "Compress":
            return _compressed(shape, axis, scope.constants.get(node.input[1]))
        case "Unique":
            if axis is not None and output == 0:
                return shape
            return (elements if axis is None else shape[axis],)  # one number a unique part
        case "StringNormalizer":
            return shape
        case "StringSplit" | "Tokenizer":
            words = run.trips.get(node.name or node.output[0])
            return None if words is None else (*shape, words)
    return None


def _compressed(
    shape: tuple[int, ...], axis: int | None, condition: np.ndarray | None
) -> tuple[int, ...]:
    """At most as many parts as there are, and as there are places set in a known condition."""
    size = math.prod(shape) if axis is None else shape[axis]
    picked = size if condition is None else int(condition.reshape(-1)[:size].sum())
    if axis is None:
        return (picked,)
    axis %= len(shape)
    return (*shape[:axis], picked, *shape[axis + 1 :])


def _most_boxes(node: onnx.NodeProto, boxes: tuple[int, ...], scope: Scope) -> int:
    scores = static_shape(scope.types[node.input[1]]) or (1, 1, 0)
    limit = boxes[1]
    if len(node.input) > 2 and node.input[2] in scope.constants:
        limit = min(limit, int(scope.constants[node.input[2]].reshape(-1)[0]))
    return scores[0] * scores[1] * limit
