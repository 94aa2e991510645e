"""``go-rl records``: what a store of measurements has; to a file; several into one."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Annotated

import tyro

from go_rl.api.records import export_store, list_records, merge_stores
from go_rl.cli.console import console, print_json, print_line, print_table, working
from go_rl.cli.exit_codes import OK
from go_rl.report.text_table import TextTable

Store = Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="STORE")]


@dataclass(frozen=True)
class RecordsList:
    """Options of ``go-rl records list``."""

    store: Store
    """Folder with records.sqlite, SQLite file, database URL, or exported file."""
    json: bool = False
    """Print one JSON document and nothing else."""


@dataclass(frozen=True)
class RecordsExport:
    """Options of ``go-rl records export``."""

    store: Store
    """Folder with records.sqlite, SQLite file or database URL."""
    file: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="FILE.jsonl.gz")]
    """Gzipped JSON lines, written whole or not at all."""
    target: str | None = None
    """Only records of this target."""


@dataclass(frozen=True)
class RecordsMerge:
    """Options of ``go-rl records merge``."""

    store: Store
    """Where records go: folder with records.sqlite, SQLite file or database URL."""
    sources: Annotated[
        tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="SOURCE [SOURCE ...]")
    ]
    """Stores and exported files; of two records with one key, the newer stays."""


def run(config: RecordsList | RecordsExport | RecordsMerge) -> int:
    """Run the command; returns the exit code."""
    if isinstance(config, RecordsList):
        return _list(config)
    with working("reading records"):
        if isinstance(config, RecordsExport):
            count = export_store(config.store, config.file, config.target)
            sentence = f"{count:,} records written to {config.file}"
        else:
            count = merge_stores(config.store, config.sources)
            sentence = f"{count:,} records taken"
    print_line(console(), sentence)
    return OK


def _list(config: RecordsList) -> int:
    targets = list_records(config.store)
    if config.json:
        print_json([asdict(each) for each in targets])
        return OK
    heads = ("target", "workloads", "records", "failed", "newest", "this machine")
    cells = [
        (each.target, f"{each.workloads:,}", f"{each.records:,}", f"{each.failed:,}", each.newest,
         "yes" if each.here else "no")
        for each in targets
    ]  # fmt: skip
    words = ("newest", "this machine")
    print_table(console(), TextTable("Records by target", heads, cells, words=words))
    return OK
