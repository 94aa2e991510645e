"""`check_tuples`: a single text in place of a tuple, which Python reads letter by letter."""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from go_rl.core.errors import GoRLError


def check_tuples(configuration: Any, where: str, error: type[GoRLError], /) -> None:
    """Raise an error that names the first field of a tuple that holds no tuple and no list.

    Args:
        configuration: a dataclass; its fields of tuples of tuples are looked into as well.
        where: begins the message.
        error: raised.
    """
    for name, nested in _tuple_fields(type(configuration)).items():
        value = getattr(configuration, name)
        if value is None:
            continue
        check_tuple(value, f"{where}: {name}", error)
        for i, inner in enumerate(value if nested else ()):
            check_tuple(inner, f"{where}: {name}[{i}]", error)


def check_tuple(value: object, what: str, error: type[GoRLError]) -> None:
    """Raise an error for a value that is no tuple and no list; ``what`` begins the message."""
    if not isinstance(value, tuple | list):
        such = f" such as ({value!r},)" if isinstance(value, str) else ""
        raise error(f"{what} must be a tuple{such}, not {value!r}")


@cache
def _tuple_fields(kind: type[Any]) -> dict[str, bool]:
    """Fields that take nothing but a tuple or None, and whether it is one of tuples."""
    hints = get_type_hints(kind)
    found: dict[str, bool] = {}
    for field in fields(kind):
        hint = hints[field.name]
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        own = [each for each in kinds if each is not type(None)]
        if all(get_origin(each) is tuple for each in own):
            found[field.name] = any(get_origin(get_args(each)[0]) is tuple for each in own)
    return found
