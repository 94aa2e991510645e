"""Assumptions of the reader about an ONNX file, checked once when the file is loaded.

Protobuf only ensures that fields are of the right wire type. The rules here ensure that names are
text, attributes match their type, operators have the operands, results and attributes that ONNX
requires, subgraphs have the inputs and results that their operator gives them, and stored arrays
have a size that a machine can address.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import onnx
import onnx.defs

from go_rl.core.errors import ReadError

MOST_ELEMENTS = 1 << 62
"""Elements of the largest tensor that is taken for one."""
MOST_DIMENSIONS = 64
"""Dimensions of the largest tensor; NumPy's limit, too."""
RESERVED = "go_rl_"
"""Begins the names of attributes that this reader adds itself."""
BRANCH = "go_rl_branch"
"""Attribute of a completed `If`: the branch that is counted."""
BATCHED = "go_rl_batched"
"""Attribute of a `Scan` before opset 9, whose operands and results have the batch as first axis;
its first operand, the lengths of the sequences, is taken off."""
TRIPS = "go_rl_trips"
"""Attribute of a completed `Loop`, `Scan` or `SequenceMap`: how often each of its bodies runs."""
BODY_OF = "go_rl_body_"
"""Begins the attributes of a completed `SequenceMap`: its body for elements of one shape."""
DEFAULT_DOMAINS = ("", "ai.onnx")
_VARIADIC = (1 << 31) - 1
"""ONNX's number for operands without a limit."""
_Attribute = onnx.AttributeProto
_HELD = {_Attribute.GRAPH: "g", _Attribute.TENSOR: "t", _Attribute.SPARSE_TENSOR: "sparse_tensor"}
"""Attribute types that must have a message, and its field."""
_ATTRIBUTE_TYPES = frozenset(_Attribute.AttributeType.values())
_ELEMENT_TYPES = frozenset(onnx.TensorProto.DataType.values())
_CONSTANTS = {
    "value": _Attribute.TENSOR, "sparse_value": _Attribute.SPARSE_TENSOR,
    "value_float": _Attribute.FLOAT, "value_floats": _Attribute.FLOATS,
    "value_int": _Attribute.INT, "value_ints": _Attribute.INTS,
    "value_string": _Attribute.STRING, "value_strings": _Attribute.STRINGS,
}  # fmt: skip
"""Attributes that a `Constant` may have, and their types."""


def check_structure(model: onnx.ModelProto, where: str) -> None:
    """Raise a `ReadError` that names the node, tensor or attribute that breaks a rule.

    Args:
        model: every attribute has a type, every node its place as ``doc_string``.
        where: begins every message.
    """
    for imported in model.opset_import:
        _text(imported.domain, f"{where}: the domain of an operator set")
        if not 0 < imported.version < 1 << 31:
            raise ReadError(
                f"{where}: operator set {imported.domain or 'ai.onnx'!r} has version "
                f"{imported.version}; versions begin at 1"
            )
    for function in model.functions:
        for text in (function.name, function.domain, *function.input, *function.output):
            _text(text, f"{where}: a name of a function")
        _check_nodes(function.node, _versions(function.opset_import), where)
    opsets = _versions(model.opset_import)
    for graph in graphs(model):
        _check_graph(graph, opsets, where)


def graphs(model: onnx.ModelProto) -> Iterator[onnx.GraphProto]:
    """Yield the graph of a model and those that its nodes hold, at any depth."""
    stack = [model.graph]
    while stack:
        graph = stack.pop()
        yield graph
        stack += [a.g for node in graph.node for a in node.attribute if a.HasField("g")]


def data_inputs(graph: onnx.GraphProto) -> list[onnx.ValueInfoProto]:
    """Return the inputs of a graph that are no weights."""
    weights = {t.name for t in graph.initializer}
    return [value for value in graph.input if value.name not in weights]


def _versions(imported: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    return {_domain(each.domain): each.version for each in imported}


def _domain(name: str) -> str:
    return "" if name in DEFAULT_DOMAINS else name


def _check_graph(graph: onnx.GraphProto, opsets: Mapping[str, int], where: str) -> None:
    for value in (*graph.input, *graph.output, *graph.value_info):
        if not _text(value.name, f"{where}: the name of an input, result or tensor"):
            raise ReadError(f"{where}: an input or result of graph {graph.name!r} has no name")
        for dim in value.type.tensor_type.shape.dim:
            _text(dim.dim_param, f"{where}: {value.name!r}: the name of a dimension")
    for tensor in graph.initializer:
        check_tensor(tensor, f"{where}: initializer")
    for sparse in graph.sparse_initializer:
        check_tensor(sparse.values, f"{where}: sparse initializer")
        check_size(sparse.dims, f"{where}: sparse initializer {sparse.values.name!r}")
    _check_nodes(graph.node, opsets, where)


def _check_nodes(nodes: Iterable[onnx.NodeProto], opsets: Mapping[str, int], where: str) -> None:
    for node in nodes:
        here = f"{where}: {node.doc_string}"
        for text in (node.op_type, node.name, node.domain, *node.input, *node.output):
            _text(text, f"{here}: a name")
        if not node.op_type:
            raise ReadError(f"{here}: node {node.name!r} has no op_type")
        here = f"{where}: {node.op_type} {node.name!r} ({node.doc_string})"
        if not any(node.output):
            raise ReadError(f"{here}: the operator has no result")
        _check_attributes(node, here)
        rule = _RULES.get(node.op_type) if node.domain in DEFAULT_DOMAINS else None
        if rule is not None:
            rule(node, {a.name: a for a in node.attribute}, here)
        else:
            domain = _domain(node.domain)
            _check_signature(node, _signature(node.op_type, opsets.get(domain, 1), domain), here)


@dataclass(frozen=True)
class _Signature:
    """What a node of one operator must have."""

    operands: tuple[int, int]
    """Fewest and most operands."""
    most_results: int
    """Most results; files leave out those that nothing reads."""
    required: tuple[bool, ...]
    """Whether an operand may not be left out, by position."""
    attributes: tuple[str, ...]
    """Names of the attributes without a default."""
    version: int
    """Operator set of the file."""


@functools.cache
def _signature(op: str, version: int, domain: str) -> _Signature | None:
    """Signature of an operator in an operator set; None: ONNX does not define it there."""
    try:
        schema = onnx.defs.get_schema(op, version, domain)
    except onnx.defs.SchemaError:
        return None
    single = onnx.defs.OpSchema.FormalParameterOption.Single
    return _Signature(
        (schema.min_input, schema.max_input),
        schema.max_output,
        tuple(each.option == single for each in schema.inputs),
        tuple(name for name, each in schema.attributes.items() if each.required),
        version,
    )


def _check_signature(node: onnx.NodeProto, wanted: _Signature | None, where: str) -> None:
    if wanted is None:
        return
    for what, count, (least, most) in (
        ("operands", len(node.input), wanted.operands),
        ("results", len(node.output), (0, wanted.most_results)),
    ):
        if not least <= count <= most:
            allowed = "or more" if most >= _VARIADIC else f"to {most}"
            raise ReadError(
                f"{where}: {what}: {count}; in operator set {wanted.version} there are "
                f"{most if most == least else f'{least} {allowed}'}"
            )
    for position, (name, required) in enumerate(zip(node.input, wanted.required, strict=False)):
        if required and not name:
            raise ReadError(f"{where}: operand {position} is left out, and is required")
    given = {attribute.name for attribute in node.attribute}
    for name in wanted.attributes:
        if name not in given:
            raise ReadError(f"{where}: attribute {name!r} is missing, and is required")


def _check_attributes(node: onnx.NodeProto, where: str) -> None:
    seen: set[str] = set()
    for attribute in node.attribute:
        name = _text(attribute.name, f"{where}: the name of an attribute")
        _text(attribute.ref_attr_name, f"{where}: attribute {name!r}: a name")
        if name in seen or name.startswith(RESERVED):
            raise ReadError(f"{where}: attribute {name!r} appears twice, or is go_rl's own")
        seen.add(name)
        if attribute.type not in _ATTRIBUTE_TYPES:
            raise ReadError(f"{where}: attribute {name!r} has the unknown type {attribute.type}")
        field = _HELD.get(attribute.type)
        if field and not attribute.HasField(field) and not attribute.ref_attr_name:
            raise ReadError(f"{where}: attribute {name!r} is a {field} by its type and has none")
        if attribute.HasField("g") and attribute.type != _Attribute.GRAPH:
            raise ReadError(f"{where}: attribute {name!r} holds a graph, but is of another type")
        if attribute.HasField("t"):
            check_tensor(attribute.t, f"{where}: attribute {name!r}:")


def check_tensor(tensor: onnx.TensorProto, where: str) -> None:
    """Raise a `ReadError` for a stored array of an unknown type, or of an impossible size."""
    _text(tensor.name, f"{where}: its name")
    where = f"{where} {tensor.name!r}"
    if tensor.data_type not in _ELEMENT_TYPES:
        raise ReadError(f"{where} is of the unknown element type {tensor.data_type}")
    check_size(tensor.dims, where)


def check_size(shape: Iterable[int], where: str) -> None:
    """Raise a `ReadError` for a shape with a negative extent, or of an impossible size."""
    dims = tuple(shape)
    if len(dims) > MOST_DIMENSIONS:
        raise ReadError(f"{where} has {len(dims)} dimensions; at most {MOST_DIMENSIONS} are read")
    if any(extent < 0 for extent in dims) or math.prod(dims) > MOST_ELEMENTS:
        raise ReadError(f"{where} has shape {list(dims)}, which no tensor can have")


def describe(node: onnx.NodeProto) -> str:
    """Return ``Conv 'conv1' (graph.node[12])`` for messages."""
    return f"{node.op_type} {node.name or node.output[0]!r} ({node.doc_string})"


def counted_bodies(node: onnx.NodeProto) -> list[tuple[int, onnx.GraphProto]]:
    """Return how often each body of a completed node runs; empty for one without bodies."""
    trips = next((list(a.ints) for a in node.attribute if a.name == TRIPS), [])
    bodies = [a.g for a in node.attribute if a.HasField("g") and len(a.g.output)]
    return list(zip(trips, bodies, strict=bool(trips)))


@contextmanager
def fitting(node: onnx.NodeProto) -> Iterator[None]:
    """Turn what an operator raises whose operands or attributes do not fit it into a `ReadError`
    that names it."""
    try:
        yield
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        StopIteration,
        TypeError,
        ValueError,
    ) as e:
        raise ReadError(
            f"{describe(node)}: its operands and attributes do not fit the operator "
            f"({type(e).__name__}: {e})"
        ) from e


def _text(text: object, what: str) -> str:
    """Protobuf hands out bytes where a text is not UTF-8."""
    if not isinstance(text, str):
        raise ReadError(f"{what} is {text!r}, which is not UTF-8")
    return text


_Attributes = dict[str, onnx.AttributeProto]


def _check_constant(node: onnx.NodeProto, attributes: _Attributes, where: str) -> None:
    named = [a for a in node.attribute if a.name in _CONSTANTS]
    if len(named) != 1 or len(node.attribute) != 1:
        raise ReadError(f"{where}: a Constant has one attribute, one of {', '.join(_CONSTANTS)}")
    if named[0].type != _CONSTANTS[named[0].name]:
        raise ReadError(f"{where}: attribute {named[0].name!r} is not of the type its name says")
    if named[0].HasField("sparse_tensor"):
        check_tensor(named[0].sparse_tensor.values, f"{where}: attribute 'sparse_value':")
        check_size(named[0].sparse_tensor.dims, f"{where}: attribute 'sparse_value'")


def _body(attributes: _Attributes, name: str, where: str) -> onnx.GraphProto:
    if name not in attributes or not attributes[name].HasField("g"):
        raise ReadError(f"{where}: the operator has no graph {name!r}")
    return attributes[name].g


def _check_count(what: str, count: int, wanted: int, where: str) -> None:
    if count != wanted:
        raise ReadError(f"{where}: {what}: {count}; the operator's own make it {wanted}")


def _check_results(read: int, made: int, carried: int, where: str) -> None:
    if made < max(read, carried):
        raise ReadError(f"{where}: its body has {made} results; {max(read, carried)} are wanted")


def _check_if(node: onnx.NodeProto, attributes: _Attributes, where: str) -> None:
    if not node.input or not node.input[0]:
        raise ReadError(f"{where}: the operator has no condition")
    for name in ("then_branch", "else_branch"):
        branch = _body(attributes, name, where)
        _check_count(f"results of {name}", len(branch.output), len(node.output), where)


def _check_loop(node: onnx.NodeProto, attributes: _Attributes, where: str) -> None:
    body, state = _body(attributes, "body", where), len(node.input) - 2
    if state < 0 or not all(node.input[2:]):
        raise ReadError(f"{where}: a Loop reads a trip count, a condition and its first state")
    _check_count("inputs of its body", len(body.input), state + 2, where)
    _check_results(len(node.output) + 1, len(body.output), state + 1, where)


def _check_scan(node: onnx.NodeProto, attributes: _Attributes, where: str) -> None:
    body = _body(attributes, "body", where)
    scanned = attributes["num_scan_inputs"].i if "num_scan_inputs" in attributes else 0
    if len(node.input) == len(body.input) + 1:  # before opset 9: lengths, and a batch of sequences
        del node.input[0]
        node.attribute.append(onnx.helper.make_attribute(BATCHED, 1))
    if not 1 <= scanned <= len(node.input) or not all(node.input):
        raise ReadError(f"{where}: num_scan_inputs is {scanned} of {len(node.input)} operands")
    _check_count("inputs of its body", len(body.input), len(node.input), where)
    carried = len(node.input) - scanned
    _check_results(len(node.output), len(body.output), carried, where)
    for name, wanted in (
        ("scan_input_axes", scanned),
        ("scan_output_axes", len(body.output) - carried),
    ):
        if name in attributes:
            _check_count(f"axes in {name}", len(attributes[name].ints), wanted, where)


def _check_map(node: onnx.NodeProto, attributes: _Attributes, where: str) -> None:
    body = _body(attributes, "body", where)
    if not node.input or not all(node.input):
        raise ReadError(f"{where}: a SequenceMap reads a sequence first, and leaves none out")
    _check_count("inputs of its body", len(body.input), len(node.input), where)
    _check_count("results of its body", len(body.output), len(node.output), where)


_RULES = {
    "Constant": _check_constant,
    "If": _check_if,
    "Loop": _check_loop,
    "Scan": _check_scan,
    "SequenceMap": _check_map,
}
"""Further requirements of single operators."""
