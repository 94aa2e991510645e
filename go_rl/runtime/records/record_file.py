"""Records as one file: gzipped JSON lines under a header with their number."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Generator, Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

from go_rl.core.errors import RecordError
from go_rl.core.files.whole_file import whole_file, writing
from go_rl.runtime.array_file import open_packed
from go_rl.runtime.records.record import Record

FORMAT = "go_rl records"
VERSION = 1


def export_records(records: Iterable[Record], path: str | Path) -> None:
    """Write records in the order given; the same records make the same bytes. A file that is there
    already is replaced once the new one is complete.

    Raises:
        RecordError: the file cannot be written.
    """
    path, kept = Path(path), list(records)
    header = {"format": FORMAT, "version": VERSION, "count": len(kept)}
    with (
        writing(path, RecordError),
        whole_file(path) as raw,
        # No name and no time inside, which gzip.open would write.
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as file,
    ):
        for document in (header, *(record.to_json() for record in kept)):
            file.write(json.dumps(document, allow_nan=False).encode() + b"\n")


def load_records(path: str | Path) -> list[Record]:
    """Read what `export_records` wrote, in its order.

    Raises:
        RecordError: the file is not there, damaged, cut off or of another version.
    """
    path, records = Path(path), []
    with closing(_lines(path)) as lines:
        count = _count(next(lines, {}), path)
        for number, document in enumerate(lines, 2):
            try:
                records.append(Record.from_json(document))
            except (RecordError, RecursionError) as error:
                raise RecordError(f"{path}: line {number}: {error}") from error
    if len(records) != count:
        raise RecordError(
            f"{path}: line {len(records) + 1} is the last, but the header promises {count} "
            "records; export the records again"
        )
    return records


def _lines(path: Path) -> Generator[Any, None, None]:
    """The JSON documents of a file, one a line."""
    number = 1
    try:
        with open_packed(path) as file:
            for line in file:
                yield json.loads(line)
                number += 1
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise RecordError(
            f"{path}: line {number} is damaged or cut off ({error}); export the records again"
        ) from error
    except OSError as error:
        raise RecordError(f"{path}: cannot be read ({error.strerror})") from error


def _count(header: object, path: Path) -> int:
    """Check the first line and return how many records it promises."""
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise RecordError(f"{path}: line 1 does not say {FORMAT!r}; name a file of export_records")
    if header.get("version") != VERSION:
        raise RecordError(
            f"{path}: line 1 says version {header.get('version')!r}, and this go_rl reads "
            f"{VERSION}; export the records again with this one"
        )
    count = header.get("count")
    if type(count) is not int or count < 0:
        raise RecordError(f"{path}: line 1: count must be a whole number, not {count!r}")
    return count
