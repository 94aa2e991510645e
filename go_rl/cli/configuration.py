"""Configurations as JSON objects, written and read strictly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_type_hints

from go_rl.core import GoRLError
from go_rl.core.errors import nearest

T = TypeVar("T")


def to_json(configuration: Any) -> dict[str, Any]:
    """Return any of these dataclasses as a JSON object."""
    return asdict(configuration)


def from_json(kind: type[T], document: Any, where: str = "configuration") -> T:
    """Read what `to_json` wrote.

    Raises:
        GoRLError: a field is unknown or missing, or holds what it cannot; the field is named.
    """
    if not isinstance(document, Mapping):
        raise GoRLError(f"{where}: must be a JSON object, not {document!r}")
    known = {f.name for f in fields(kind)}  # pyright: ignore[reportArgumentType]
    types = get_type_hints(kind)
    values: dict[str, Any] = {}
    for name, value in document.items():
        if name not in known:
            raise GoRLError(f"{where}: unknown field {name!r}{nearest(name, known)}")
        if is_dataclass(types[name]):
            value = from_json(types[name], value, f"{where}: {name}")  # pyright: ignore[reportArgumentType]
        _check_scalar(value, types[name], f"{where}: {name}")
        values[name] = _frozen(value)
    try:
        return kind(**values)
    except TypeError as error:
        raise GoRLError(f"{where}: {error}") from error


SCALARS: dict[Any, tuple[tuple[type, ...], str]] = {
    bool: ((bool,), "true or false"),
    int: ((int,), "a whole number"),
    float: ((int, float), "a number"),
    str: ((str,), "a text"),
    NoneType: ((NoneType,), "null"),
}
"""JSON types allowed for a field of each plain type."""


def _check_scalar(value: Any, hint: Any, where: str) -> None:
    """Refuse what is of none of the plain types of a field; other fields check their own."""
    kinds = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    if any(kind not in SCALARS for kind in kinds):
        return
    for kind in kinds:
        if isinstance(value, SCALARS[kind][0]) and (kind is bool or not isinstance(value, bool)):
            return
    wanted = " or ".join(SCALARS[kind][1] for kind in kinds)
    raise GoRLError(f"{where}: must be {wanted}, not {value!r}")


def _frozen(value: Any) -> Any:
    return tuple(_frozen(x) for x in value) if isinstance(value, list) else value
