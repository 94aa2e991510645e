"""`RecordStore`: records in a database, SQLite unless a URL says otherwise."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any

import sqlalchemy as sql
from sqlalchemy import exc
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.schema import CreateTable

from go_rl.core.errors import RecordError
from go_rl.core.files.strict_json import shown
from go_rl.runtime.records.database import explained, open_engine, public_name
from go_rl.runtime.records.record import Record, canonical_json

VERSION = 1
"""Version of the tables; kept in the database."""
WORKLOADS_AT_ONCE = 500
"""Databases limit the number of values in a query."""

_TABLES = sql.MetaData()
_VERSIONS = sql.Table(
    "go_rl_records_version",
    _TABLES,
    sql.Column("version", sql.Integer, primary_key=True, autoincrement=False),
)
_RECORDS = sql.Table(
    "go_rl_records",
    _TABLES,
    sql.Column("workload", sql.Text, primary_key=True),
    sql.Column("target", sql.Text, primary_key=True),
    sql.Column("setting", sql.Text, primary_key=True),
    sql.Column("round", sql.Integer, primary_key=True, autoincrement=False),
    sql.Column("seconds", sql.Double),
    sql.Column("spread", sql.Double),
    sql.Column("repeats", sql.Integer, nullable=False),
    sql.Column("reason", sql.Text, nullable=False),
    sql.Column("details", sql.Text, nullable=False),
    sql.Column("measured_at", sql.Text, nullable=False),
)
_OLDER = sql.delete(_RECORDS).where(
    *(column == sql.bindparam(f"old_{column.name}") for column in _RECORDS.primary_key)
)
_UPSERTS: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {"sqlite": sqlite.insert, "postgresql": postgresql.insert}
)
"""Insertion that replaces the row with the same key, by database."""
ATTEMPTS = 5
"""Attempts to make the tables, beside other processes that do the same."""


class RecordStore:
    """Measurements in one database; several processes may read and write it at the same time.

    Args:
        url: an SQLite file, which is made with its folder when first written to, or a database URL
            that SQLAlchemy understands (with ``://``). Tried with SQLite and PostgreSQL; any
            other must take text of any length as a key.

    Raises:
        MissingDependencyError: the driver of the database is not installed.
        RecordError: the URL is malformed. Every method raises it where the database cannot be
            reached, is none, or was written by another version of go_rl.
    """

    def __init__(self, url: str | Path) -> None:
        self._where = public_name(url)
        self._engine, self._file = open_engine(url)

    def add(self, records: Iterable[Record]) -> None:
        """Keep records, all or none; a newer record replaces an older one with the same key."""
        newest = {record.key: record for record in records}
        if not newest:
            return
        with explained(self._where):
            self._make_tables()
            # In one order in all processes: writers that wait for each other's rows go on.
            ordered = [newest[key] for key in sorted(newest)]
            with self._engine.begin() as connection:
                self._write(connection, ordered)

    def find(
        self, target: str, workloads: Collection[str] | None = None, round: int | None = None
    ) -> list[Record]:
        """Return records of a target by workload, setting and round, in this order.

        Args:
            target: where they were measured.
            workloads: only of these; None: of all.
            round: only of this one; None: of all.
        """
        asked = sql.select(_RECORDS).where(_RECORDS.c.target == target)
        if round is not None:
            asked = asked.where(_RECORDS.c.round == round)
        rows = self._read(*_by_workload(asked, workloads))
        return sorted((self._record(row) for row in rows), key=lambda record: record.key)

    def targets(self) -> list[str]:
        """Return the targets that have records, sorted."""
        found = [row.target for row in self._read(sql.select(_RECORDS.c.target).distinct())]
        for target in found:
            if not isinstance(target, str):  # SQLite keeps whatever it is given
                raise RecordError(
                    f"{self._where}: a target is {shown(target)} and no text; delete its records"
                )
        return sorted(found)

    def count(self, target: str) -> int:
        """Return how many records a target has."""
        asked = sql.select(sql.func.count()).where(_RECORDS.c.target == target)
        return sum(row[0] for row in self._read(asked.select_from(_RECORDS)))

    def merge(self, records: Iterable[Record]) -> int:
        """Keep those of ``records`` that are new here, or newer than the one with the same key, all
        or none; returns their number."""
        found = {record.key: record for record in records}
        own: dict[tuple[str, str, str, int], Record] = {}
        for target in sorted({record.target for record in found.values()}):
            workloads = {record.workload for record in found.values() if record.target == target}
            own |= {record.key: record for record in self.find(target, workloads)}
        kept = [
            record for key, record in found.items()
            if key not in own or _moment(own[key]) < _moment(record)
        ]  # fmt: skip
        self.add(kept)
        return len(kept)

    def close(self) -> None:
        """Close all connections; a later use opens new ones."""
        self._engine.dispose()

    def __enter__(self) -> RecordStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _read(self, *questions: sql.Select) -> list[Any]:
        """The rows that match; none while nothing was ever written."""
        if self._file is not None and not self._file.exists():  # SQLite would make it
            return []
        with explained(self._where), self._engine.connect() as connection:
            if not self._has_tables(connection):
                return []
            return [row for asked in questions for row in connection.execute(asked)]

    def _write(self, connection: sql.Connection, records: list[Record]) -> None:
        """Insert or replace rows; where another process writes the same key, the last one stays."""
        rows = [_row(record) for record in records]
        insert = _UPSERTS.get(connection.dialect.name)
        if insert is None:
            connection.execute(_OLDER, [_old_key(record) for record in records])
            connection.execute(_RECORDS.insert(), rows)
            return
        asked = insert(_RECORDS)
        key = [column.name for column in _RECORDS.primary_key]
        others = {c.name: asked.excluded[c.name] for c in _RECORDS.columns if c.name not in key}
        connection.execute(asked.on_conflict_do_update(index_elements=key, set_=others), rows)

    def _record(self, row: Any) -> Record:
        try:
            if blobs := [name for name, value in row._mapping.items() if isinstance(value, bytes)]:
                raise TypeError(f"its {blobs[0]} is no text")
            return Record.from_json({**row._mapping, "details": json.loads(row.details)})
        except (ValueError, TypeError, RecordError) as error:
            raise RecordError(
                f"{self._where}: the record of workload {row.workload!r} is damaged ({error}); "
                "measure it again or delete it"
            ) from error

    def _make_tables(self) -> None:
        """Create missing tables; another process may be doing the same."""
        if self._file is not None:
            self._file.parent.mkdir(parents=True, exist_ok=True)
        for attempt in range(ATTEMPTS):
            with self._engine.connect() as connection:
                if self._has_tables(connection):
                    return
            try:
                with self._engine.begin() as connection:
                    for table in (_RECORDS, _VERSIONS):
                        connection.execute(CreateTable(table, if_not_exists=True))
                    none = ~sql.exists(sql.select(_VERSIONS))
                    ours = sql.select(sql.literal(VERSION)).where(none)
                    connection.execute(_VERSIONS.insert().from_select(["version"], ours))
            except (exc.IntegrityError, exc.ProgrammingError):  # another process was first
                if attempt == ATTEMPTS - 1:
                    raise
                time.sleep(0.05 * (attempt + 1))

    def _has_tables(self, connection: sql.Connection) -> bool:
        """Return whether a store exists here; one of another version is refused."""
        if not sql.inspect(connection).has_table(_VERSIONS.name):
            return False
        version = connection.scalar(sql.select(_VERSIONS.c.version))
        if version not in (None, VERSION):
            raise RecordError(
                f"{self._where}: its records are of version {version}, and this go_rl keeps "
                f"version {VERSION}; name another database, or use the go_rl that made it"
            )
        return version is not None


def _moment(record: Record) -> datetime:
    return datetime.fromisoformat(record.measured_at)


def _by_workload(asked: sql.Select, workloads: Collection[str] | None) -> list[sql.Select]:
    if workloads is None:
        return [asked]
    names = sorted(set(workloads))
    starts = range(0, len(names), WORKLOADS_AT_ONCE)
    parts = (names[start : start + WORKLOADS_AT_ONCE] for start in starts)
    return [asked.where(_RECORDS.c.workload.in_(part)) for part in parts]


def _row(record: Record) -> dict[str, Any]:
    return record.to_json() | {"details": canonical_json(record.details)}


def _old_key(record: Record) -> dict[str, Any]:
    return {f"old_{column.name}": getattr(record, column.name) for column in _RECORDS.primary_key}
