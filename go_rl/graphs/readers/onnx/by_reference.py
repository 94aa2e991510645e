"""`load_by_reference`: an ONNX file read without the bytes of its arrays.

The file is walked as protobuf writes it (https://protobuf.dev/programming-guides/encoding), and an
array in it becomes what ONNX calls external data: a reference to its place in that very file.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from pathlib import Path

import onnx
from google.protobuf.message import DecodeError, Message

from go_rl.core.errors import ReadError

GRAPH = onnx.ModelProto.DESCRIPTOR.fields_by_name["graph"].number
INITIALIZER = onnx.GraphProto.DESCRIPTOR.fields_by_name["initializer"].number
RAW_DATA = onnx.TensorProto.DESCRIPTOR.fields_by_name["raw_data"].number
SMALL_BYTES = 1 << 14
"""Arrays up to this size are read."""
VARINT, FIXED_64, DELIMITED, FIXED_32 = 0, 1, 2, 5
"""Wire types."""
_Span = tuple[int, int]


def load_by_reference(path: Path) -> onnx.ModelProto:
    """Read the ONNX file at ``path``; stored arrays of its main graph stay where they are.

    Raises:
        ReadError: the file is absent, truncated or not an ONNX model.
    """
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _model(data, path.name)
    except OSError as error:
        raise ReadError(f"{path}: cannot be read ({error.strerror or error})") from None
    except (DecodeError, IndexError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise ReadError(f"{path}: not an ONNX model, or cut off ({reason})") from None


def _model(data: mmap.mmap, name: str) -> onnx.ModelProto:
    model, graphs = onnx.ModelProto(), list[_Span]()
    _split(data, (0, len(data)), GRAPH, model, graphs)
    for span in graphs:  # one, unless the file was put together from parts
        graph, arrays = onnx.GraphProto(), list[_Span]()
        _split(data, span, INITIALIZER, graph, arrays)
        graph.initializer.extend(_tensor(data, each, name) for each in arrays)
        model.graph.MergeFrom(graph)
    return model


def _tensor(data: mmap.mmap, span: _Span, name: str) -> onnx.TensorProto:
    tensor, held = onnx.TensorProto(), list[_Span]()
    _split(data, span, RAW_DATA, tensor, held)
    for begin, end in held:
        if end - begin <= SMALL_BYTES or tensor.data_location == onnx.TensorProto.EXTERNAL:
            tensor.raw_data = data[begin:end]
            continue
        tensor.data_location = onnx.TensorProto.EXTERNAL
        for key, value in (("location", name), ("offset", begin), ("length", end - begin)):
            tensor.external_data.add(key=key, value=str(value))
    return tensor


def _split(data: mmap.mmap, span: _Span, field: int, rest: Message, found: list[_Span]) -> None:
    """Give ``rest`` all of a message but one field; note where the values of that one lie."""
    kept = bytearray()
    for number, begin, content, end in _fields(data, span):
        if number == field:
            found.append((content, end))
        else:
            kept += data[begin:end]
    rest.MergeFromString(bytes(kept))


def _fields(data: mmap.mmap, span: _Span) -> Iterator[tuple[int, int, int, int]]:
    """Yield number, begin, begin of the content, and end of each field of a message."""
    at, end = span
    while at < end:
        begin = at
        key, at = _varint(data, at)
        content, wire = at, key & 7
        if wire == VARINT:
            _, at = _varint(data, at)
        elif wire == DELIMITED:
            size, content = _varint(data, at)
            at = content + size
        elif wire in (FIXED_64, FIXED_32):
            at += 8 if wire == FIXED_64 else 4
        else:
            raise ValueError(f"wire type {wire} at byte {begin}")
        if at > end:
            raise ValueError(f"the field at byte {begin} ends behind its message")
        yield key >> 3, begin, content, at


def _varint(data: mmap.mmap, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, lowest first, and the place behind it."""
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7
