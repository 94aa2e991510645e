"""`from_json`: dataclasses from JSON by the types of their fields; an error names file and field.

Types that are read: bool, int, float, str, None, unions of these, enums of texts, `Literal`, other
dataclasses, ``tuple[X, ...]``, ``tuple[X, Y]``, ``Mapping[str, X]``, each of them or None, and Any,
which stays as it is. Values of other types are not checked; their lists become tuples.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import StrEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from go_rl.core.errors import GoRLError, nearest
from go_rl.core.files.strict_json import shown

T = TypeVar("T")
Reader = Callable[[Any, str, type[GoRLError]], Any]
"""Returns a value of its type; or raises the error, whose message begins with where it stands."""

SCALARS: Mapping[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a finite number"),
    str: ((str,), "a text"),
    NoneType: ((NoneType,), "null"),
}
"""JSON types allowed for a value of each plain type, and its words."""


def from_json(
    kind: type[T],
    document: Any,
    where: str,
    error: type[GoRLError] = GoRLError,
    complete: bool = False,
) -> T:
    """Return a dataclass whose fields a JSON object holds.

    Args:
        kind: the dataclass.
        document: parsed JSON.
        where: begins every message.
        error: raised.
        complete: whether fields that have defaults must be there as well.

    Raises:
        GoRLError: `error`: a field is unknown or missing, or holds what it cannot. Others come from
            the dataclass itself.
    """
    return _object_reader(kind, complete)(document, where, error)


def value_from_json(hint: Any, value: Any, where: str, error: type[GoRLError] = GoRLError) -> Any:
    """Return a single value of a type; see `from_json`."""
    return _reader(hint)(value, where, error)


@cache
def _object_reader(kind: type[Any], complete: bool) -> Reader:
    readers = {name: _reader(hint) for name, hint in get_type_hints(kind).items()}
    known = [field.name for field in fields(kind)]
    needed = [
        field.name
        for field in fields(kind)
        if complete or (field.default is MISSING and field.default_factory is MISSING)
    ]

    def read(document: Any, where: str, error: type[GoRLError]) -> Any:
        if not isinstance(document, Mapping):
            raise error(f"{where}: must be a JSON object, not {shown(document)}")
        for name in document:
            if name not in known:
                raise error(f"{where}: unknown field {shown(name)}{nearest(name, known)}")
        for name in needed:
            if name not in document:
                raise error(f"{where}: field {name!r} is missing")
        values = {
            name: readers[name](value, f"{where}: {name}", error)
            for name, value in document.items()
        }
        return kind(**values)

    return read


@cache
def _reader(hint: Any) -> Reader:
    origin, inner = get_origin(hint), get_args(hint)
    if hint is Any:
        return lambda value, where, error: value
    if hint in SCALARS or (_is_union(hint) and all(each in SCALARS for each in inner)):
        return _scalar_reader(inner or (hint,))
    if _is_union(hint) and NoneType in inner and len(inner) == 2:
        return _optional_reader(*(each for each in inner if each is not NoneType))
    if origin is Literal:
        return _choice_reader(inner, str)
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _choice_reader(list(hint), hint)
    if is_dataclass(hint):
        return _object_reader(hint, False)  # pyright: ignore[reportArgumentType]
    if origin is tuple:
        return _list_reader(inner)
    if origin is Mapping:
        return _mapping_reader(inner[1])
    return lambda value, where, error: _frozen(value)


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, UnionType)


def _scalar_reader(kinds: tuple[Any, ...]) -> Reader:
    wanted = " or ".join(SCALARS[kind][1] for kind in kinds)

    def read(value: Any, where: str, error: type[GoRLError]) -> Any:
        for kind in kinds:
            right = isinstance(value, SCALARS[kind][0])
            if not right or (isinstance(value, bool) and kind is not bool):
                continue
            if kind is not float:
                return value
            if abs(value) <= sys.float_info.max:  # neither NaN nor infinite, nor a larger integer
                return float(value)
        raise error(f"{where} must be {wanted}, not {shown(value)}")

    return read


def _optional_reader(hint: Any) -> Reader:
    inner = _reader(hint)
    return lambda value, where, error: None if value is None else inner(value, where, error)


def _choice_reader(choices: Collection[Any], made: Callable[[Any], Any]) -> Reader:
    def read(value: Any, where: str, error: type[GoRLError]) -> Any:
        if value not in choices:
            raise error(
                f"{where} must be one of {', '.join(choices)}, not {shown(value)}"
                f"{nearest(value, map(str, choices))}"
            )
        return made(value)

    return read


def _list_reader(inner: tuple[Any, ...]) -> Reader:
    endless = inner[-1] is Ellipsis
    first, readers = _reader(inner[0]), [_reader(each) for each in inner if each is not Ellipsis]

    def read(value: Any, where: str, error: type[GoRLError]) -> Any:
        if not isinstance(value, list | tuple) or not (endless or len(value) == len(readers)):
            wanted = "a list" if endless else f"a list of {len(readers)} entries"
            raise error(f"{where} must be {wanted}, not {shown(value)}")
        found = zip([first] * len(value) if endless else readers, value, strict=True)
        return tuple(each(x, f"{where}[{i}]", error) for i, (each, x) in enumerate(found))

    return read


def _mapping_reader(hint: Any) -> Reader:
    inner = _reader(hint)

    def read(value: Any, where: str, error: type[GoRLError]) -> Any:
        if not isinstance(value, Mapping):
            raise error(f"{where}: must be a JSON object, not {shown(value)}")
        return {name: inner(each, f"{where}: {name}", error) for name, each in value.items()}

    return read


def _frozen(value: Any) -> Any:
    return tuple(_frozen(each) for each in value) if isinstance(value, list) else value
