"""Loading an ONNX file without its weights' data."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import onnx
from google.protobuf.message import DecodeError
from onnx import external_data_helper

from go_rl.core.errors import ReadError
from go_rl.core.files.paths import check_readable
from go_rl.graphs.readers.onnx.by_reference import load_by_reference
from go_rl.graphs.readers.onnx.call import itemsize
from go_rl.graphs.readers.onnx.structure import check_structure, graphs

WHOLE_BYTES = 1 << 26
"""Files up to this size are read at once."""
KEPT_BYTES = 8192
"""Larger constants keep their header (name, type, shape) only; nothing reads their data."""


def load_header(path: str | Path) -> onnx.ModelProto:
    """Read the ONNX file at ``path``; bulky weights are dropped, their headers stay.

    External weight files need not exist.

    Raises:
        ReadError: the file is absent, empty, truncated or not an ONNX model.
    """
    return header_of(load_frugally(path), Path(path))


def header_of(model: onnx.ModelProto, path: Path) -> onnx.ModelProto:
    """Return `light_copy` of the model in a file, with the data of small arrays in other files."""
    copy = light_copy(model, str(path))
    _load_small_external(copy, path.parent)
    return copy


def load_frugally(path: str | Path) -> onnx.ModelProto:
    """Read the ONNX file at ``path``, with its weights if it is small; those of a large one stay
    where they are, as those in other files do.

    Raises:
        ReadError: the file is absent, empty, truncated or not an ONNX model.
    """
    path = Path(path)
    large = path.is_file() and path.stat().st_size > WHOLE_BYTES
    return load_by_reference(path) if large else load_whole(path)


def load_whole(path: str | Path) -> onnx.ModelProto:
    """Read the ONNX file at ``path`` with its weights; those in other files stay there.

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
        return onnx.load_model_from_string(data)
    except (DecodeError, ValueError) as error:
        raise ReadError(
            f"{path}: not an ONNX model, or cut off ({str(error).strip().splitlines()[0]})"
        ) from None


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
    """Read the data of small arrays that lie in other files, wherever the model holds them."""
    for tensor in external_tensors(model):
        if math.prod(tensor.dims) * 8 <= KEPT_BYTES:
            _load_external(tensor, folder)


def external_tensors(model: onnx.ModelProto) -> Iterator[onnx.TensorProto]:
    """Yield the tensors whose data lie in other files, wherever the model holds them."""
    for graph in graphs(model):
        held = (a.t for node in graph.node for a in node.attribute if a.HasField("t"))
        for tensor in (*graph.initializer, *held):
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                yield tensor


def bound_external(tensor: onnx.TensorProto, folder: Path) -> None:
    """Have no more read of an external tensor's file than the tensor holds: what else is there,
    however long the model says that it is, belongs to others.

    Raises:
        OSError: the file is a pipe (`check_readable`).
    """
    others = [entry for entry in tensor.external_data if entry.key != "length"]
    length = math.ceil(math.prod(tensor.dims) * itemsize(tensor.data_type))
    del tensor.external_data[:]
    tensor.external_data.extend(others)
    tensor.external_data.add(key="length", value=str(length))
    for entry in others:
        if entry.key == "location":
            check_readable(folder / entry.value)


def _load_external(tensor: onnx.TensorProto, folder: Path) -> None:
    try:
        bound_external(tensor, folder)
        with warnings.catch_warnings(action="ignore"):
            external_data_helper.load_external_data_for_tensor(tensor, str(folder))
        tensor.data_location = onnx.TensorProto.DEFAULT
    except Exception:  # an absent file only costs some folding of shapes; `fold` says so
        return


def _spread_map(kind: onnx.TypeProto) -> None:
    """Make a map, in place, the tensor of its values; a sequence of them one with a row each."""
    rows = kind.HasField("sequence_type") and kind.sequence_type.elem_type.HasField("map_type")
    inner = kind.sequence_type.elem_type if rows else kind
    if inner.HasField("map_type"):
        element = inner.map_type.value_type.tensor_type.elem_type
        axes = [None, None] if rows else [None]
        kind.CopyFrom(onnx.helper.make_tensor_type_proto(element, axes))
