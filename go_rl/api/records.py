"""`list_records`, `export_store`, `merge_stores`: stores of measurements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from go_rl.core.errors import RecordError
from go_rl.core.files.paths import path_of

if TYPE_CHECKING:
    from go_rl.runtime.records import Record

EXPORTED = ".gz"
"""End of the name of a file that `export_store` writes."""


@dataclass(frozen=True)
class TargetRecords:
    """Contents of a store for one target."""

    target: str
    workloads: int
    """Number of distinct workloads."""
    records: int
    failed: int
    """Number of records without a time."""
    newest: str
    """Time of the newest measurement, ISO 8601 in UTC."""
    here: bool
    """Whether the target is this machine's processor: else its times are foreign here."""


def list_records(store: str | Path) -> list[TargetRecords]:
    """Return what a store has, by target.

    Args:
        store: a folder with records.sqlite, an SQLite file, a database URL, or a file of
            `export_store`.

    Raises:
        MissingDependencyError: the driver of the database is not installed.
        RecordError: there is none, it is damaged, of a newer version, or cannot be reached.
    """
    from go_rl.core.hardware.processor import own_target

    found: dict[str, list[Record]] = {}
    for record in _records(store):
        found.setdefault(record.target, []).append(record)
    return [
        TargetRecords(
            target=target,
            workloads=len({record.workload for record in records}),
            records=len(records),
            failed=sum(record.seconds is None for record in records),
            newest=max(record.measured_at for record in records),
            here=target.partition("+")[0] == own_target(),
        )
        for target, records in sorted(found.items())
    ]


def export_store(store: str | Path, path: str | Path, target: str | None = None) -> int:
    """Write the records of a store, or those of one target, to a file of gzipped JSON lines, and
    return their number.

    Raises:
        MissingDependencyError, RecordError: see `list_records`; there are no such records; the
            file cannot be written, or its name does not end in .gz.
    """
    from go_rl.core.errors import nearest
    from go_rl.runtime.records import export_records

    path = path_of(path, "the exported file", RecordError)
    if not str(path).endswith(EXPORTED):
        raise RecordError(
            f"{path}: records are exported compressed; its name must end in {EXPORTED}, such as "
            f"{Path(path).stem}.jsonl{EXPORTED}"
        )
    records = _records(store)
    known = sorted({record.target for record in records})
    if target is not None and target not in known:
        raise RecordError(f"{store}: no records of target {target!r}{nearest(target, known)}")
    chosen = [record for record in records if target in (None, record.target)]
    export_records(chosen, path)
    return len(chosen)


def merge_stores(into: str | Path, sources: Sequence[str | Path]) -> int:
    """Add records of stores and exported files to a store, and return how many it took: of two
    with one key, the newer stays. Each source is taken whole, or not at all.

    Raises:
        MissingDependencyError, RecordError: see `list_records`; sources before the one at fault
            are taken.
    """
    from go_rl.runtime.records import RecordStore, database_of

    if isinstance(sources, str | Path):
        raise RecordError(f"merge: sources must be a list of stores, not {sources!r} alone")
    if not sources:
        raise RecordError("merge: name at least one SOURCE, a store or an exported file")
    taken = 0
    with RecordStore(database_of(into)) as store:
        for source in sources:
            taken += store.merge(_records(source))
    return taken


def _records(source: str | Path) -> list[Record]:
    from go_rl.runtime.records import RecordStore, database_of, load_records

    where = database_of(source)
    if isinstance(where, Path) and where.name.endswith(EXPORTED):
        return load_records(where)
    if isinstance(where, Path) and not where.is_file():
        raise RecordError(
            f"{source}: there are no records; name a folder with records.sqlite, an SQLite file, a "
            "database URL, or a file of go-rl records export"
        )
    with RecordStore(where) as store:
        return [record for target in store.targets() for record in store.find(target)]
