"""The program in a ``.pt2`` archive as checked data: graph, signature, stored arrays.

Source: ``torch/_export/serde/schema.py``. A field that a later minor version adds is not read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from go_rl.core.errors import ReadError
from go_rl.core.files.strict_json import shown
from go_rl.core.graph.element_type import ElementType
from go_rl.graphs.readers.model_options import LARGEST_SIZE
from go_rl.graphs.readers.torch.program.symbols import Size, hinted_symbol, plain

MAJOR_VERSION = 8
"""Major version of the schema that is read; another one breaks the format."""
TYPES = {
    **dict.fromkeys((1, 2), ElementType.INT8), **dict.fromkeys((3, 28), ElementType.INT16),
    **dict.fromkeys((4, 34), ElementType.INT32), **dict.fromkeys((5, 35), ElementType.INT64),
    6: ElementType.FLOAT16, 7: ElementType.FLOAT32, 8: ElementType.FLOAT64,
    10: ElementType.COMPLEX64, 11: ElementType.COMPLEX128, 12: ElementType.BOOL,
    13: ElementType.BFLOAT16, **dict.fromkeys((29, 30, 31, 32, 33), ElementType.FLOAT8),
}  # fmt: skip
"""Element types by number (``ScalarType``)."""
COMPLEX_HALF = 9
ITEMSIZE = {COMPLEX_HALF: 4.0, **{number: each.bits / 8 for number, each in TYPES.items()}}
"""Bytes of an element by number of the element type."""
WORDS: dict[type, str] = {dict: "an object", list: "a list", str: "a text", int: "a whole number"}


@dataclass(frozen=True)
class Ref:
    """A tensor, by name."""

    name: str


@dataclass(frozen=True)
class SymRef:
    """A number that is computed while the program runs, by name."""

    name: str


@dataclass(frozen=True)
class Argument:
    """An operand or result of an operator, or an input or output of a graph."""

    name: str
    """Parameter of the operator's schema; empty where it has none."""
    value: Any
    """`Ref`, `SymRef`, `TorchGraph`, number, text, None, or a list of them."""


@dataclass(frozen=True)
class TensorType:
    """Type of a tensor whose sizes may be symbolic."""

    element: int
    """Number of the element type."""
    sizes: tuple[Size, ...]
    strides: tuple[Size, ...]

    @property
    def itemsize(self) -> float:
        """Bytes of one element."""
        return ITEMSIZE[self.element]

    @property
    def type(self) -> ElementType:
        """Type of the elements; unknown of complex halves."""
        return TYPES.get(self.element, ElementType.UNKNOWN)


@dataclass(frozen=True)
class TorchNode:
    """One operator of a graph."""

    name: str
    target: str
    """Operator with its overload, such as ``torch.ops.aten.linear.default``."""
    inputs: tuple[Argument, ...]
    outputs: tuple[Any, ...]
    """`Ref`, `SymRef`, list of them or None, for each result."""
    metadata: Mapping[str, str]


@dataclass(frozen=True)
class TorchGraph:
    """A graph of operators in order of execution."""

    name: str
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]
    nodes: tuple[TorchNode, ...]
    tensors: Mapping[str, TensorType]
    numbers: Mapping[str, Size]
    """Whole numbers that the graph computes, by name."""


@dataclass(frozen=True)
class Spec:
    """Meaning of one input or output of the program."""

    kind: str
    """``parameter``, ``buffer``, ``tensor_constant``, ``user_input``, …; ``user_output``,
    ``loss_output``, ``gradient_to_parameter``, ``buffer_mutation``, …"""
    value: Any
    target: str
    """Name of the parameter or buffer in the user's module; empty where it is none."""


@dataclass(frozen=True)
class TorchProgram:
    """A program of `torch.export`."""

    graph: TorchGraph
    inputs: tuple[Spec, ...]
    outputs: tuple[Spec, ...]
    ranges: Mapping[str, tuple[int, int | None]]
    """Smallest and largest size of each symbol."""
    examples: Mapping[str, int]
    """Sizes of symbols in the inputs that the program was exported with, where they are known."""
    stored: Mapping[str, str] = field(default_factory=dict)
    """Array of the archive that holds a parameter, buffer or constant, by its name; names of one
    array are tied."""
    version: str = ""
    """Release of PyTorch that wrote it."""


def member(document: Any, key: str, kind: type, where: str) -> Any:
    """Return a field of an object; a `ReadError` says where it is missing or of another type."""
    if not isinstance(document, dict):
        raise ReadError(f"{where}: must be an object with a field {key!r}, not {shown(document)}")
    if key not in document:
        raise ReadError(f"{where}: field {key!r} is missing")
    return checked(document[key], kind, f"{where}: {key}")


def checked(value: Any, kind: type, where: str) -> Any:
    """Return a value of a type; a `ReadError` says where it is of another."""
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise ReadError(f"{where} must be {WORDS[kind]}, not {shown(value)}")
    return value


def one_of(document: Any, where: str) -> tuple[str, Any]:
    """Return the single field of a union, its name and value."""
    checked(document, dict, where)
    if len(document) != 1:
        raise ReadError(f"{where} must be an object with one field, not {shown(document)}")
    return next(iter(document.items()))


def size(document: Any, where: str) -> Size:
    """Return a size: a number, or the text of an expression."""
    form, value = one_of(document, where)
    if form == "as_expr":
        return plain(member(value, "expr_str", str, where))
    if form != "as_int":
        raise ReadError(f"{where}: a size is as_int or as_expr, not {shown(form)}")
    checked(value, int, where)
    if not -LARGEST_SIZE <= value <= LARGEST_SIZE:
        raise ReadError(f"{where} must be between -2^62 and 2^62, not {shown(value)}")
    return value


def tensor_type(document: Any, where: str) -> TensorType:
    """Return the type of a tensor."""
    number = member(document, "dtype", int, where)
    if number not in ITEMSIZE:
        raise ReadError(f"{where}: element type {number} is none of schema {MAJOR_VERSION}")
    sizes = [size(each, f"{where}: a size") for each in member(document, "sizes", list, where)]
    strides = [
        size(each, f"{where}: a stride") for each in member(document, "strides", list, where)
    ]
    for each in sizes:
        if isinstance(each, int) and each < 0:
            raise ReadError(f"{where}: a size must be 0 or more, not {each}")
    return TensorType(number, tuple(sizes), tuple(strides))


def examples_of(document: Any) -> dict[str, int]:
    """Return the sizes that symbols had in the example inputs, where sizes name them alone."""
    found: dict[str, int] = {}
    for tensor in document.values():
        for each in tensor.get("sizes", ()) if isinstance(tensor, dict) else ():
            symbol, hint = hinted_symbol(each)
            if symbol and hint is not None:
                found.setdefault(symbol, hint)
    return found
