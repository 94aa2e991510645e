"""Loading an ONNX file without its weights' data, and binding its symbolic dimensions."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx import external_data_helper

from go_rl.core.errors import ReadError, nearest
from go_rl.readers.model_options import Inputs
from go_rl.readers.onnx.call import itemsize
from go_rl.readers.onnx.structure import check_structure, data_inputs, graphs

KEPT_BYTES = 8192
"""Larger constants keep their header (name, type, shape) only; nothing reads their data."""
TRIPS_SUFFIX = ".trips"
"""``<loop name>.trips`` names the trip count of a `Loop` among the dimensions."""
TOKENS_SUFFIX = ".tokens"
"""``<node name>.tokens`` names the longest row of words that text is split into."""
COUNTED = {"Loop": TRIPS_SUFFIX, "StringSplit": TOKENS_SUFFIX, "Tokenizer": TOKENS_SUFFIX}
"""Operators with a count that depends on data, and how its dimension's name ends."""


def load_header(path: str | Path) -> onnx.ModelProto:
    """Read the ONNX file at ``path``; bulky weights are dropped, their headers stay.

    External weight files need not exist.

    Raises:
        ReadError: the file is absent, empty, truncated or not an ONNX model.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ReadError(f"{path}: cannot be read ({error.strerror or error})") from None
    if not data:
        raise ReadError(f"{path}: the file is empty; an ONNX model is wanted")
    try:
        model = onnx.load_model_from_string(data)
    except (DecodeError, ValueError) as error:
        raise ReadError(
            f"{path}: not an ONNX model, or cut off ({str(error).strip().splitlines()[0]})"
        ) from None
    copy = light_copy(model, str(path))
    _load_small_external(copy, path.parent)
    return copy


def light_copy(model: onnx.ModelProto, name: str) -> onnx.ModelProto:
    """Return a copy of ``model`` with its bulky constants reduced to headers.

    Every node's ``doc_string`` becomes the place where it stood, such as ``graph.node[12]``.

    Raises:
        ReadError: the model has no version, no operators, or no operator set.
    """
    if model.ir_version <= 0 or not model.HasField("graph"):
        raise ReadError(f"{name}: not an ONNX model (it has no ir_version or no graph)")
    if not model.graph.node:
        raise ReadError(f"{name}: the ONNX graph has no nodes; at least one is needed")
    copy = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    copy.functions.extend(model.functions)
    for function in copy.functions:
        _mark_places(function.node, f"function {function.name}")
    source = model.graph
    copy.graph.name = "graph"
    for field in ("node", "input", "output", "value_info", "sparse_initializer"):
        getattr(copy.graph, field).extend(getattr(source, field))
    copy.graph.initializer.extend(_light_tensor(t) for t in source.initializer)
    _mark_places(copy.graph.node, "graph")
    for value in copy.graph.input:
        _spread_map(value.type)
    if not copy.opset_import:
        copy.opset_import.append(onnx.helper.make_opsetid("", 1))
    check_structure(copy, name)
    return copy


def bind_dims(model: onnx.ModelProto, dims: Mapping[str, int], name: str) -> dict[str, int]:
    """Replace symbolic dimensions in ``model`` by ``dims``; return the counts among them.

    Counts are trips of loops and lengths of rows of words, by name of the node.

    A dimension without a name is called ``<input>_<axis>``.

    Raises:
        ReadError: a dimension has no size, a name in ``dims`` is unknown, or a size is not
            positive.
    """
    for dim, size in dims.items():
        if size < 1:
            raise ReadError(f"{name}: dimension {dim!r} must be at least 1, not {size}")
    _shape_rankless(model.graph, dims)
    symbols = _input_symbols(model.graph, name)
    nodes = [n for g in graphs(model) for n in g.node if n.op_type in COUNTED]
    counted = {(n.name or n.output[0]) + COUNTED[n.op_type]: n.name or n.output[0] for n in nodes}
    allowed = {*symbols, *counted}
    for dim in dims:
        if dim not in allowed:
            known = ", ".join(sorted(symbols)) or "none"
            raise ReadError(
                f"{name}: the model has no dimension {dim!r} (it has: {known})"
                f"{nearest(dim, allowed)}"
            )
    missing = [dim for dim in symbols if dim not in dims]
    if missing:
        wanted = "; ".join(f"{dim!r} of {symbols[dim]}" for dim in missing)
        flags = " ".join(f"--dim {dim}=<size>" for dim in missing)
        shapes = " ".join(f"--input {shape}" for shape in _open_inputs(model.graph))
        raise ReadError(
            f"{name}: dimensions without a size: {wanted}; give {flags}, or whole shapes: {shapes}"
        )
    _substitute(model, dims)
    return {counted[dim]: count for dim, count in dims.items() if dim in counted}


def dims_of_inputs(
    model: onnx.ModelProto,
    inputs: Inputs,
    dims: Mapping[str, int],
    name: str,
) -> dict[str, int]:
    """Return ``dims`` with those that the shapes of ``inputs`` give.

    Raises:
        ReadError: no such input (the nearest is named), a shape of another rank than the model's,
            or two sizes of one dimension.
    """
    known = {v.name: v for v in data_inputs(model.graph)}
    found = dict(dims)
    for title, shape in inputs.items():
        if title not in known:
            raise ReadError(
                f"{name}: the model has no input {title!r} (it has: {', '.join(known)})"
                f"{nearest(title, known)}"
            )
        dimensions = _dimensions(known[title].type)
        if dimensions is not None and len(dimensions) != len(shape):
            raise ReadError(
                f"{name}: input {title!r} has {len(dimensions)} dimensions, not the {len(shape)} "
                f"of {'x'.join(map(str, shape))}"
            )
        for axis, size in enumerate(shape):
            _bind_axis(found, dimensions, title, (axis, size), name)
    return found


def _bind_axis(
    found: dict[str, int],
    dimensions: list[onnx.TensorShapeProto.Dimension] | None,
    title: str,
    given: tuple[int, int],
    name: str,
) -> None:
    """Set the size of one axis of an input, unless the file or another input contradicts it."""
    axis, size = given
    dim = onnx.TensorShapeProto.Dimension() if dimensions is None else dimensions[axis]
    fixed = dim.dim_value if dim.HasField("dim_value") and dim.dim_value >= 0 else None
    symbol = dim.dim_param or f"{title}_{axis}"
    known = found.get(symbol, size) if fixed is None else fixed
    if known != size:
        why = "in the file" if fixed is not None else f"as dimension {symbol!r}"
        raise ReadError(
            f"{name}: input {title!r}, axis {axis}: its size is {known} {why}, and {size} was given"
        )
    if fixed is None:
        found[symbol] = size


def _light_tensor(tensor: onnx.TensorProto) -> onnx.TensorProto:
    elements = math.prod(tensor.dims)
    if elements * 8 <= KEPT_BYTES:
        return tensor
    return onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=tensor.dims)


def _mark_places(nodes: Any, place: str) -> None:
    stack = [(nodes, place)]
    while stack:
        nodes, place = stack.pop()
        for i, node in enumerate(nodes):
            node.doc_string = f"{place}.node[{i}]"
            for attribute in node.attribute:
                if not attribute.type:
                    attribute.type = _guessed_type(attribute)
                if attribute.HasField("g"):
                    stack.append((attribute.g.node, f"{node.doc_string}.{attribute.name}"))


def _guessed_type(attribute: onnx.AttributeProto) -> Any:
    """Return the type of an attribute in the oldest files, which do not store it."""
    fields = ("f", "i", "s", "t", "g", "floats", "ints", "strings", "tensors", "graphs")
    present = {descriptor.name for descriptor, _ in attribute.ListFields()}
    return next((n for n, name in enumerate(fields, start=1) if name in present), 7)


def _load_small_external(model: onnx.ModelProto, folder: Path) -> None:
    for tensor in model.graph.initializer:
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            if all(entry.key != "length" for entry in tensor.external_data):
                # Whatever else the file holds, however long it is, belongs to others.
                length = math.ceil(math.prod(tensor.dims) * itemsize(tensor.data_type))
                tensor.external_data.add(key="length", value=str(length))
            try:
                with warnings.catch_warnings(action="ignore"):
                    external_data_helper.load_external_data_for_tensor(tensor, str(folder))
                tensor.data_location = onnx.TensorProto.DEFAULT
            except Exception:  # an absent data file only costs some folding of shapes
                continue


def _spread_map(kind: onnx.TypeProto) -> None:
    """Make a map, in place, the tensor of its values; a sequence of them one with a row each."""
    rows = kind.HasField("sequence_type") and kind.sequence_type.elem_type.HasField("map_type")
    inner = kind.sequence_type.elem_type if rows else kind
    if inner.HasField("map_type"):
        element = inner.map_type.value_type.tensor_type.elem_type
        axes = [None, None] if rows else [None]
        kind.CopyFrom(onnx.helper.make_tensor_type_proto(element, axes))


def _dimensions(kind: onnx.TypeProto) -> list[onnx.TensorShapeProto.Dimension] | None:
    if kind.HasField("sequence_type"):
        kind = kind.sequence_type.elem_type
    elif kind.HasField("optional_type"):
        kind = kind.optional_type.elem_type
    if not kind.HasField("tensor_type") or not kind.tensor_type.HasField("shape"):
        return None
    return list(kind.tensor_type.shape.dim)


def _input_symbols(graph: onnx.GraphProto, name: str) -> dict[str, str]:
    """Name every symbolic dimension of the inputs in place; return where each first occurs."""
    symbols: dict[str, str] = {}
    for value in data_inputs(graph):
        dimensions = _dimensions(value.type)
        if dimensions is None:
            raise ReadError(
                f"{name}: input {value.name!r} has no shape, not even a rank; give it with --input "
                f"{value.name}=<size>x<size>, or export the model with the shapes of its inputs"
            )
        for axis, dim in enumerate(dimensions):
            if dim.HasField("dim_value") and dim.dim_value >= 0:
                continue
            dim.dim_param = dim.dim_param or f"{value.name}_{axis}"
            symbols.setdefault(dim.dim_param, f"input {value.name!r} (axis {axis})")
    return symbols


def _shape_rankless(graph: onnx.GraphProto, dims: Mapping[str, int]) -> None:
    """Give inputs without a rank the dimensions ``<input>_0``, ``<input>_1``, … that are known."""
    for value in graph.input:
        if not value.type.HasField("tensor_type") or value.type.tensor_type.HasField("shape"):
            continue
        axes = next(n for n in count() if f"{value.name}_{n}" not in dims)
        for axis in range(axes):
            value.type.tensor_type.shape.dim.add(dim_param=f"{value.name}_{axis}")


def _open_inputs(graph: onnx.GraphProto) -> list[str]:
    """Return ``x=<batch>x224`` for each input with a symbolic dimension."""
    shapes = []
    for value in data_inputs(graph):
        dimensions = _dimensions(value.type) or []
        if any(d.dim_param for d in dimensions):
            sizes = (f"<{d.dim_param}>" if d.dim_param else str(d.dim_value) for d in dimensions)
            shapes.append(f"{value.name}={'x'.join(sizes)}")
    return shapes


def _substitute(model: onnx.ModelProto, dims: Mapping[str, int]) -> None:
    for graph in graphs(model):
        for value in (*graph.input, *graph.output, *graph.value_info):
            for dim in _dimensions(value.type) or ():
                if dim.dim_param in dims:
                    dim.dim_value = dims[dim.dim_param]
