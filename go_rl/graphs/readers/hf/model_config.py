"""`ModelConfig`: the fields of a ``config.json``, checked as they are read."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from go_rl.core.errors import ReadError, nearest
from go_rl.core.files.strict_json import parse_json, shown
from go_rl.graphs.readers.file_errors import read_text

LARGEST_FIELD = 1 << 26
"""Largest size in a configuration; the largest vocabularies have 2^18 entries."""
SINCE_5 = {"num_experts": "num_local_experts"}
"""Names that transformers 5 writes in place of earlier ones (Qwen3-MoE)."""


@dataclass(frozen=True)
class ModelConfig:
    """Fields of a configuration, with the names of the family's own fields."""

    where: str
    """File, for messages."""
    fields: Mapping[str, Any]
    aliases: Mapping[str, str]
    """The family's name of a field, where it differs from the common one."""

    def name(self, field: str) -> str:
        """Return the name that the family, or the file, has for a field."""
        name = self.aliases.get(field, field)
        later = SINCE_5.get(name, name)
        return later if later in self.fields and name not in self.fields else name

    def has(self, field: str) -> bool:
        """Return whether a field is there and not null."""
        return self.fields.get(self.name(field)) is not None

    def count(
        self, field: str, default: int | None = None, least: int = 1, most: int = LARGEST_FIELD
    ) -> int:
        """Return a whole number in ``least..most``; without a default it must be there."""
        right = f"a whole number in {least}..{most}"
        return self._checked(field, default, right, lambda n: type(n) is int and least <= n <= most)

    def fraction(self, field: str, default: float) -> float:
        """Return a number in 0..1."""
        right = "a number in 0..1"
        return float(
            self._checked(field, default, right, lambda n: type(n) in (int, float) and 0 <= n <= 1)
        )

    def flag(self, field: str, default: bool) -> bool:
        """Return true or false."""
        return self._checked(field, default, "true or false", lambda v: isinstance(v, bool))

    def text(self, field: str, default: str | None = None) -> str:
        """Return a text; without a default it must be there."""
        return self._checked(field, default, "a text", lambda v: isinstance(v, str))

    def numbers(self, field: str) -> list[int]:
        """Return a list of whole numbers; none where the field is absent."""
        right = "a list of whole numbers"
        return self._checked(
            field, [], right, lambda v: isinstance(v, list) and all(type(n) is int for n in v)
        )

    def part(self, field: str) -> ModelConfig:
        """Return the configuration inside a field that is there."""
        value = self.fields[field]
        if not isinstance(value, dict):
            raise self.wrong(field, "an object")
        return ModelConfig(f"{self.where}: {field}", value, {})

    def wrong(self, field: str, right: str) -> ReadError:
        """Return the error of a field that is not what it must be."""
        name = self.name(field)
        found = shown(self.fields[name]) if name in self.fields else "left out"
        return ReadError(f"{self.where}: {name} is {found}; it must be {right}")

    def _checked(self, field: str, default: Any, right: str, fits: Callable[[Any], bool]) -> Any:
        """Return a field, which must be what ``right`` says."""
        value = self.fields[self.name(field)] if self.has(field) else default
        if value is None:
            name = self.name(field)
            null = name in self.fields
            hint = f": it is null; it must be {right}" if null else nearest(name, self.fields)
            raise ReadError(f"{self.where}: no field {name!r}{hint}")
        if not fits(value):
            raise self.wrong(field, right)
        return value


def read_fields(path: Path) -> dict[str, Any]:
    """Return the fields of the configuration at ``path``.

    Raises:
        ReadError: no text, no JSON, or not an object.
    """
    try:
        fields = parse_json(read_text(path))
    except ValueError as error:
        raise ReadError(f"{path}: not valid JSON ({error})") from error
    if not isinstance(fields, dict):
        raise ReadError(f"{path}: JSON, but not a configuration, which is an object")
    return fields
