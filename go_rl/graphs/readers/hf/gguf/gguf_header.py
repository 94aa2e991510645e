"""Header of a GGUF file: its metadata and the types of its tensors, which are not read.

``GGUF``, version, number of tensors, number of metadata; each metadatum: name, type, value; each
tensor: name, dimensions (the one that varies fastest first), type, offset. Little-endian; texts
with their length before them. Source: ``ggml/docs/gguf.md``.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from go_rl.core.errors import ReadError
from go_rl.graphs.readers.file_errors import read_bytes

MAGIC = b"GGUF"
LARGEST_HEADER = 1 << 26
"""Bytes of a header; vocabularies of 2^18 tokens have a quarter of it."""
MOST_TENSORS = 1 << 17
_VERSIONS = (2, 3)
_TEXT, _ARRAY, _BOOL = 8, 9, 7
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<B", 10: "<Q",
            11: "<q", 12: "<d"}  # fmt: skip
_BLOCKS = {
    0: (1, 4), 1: (1, 2), 2: (32, 18), 3: (32, 20), 6: (32, 22), 7: (32, 24), 8: (32, 34),
    9: (32, 36), 10: (256, 84), 11: (256, 110), 12: (256, 144), 13: (256, 176), 14: (256, 210),
    15: (256, 292), 16: (256, 66), 17: (256, 74), 18: (256, 98), 19: (256, 50), 20: (32, 18),
    21: (256, 110), 22: (256, 82), 23: (256, 136), 24: (1, 1), 25: (1, 2), 26: (1, 4), 27: (1, 8),
    28: (1, 8), 29: (256, 56), 30: (1, 2),
}  # fmt: skip
"""Elements and bytes of a block, by ``ggml_type``."""


@dataclass(frozen=True)
class StoredTensor:
    """A tensor in a file."""

    shape: tuple[int, ...]
    """Extents, the one that varies fastest last."""
    num_bytes: int

    @property
    def itemsize(self) -> float:
        """Bytes of one element, scales of its block included."""
        return self.num_bytes / max(1, prod(self.shape))


@dataclass(frozen=True)
class GgufHeader:
    """Header of a file: what comes before the tensors themselves."""

    metadata: dict[str, Any]
    """Values by name; of an array a text that says its length."""
    tensors: dict[str, StoredTensor]


def read_gguf_header(path: Path) -> GgufHeader:
    """Return the header of the file at ``path``.

    Raises:
        ReadError: cannot be read, truncated, damaged, or of a version or type that is not known.
    """
    content = read_bytes(path, LARGEST_HEADER)
    try:
        return _header(_Cursor(content, path))
    except (struct.error, UnicodeDecodeError) as error:
        raise ReadError(f"{path}: a truncated or damaged GGUF header ({error})") from error


class _Cursor:
    """A place in the content of a file."""

    def __init__(self, content: bytes, path: Path) -> None:
        self.content = content
        self.path = path
        self.place = len(MAGIC)

    def number(self, form: str) -> Any:
        begin = self.place
        self.skip(struct.calcsize(form))
        (found,) = struct.unpack_from(form, self.content, begin)
        return found

    def skip(self, size: int) -> None:
        if size > len(self.content) - self.place:
            raise struct.error(
                f"{size} bytes must follow byte {self.place}, and it has {len(self.content)}"
            )
        self.place += size

    def text(self) -> str:
        size = self.number("<Q")
        begin = self.place
        self.skip(size)
        return self.content[begin : self.place].decode()

    def wrong(self, what: str) -> ReadError:
        return ReadError(f"{self.path}: {what}")


def _header(cursor: _Cursor) -> GgufHeader:
    version = cursor.number("<I")
    if version not in _VERSIONS:
        raise cursor.wrong(f"GGUF version {version}; known are {', '.join(map(str, _VERSIONS))}")
    tensors, metadata = cursor.number("<Q"), cursor.number("<Q")
    if max(tensors, metadata) > MOST_TENSORS:
        raise cursor.wrong(f"a damaged header: {tensors} tensors and {metadata} metadata")
    values: dict[str, Any] = {}
    for _ in range(metadata):
        name = cursor.text()
        values[name] = _value(cursor, cursor.number("<I"), name)
    return GgufHeader(values, dict(_tensor(cursor) for _ in range(tensors)))


def _value(cursor: _Cursor, kind: int, name: str) -> Any:
    if kind == _TEXT:
        return cursor.text()
    if kind == _ARRAY:
        return _length(cursor, name)
    if kind not in _SCALARS:
        raise cursor.wrong(f"{name} has type {kind}, which GGUF does not have")
    found = cursor.number(_SCALARS[kind])
    return bool(found) if kind == _BOOL else found


def _length(cursor: _Cursor, name: str) -> str:
    """Pass an array and return how long it is."""
    kind, count = cursor.number("<I"), cursor.number("<Q")
    if kind == _TEXT:
        for _ in range(count):
            cursor.skip(cursor.number("<Q"))
    elif kind in _SCALARS:
        cursor.skip(count * struct.calcsize(_SCALARS[kind]))
    else:
        raise cursor.wrong(f"{name} is an array of type {kind}, which is not read")
    return f"an array of {count}"


def _tensor(cursor: _Cursor) -> tuple[str, StoredTensor]:
    name, rank = cursor.text(), cursor.number("<I")
    if not 1 <= rank <= 4:
        raise cursor.wrong(f"tensor {name!r} has {rank} dimensions; GGUF has 1 to 4")
    shape = tuple(cursor.number("<Q") for _ in range(rank))[::-1]
    kind = cursor.number("<I")
    cursor.number("<Q")
    if kind not in _BLOCKS:
        raise cursor.wrong(f"tensor {name!r} has type {kind}, which is not known")
    elements, size = _BLOCKS[kind]
    if shape[-1] % elements:
        raise cursor.wrong(f"tensor {name!r}: rows of {shape[-1]} are no blocks of {elements}")
    return name, StoredTensor(shape, prod(shape) // elements * size)
