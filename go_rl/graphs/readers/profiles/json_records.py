"""JSON documents of profiled graphs: objects whose fields are checked one by one."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from go_rl.core import NodeId, ReadError
from go_rl.core.errors import nearest
from go_rl.core.files.own_json import kind_of
from go_rl.core.files.strict_json import parse_json

MILLISECOND = 1e-3


@dataclass(frozen=True)
class JsonRecord:
    """One JSON object of the file, with its place for messages."""

    path: Path
    place: str
    fields: Mapping[str, Any]

    def get(self, field: str) -> Any:
        """Return any value."""
        if field not in self.fields:
            hint = nearest(field, self.fields)
            raise ReadError(f"{self.path}: {self.place} has no field {field!r}{hint}")
        return self.fields[field]

    def number(self, field: str) -> float:
        """Return a finite number that is not negative."""
        value = self.get(field)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong(field, value, "a number >= 0")
        if not 0 <= value <= sys.float_info.max:
            raise self.wrong(field, value, "a finite number >= 0")
        return float(value)

    def count(self, field: str) -> int:
        """Return a whole number that is not negative."""
        value = self.number(field)
        if value != int(value):
            raise self.wrong(field, value, "a whole number >= 0")
        return int(value)

    def flag(self, field: str) -> bool:
        """Return a truth."""
        value = self.get(field)
        if value not in (0, 1) or not isinstance(value, (bool, int, float)):
            raise self.wrong(field, value, "true, false, 0 or 1")
        return bool(value)

    def name(self, field: str) -> NodeId:
        """Return the name of a node."""
        value = self.get(field)
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise self.wrong(field, value, "an integer or a string")
        return value

    def records(self, field: str, what: str) -> list[JsonRecord]:
        """Return the objects of a list, each called ``what``."""
        items = self.get(field)
        if not isinstance(items, list):
            raise self.wrong(field, type(items).__name__, f"a list of {what}s")
        for i, item in enumerate(items):
            if not isinstance(item, dict):
                raise ReadError(f"{self.path}: {field}[{i}] is {item!r}; it must be an object")
        return [JsonRecord(self.path, _place(field, i, item), item) for i, item in enumerate(items)]

    def wrong(self, field: str, value: object, right: str) -> ReadError:
        """Return the error of a field whose value is not ``right``."""
        return ReadError(f"{self.path}: {self.place}, {field} is {value!r}; it must be {right}")


def _place(field: str, i: int, item: Mapping[str, Any]) -> str:
    return f"{field}[{i}] (id {item['id']!r})" if "id" in item else f"{field}[{i}]"


def read_record(path: Path, what: str, fields: Sequence[str]) -> JsonRecord:
    """Return the object that a file holds.

    Args:
        path: the file.
        what: names the form in messages.
        fields: those of the form.

    Raises:
        ReadError: the file cannot be read, is no JSON, or has neither nodes nor edges.
    """
    try:
        content = parse_json(path.read_bytes())
    except ValueError as error:
        raise ReadError(f"{path}: not valid JSON ({error})") from error
    except OSError as error:
        raise ReadError(f"{path}: cannot be read ({error.strerror})") from error
    if kind := kind_of(content):
        raise ReadError(f"{path}: is {kind}; wanted is a model")
    if not isinstance(content, dict) or not {"nodes", "edges"} <= content.keys():
        raise ReadError(f"{path}: JSON, but not a {what}; its fields are {', '.join(fields)}")
    return JsonRecord(path, "the file", content)


def checked_ids(nodes: Collection[JsonRecord], edges: Collection[JsonRecord]) -> list[NodeId]:
    """Return the ids of all nodes.

    Raises:
        ReadError: two are alike, or an edge names one that is absent.
    """
    ids = [record.name("id") for record in nodes]
    known: set[NodeId] = set()
    for record, name in zip(nodes, ids, strict=True):
        if name in known:
            raise ReadError(f"{record.path}: {record.place}: two nodes have the id {name!r}")
        known.add(name)
    for record in edges:
        for end in ("sourceId", "destId"):
            if record.name(end) not in known:
                raise record.wrong(end, record.get(end), "the id of a node in the file")
    return ids
