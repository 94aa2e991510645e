"""`CompiledStruct`: arrays and scalars that compiled functions take as one pointer.

Numba passes a tuple of arrays by value, seven machine words an array, and counts a reference to
each array at each use. A solver with 40 arrays and 30 functions spends most of its compilation,
and much of its running time, on that. A `CompiledStruct` is passed as the address of a table; code
reads ``st.domain`` from it as an array that counts no references.

`compiled` compiles a function that allocates nothing: without Numba's reference counts it compiles
and runs faster. What it needs as scratch comes from the caller.
"""

from __future__ import annotations

import inspect
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from llvmlite import ir
from numba import from_dtype, njit, types
from numba.core import cgutils
from numba.core.typing.templates import AttributeTemplate
from numba.extending import (
    NativeValue,
    infer_getattr,
    lower_getattr_generic,
    models,
    register_model,
    unbox,
)
from numba.np.arrayobj import make_array, populate_array

F = TypeVar("F", bound=Callable[..., Any])
S = TypeVar("S", bound="CompiledStruct")

SCALARS = {int: np.int64, float: np.float64, bool: np.bool_}
"""Annotations of scalar fields, and their types in a compiled function."""
WORD = ir.IntType(64)


def compiled(function: F) -> F:
    """Compile a function that allocates no array and returns none."""
    rules: dict[str, Any] = {"error_model": "numpy", "_nrt": False, "no_cfunc_wrapper": True}
    dispatcher: Any = njit(cache=True, nogil=True, **rules)(function)
    return dispatcher


@dataclass(frozen=True)
class Field:
    """One field as compiled functions see it."""

    name: str
    dtype: np.dtype
    ndim: int
    """Number of dimensions; 0: a scalar."""
    slot: int
    """Place in the table: the scalar itself, or the address and then the shape."""
    sizes: tuple[str, ...] = ()
    """Names of the dimensions, or numbers."""


class StructType(types.Type):
    """Numba's type of one `CompiledStruct` class."""

    def __init__(self, name: str, fields: tuple[Field, ...]) -> None:
        self.fields = {field.name: field for field in fields}
        layout = ", ".join(f"{f.name}: {f.dtype}[{f.ndim}]" for f in fields)
        super().__init__(f"CompiledStruct({name}: {layout})")


class CompiledStruct:
    """Base of frozen dataclasses that compiled functions take as one pointer.

    A field is annotated ``int``, ``float`` or ``bool``, or as jaxtyping's array of one dtype with
    named dimensions. An array is made C-contiguous and of that dtype; where it is so already, what
    compiled code writes reaches it. A struct is as fixed as a tuple: `dataclasses.replace` makes
    another.
    """

    _numba_type_: ClassVar[StructType]
    _address: int
    _table: np.ndarray

    def __init_subclass__(cls) -> None:
        annotations = inspect.get_annotations(cls, eval_str=True)
        cls._numba_type_ = StructType(cls.__qualname__, _fields(annotations))

    @classmethod
    def zeros(cls: type[S], sizes: Mapping[str, int], **given: Any) -> S:
        """Return a struct of zeros.

        Args:
            sizes: dimensions by the names that the annotations give them.
            given: fields with other contents; scalars must be among them.

        Raises:
            ValueError: a dimension has no size.
        """
        empty: dict[str, Any] = {
            field.name: np.zeros([cls._size(field, n, sizes) for n in field.sizes], field.dtype)
            for field in cls._numba_type_.fields.values()
            if field.ndim and field.name not in given
        }
        return cls(**empty, **given)

    @classmethod
    def _size(cls, field: Field, dimension: str, sizes: Mapping[str, int]) -> int:
        if dimension.isdigit():
            return int(dimension)
        if dimension not in sizes:
            raise ValueError(f"{cls.__name__}.{field.name}: no size of dimension {dimension!r}")
        return sizes[dimension]

    def __post_init__(self) -> None:
        words: list[int] = []
        for field in self._numba_type_.fields.values():
            words += self._words(field)
        table = np.array(words, np.int64)
        object.__setattr__(self, "_table", table)
        object.__setattr__(self, "_address", _address_of(table))

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), tuple(getattr(self, name) for name in self._numba_type_.fields)

    def _words(self, field: Field) -> list[int]:
        """Return the words of the table for a field.

        Raises:
            ValueError: an array has other dimensions than annotated.
        """
        value = getattr(self, field.name)
        if field.ndim == 0:
            return [_bits(value) if field.dtype == np.float64 else int(value)]
        array = np.ascontiguousarray(value, field.dtype)
        if array.ndim != field.ndim:
            raise ValueError(
                f"{type(self).__name__}.{field.name} has {array.ndim} dimensions, not {field.ndim}"
            )
        if array is not value:
            object.__setattr__(self, field.name, array)
        return [_address_of(array), *array.shape]


def _address_of(array: np.ndarray) -> int:
    return array.__array_interface__["data"][0]


def _bits(number: float) -> int:
    """Return the bits of a float as a signed word."""
    return struct.unpack("q", struct.pack("d", number))[0]


def _fields(annotations: dict[str, Any]) -> tuple[Field, ...]:
    fields, slot = [], 0
    for name, kind in annotations.items():
        if kind in SCALARS:
            fields.append(Field(name, np.dtype(SCALARS[kind]), 0, slot))
        else:
            sizes = tuple(kind.dim_str.split())
            fields.append(Field(name, np.dtype(kind.dtypes[0]), len(sizes), slot, sizes))
        slot += 1 + fields[-1].ndim
    return tuple(fields)


@register_model(StructType)
class _StructModel(models.PrimitiveModel):
    def __init__(self, manager: Any, struct: StructType) -> None:
        super().__init__(manager, struct, WORD.as_pointer())


@unbox(StructType)
def _unbox(_: StructType, value: Any, c: Any) -> NativeValue:
    number = c.pyapi.object_getattr_string(value, "_address")
    address = c.pyapi.long_as_longlong(number)
    c.pyapi.decref(number)
    return NativeValue(c.builder.inttoptr(address, WORD.as_pointer()))


@infer_getattr
class _StructAttribute(AttributeTemplate):
    key = StructType

    def generic_resolve(self, struct: StructType, attr: str) -> types.Type | None:
        field = struct.fields.get(attr)
        if field is None:
            return None
        dtype = from_dtype(field.dtype)
        return types.Array(dtype, field.ndim, "C") if field.ndim else dtype


@lower_getattr_generic(StructType)
def _getattr(context: Any, builder: Any, struct: StructType, table: Any, attr: str) -> Any:
    field = struct.fields[attr]
    words = [_load(builder, table, field.slot + i) for i in range(1 + field.ndim)]
    dtype = from_dtype(field.dtype)
    if field.ndim == 0:
        return _scalar(context, builder, words[0], dtype)
    kind = types.Array(dtype, field.ndim, "C")
    array = make_array(kind)(context, builder)
    item, shape = field.dtype.itemsize, words[1:]
    strides = [ir.Constant(WORD, item)]
    for size in reversed(shape[1:]):
        strides.insert(0, builder.mul(strides[0], size))
    populate_array(
        array,
        data=builder.inttoptr(words[0], array.data.type),
        shape=cgutils.pack_array(builder, shape),
        strides=cgutils.pack_array(builder, strides),
        itemsize=ir.Constant(WORD, item),
        meminfo=None,
    )
    return array._getvalue()


def _load(builder: Any, table: Any, slot: int) -> Any:
    """Load a word of the table, which no compiled function changes."""
    word = builder.load(builder.gep(table, [ir.Constant(WORD, slot)]))
    word.set_metadata("invariant.load", builder.module.add_metadata([]))
    return word


def _scalar(context: Any, builder: Any, word: Any, dtype: types.Type) -> Any:
    if dtype == types.boolean:
        return builder.icmp_unsigned("!=", word, ir.Constant(WORD, 0))
    if dtype == types.float64:
        return builder.bitcast(word, ir.DoubleType())
    return word
