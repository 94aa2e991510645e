"""The FlatBuffer of a LiteRT model as data: tensors and operators of its first subgraph.

Numbers of fields are those of ``tensorflow/compiler/mlir/lite/schema/schema.fbs``, version 3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

from flatbuffers import number_types
from flatbuffers.table import Table

from go_rl.core.errors import ReadError
from go_rl.core.graph.element_type import ElementType
from go_rl.graphs.readers.cost import Tensor
from go_rl.graphs.readers.file_errors import read_bytes
from go_rl.graphs.readers.tflite.operators import BUILTIN

CUSTOM = "CUSTOM"
MOST_ELEMENTS = 1 << 62
TYPES = {
    0: ElementType.FLOAT32, 1: ElementType.FLOAT16, 2: ElementType.INT32, 3: ElementType.INT8,
    4: ElementType.INT64, 6: ElementType.BOOL, 7: ElementType.INT16, 8: ElementType.COMPLEX64,
    9: ElementType.INT8, 10: ElementType.FLOAT64, 11: ElementType.COMPLEX128,
    12: ElementType.INT64, 15: ElementType.INT32, 16: ElementType.INT16, 17: ElementType.INT4,
    18: ElementType.BFLOAT16,
}  # fmt: skip
"""Element types by `TensorType`; text and handles have none."""


DAMAGED = (struct.error, ArithmeticError, LookupError, TypeError, ValueError)
"""Errors that damaged tables raise, when they are parsed and when options are read."""


def damage(error: Exception) -> str:
    """Return what is wrong with a file, by an error that its damaged tables raised."""
    if isinstance(error, struct.error | TypeError):  # flatbuffers: "bad number -3 for type uint32"
        return "an offset leads out of the file"
    return "an index is out of range" if isinstance(error, LookupError) else str(error)


@contextmanager
def reading_part(name: str) -> Iterator[None]:
    """Name the part of the file whose tables are damaged, in a `ReadError`."""
    try:
        yield
    except DAMAGED as error:
        raise ReadError(f"{name}: cut off or damaged ({damage(error)})") from error


class Options:
    """Fields of a table of FlatBuffers by number, such as the attributes of an operator."""

    def __init__(self, table: Table | None) -> None:
        self.table = table

    def number(self, field: int, default: int = 0) -> int:
        """Return a 32-bit number."""
        return self._get(field, number_types.Int32Flags, default)

    def byte(self, field: int) -> int:
        """Return a number of one byte, or a truth."""
        return self._get(field, number_types.Uint8Flags, 0)

    def long(self, field: int) -> int:
        """Return an unsigned 64-bit number; 0 where it is left out."""
        return self._get(field, number_types.Uint64Flags, 0)

    def _get(self, field: int, flags: Any, default: int) -> int:
        place = self._offset(field)
        return default if self.table is None or not place else self.table.Get(
            flags, self.table.Pos + place
        )  # fmt: skip

    def _offset(self, field: int) -> int:
        return 0 if self.table is None else self.table.Offset(4 + 2 * field)

    def text(self, field: int) -> str:
        """Return a text; empty where it is left out."""
        place = self._offset(field)
        if self.table is None or not place:
            return ""
        return self.table.String(self.table.Pos + place).decode("utf-8", "replace")

    def numbers(self, field: int) -> list[int]:
        """Return a vector of 32-bit numbers."""
        start, count = self._vector(field)
        if self.table is None or 4 * count > len(self.table.Bytes):
            return []
        return list(struct.unpack_from(f"<{count}i", self.table.Bytes, start))

    def length(self, field: int) -> int:
        """Return the entries of a vector; 0 where it is left out."""
        return self._vector(field)[1]

    def tables(self, field: int) -> Iterator[Options]:
        """Yield the tables in a vector."""
        start, count = self._vector(field)
        if self.table is None or 4 * count > len(self.table.Bytes):
            return
        for i in range(count):
            yield Options(Table(self.table.Bytes, self.table.Indirect(start + 4 * i)))

    def _vector(self, field: int) -> tuple[int, int]:
        place = self._offset(field)
        if self.table is None or not place:
            return 0, 0
        return self.table.Vector(place), self.table.VectorLen(place)

    def inner(self, field: int) -> Options:
        """Return a table inside; one without fields where it is left out."""
        place = self._offset(field)
        if self.table is None or not place:
            return Options(None)
        return Options(Table(self.table.Bytes, self.table.Indirect(self.table.Pos + place)))


@dataclass(frozen=True)
class TfliteTensor:
    """A tensor of a subgraph."""

    name: str
    type: Tensor
    buffer: int
    stored: bool
    """Whether the file holds its numbers."""


@dataclass(frozen=True)
class TfliteOperator:
    """An operator; operands that are left out are -1."""

    name: str
    """Name in the schema, such as ``CONV_2D``; that of a custom one after ``CUSTOM:``."""
    inputs: Sequence[int]
    outputs: Sequence[int]
    options: Options


@dataclass(frozen=True)
class TfliteModel:
    """The first subgraph of a model."""

    tensors: Sequence[TfliteTensor]
    operators: Sequence[TfliteOperator]
    inputs: Sequence[int]
    outputs: Sequence[int]
    signatures: Sequence[str]
    """Names of inputs whose first size is open; the file states one."""


def read_tflite_file(path: Path) -> TfliteModel:
    """Parse a model.

    Raises:
        ReadError: the file cannot be read, is damaged, or has no subgraph.
    """
    content = read_bytes(path)
    try:
        return _parsed(content)
    except ReadError as error:
        raise ReadError(f"{path}: {error}") from error


def _parsed(content: bytes) -> TfliteModel:
    with reading_part("start of the model"):
        root = Options(Table(content, struct.unpack_from("<I", content)[0]))
        subgraph = next(root.tables(2), None)
    if subgraph is None:
        raise ReadError("a LiteRT model without a subgraph")
    with reading_part("buffers"):
        held = [buffer.length(0) > 0 or buffer.long(2) > 1 for buffer in root.tables(4)]
    with reading_part("tensors"):
        tensors = [_tensor(each, i, held) for i, each in enumerate(subgraph.tables(0))]
        shapes = [each.numbers(7) for each in subgraph.tables(0)]
    with reading_part("operators"):
        codes = [_operator_name(code) for code in root.tables(1)]
        operators = [
            TfliteOperator(codes[op.number(0)], op.numbers(1), op.numbers(2), op.inner(4))
            for op in subgraph.tables(3)
        ]
    with reading_part("inputs and outputs"):
        inputs, outputs = subgraph.numbers(1), subgraph.numbers(2)
        opened = [tensors[i].name for i in inputs if any(size < 0 for size in shapes[i])]
    return TfliteModel(tensors, operators, inputs, outputs, opened)


def _operator_name(code: Options) -> str:
    number = max(code.byte(0), code.number(3))
    if number >= len(BUILTIN):
        return f"BUILTIN:{number}"
    name = BUILTIN[number]
    return f"{CUSTOM}:{code.text(1)}" if name == CUSTOM else name


def _tensor(each: Options, number: int, held: Sequence[bool]) -> TfliteTensor:
    shape, name = tuple(each.numbers(0)), each.text(3) or f"tensor{number}"
    if any(extent < 0 for extent in shape) or prod(shape) > MOST_ELEMENTS:
        raise ReadError(f"tensor {name!r} has shape {list(shape)}, which no tensor can have")
    element = TYPES.get(each.byte(1), ElementType.UNKNOWN)
    kind = Tensor(shape, element.bits / 8, element)
    buffer = each.number(2)
    return TfliteTensor(name, kind, buffer, 0 < buffer < len(held) and held[buffer])
