"""A ``.pt2`` archive of ``torch.export.save``: its JSON documents; no weight, no pickle is opened.

The archive is a zip file with the program, ``models/NAME.json``, and lists of the arrays that are
stored beside it, ``data/{weights,constants}/NAME_*_config.json``.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from go_rl.core.errors import ReadError
from go_rl.core.files.strict_json import parse_json
from go_rl.runtime.array_file import UNREADABLE

PROGRAM = re.compile(r"(?:^|/)models/([^/]+)\.json")
STORED = re.compile(r"(?:^|/)data/(?:weights|constants)/([^/]+)_(?:weights|constants)_config\.json")
LARGEST_DOCUMENT = 1 << 27
"""Bytes of a document in the archive; a network of a thousand layers has a tenth of it."""


@dataclass(frozen=True)
class Pt2Documents:
    """JSON documents of an archive."""

    program: Any
    stored: tuple[Any, ...] = ()
    """Lists of stored arrays: parameters and buffers, constants."""
    notes: tuple[str, ...] = ()
    """Notes on how the program was made, for whoever reads the graph."""


def is_pt2(names: Iterable[str]) -> bool:
    """Return whether a zip file with these members holds a program of `torch.export`."""
    return any(map(PROGRAM.search, names))


def read_pt2_documents(path: str | Path) -> Pt2Documents:
    """Return the documents in the archive at ``path``.

    Raises:
        ReadError: no archive, damaged, none or several programs, a document too large or no JSON.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            program, name = _program(archive, path)
            stored = [_document(archive, each, path) for each in _named(archive, STORED, name)]
    except ReadError:
        raise
    except UNREADABLE as error:
        raise ReadError(f"{path}: a truncated or damaged .pt2 archive ({error})") from error
    return Pt2Documents(program, tuple(stored))


def _program(archive: zipfile.ZipFile, path: str | Path) -> tuple[Any, str]:
    found = _named(archive, PROGRAM)
    if len(found) != 1:
        several = f"{len(found)} programs ({', '.join(i.filename for i in found[:3])})"
        raise ReadError(
            f"{path}: {several if found else 'no program'} in the archive; one is needed: "
            "torch.export.save(torch.export.export(model, example_inputs), 'model.pt2')"
        )
    name = PROGRAM.search(found[0].filename)
    return _document(archive, found[0], path), name[1] if name else ""


def _named(
    archive: zipfile.ZipFile, pattern: re.Pattern[str], name: str | None = None
) -> list[zipfile.ZipInfo]:
    """Return the members whose whole ending is of a pattern, of one program where it is named."""
    found = [(info, pattern.search(info.filename)) for info in archive.infolist()]
    return [
        info
        for info, match in found
        if match and match.end() == len(info.filename) and name in (None, match[1])
    ]


def _document(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str | Path) -> Any:
    if info.file_size <= LARGEST_DOCUMENT:
        with archive.open(info) as file:
            content = file.read(LARGEST_DOCUMENT + 1)
        if len(content) <= LARGEST_DOCUMENT:
            try:
                return parse_json(content)
            except ValueError as error:
                raise ReadError(f"{path}: {info.filename} is not JSON: {error}") from error
    raise ReadError(
        f"{path}: {info.filename} is larger than {LARGEST_DOCUMENT >> 20} MiB when unpacked; a "
        "program of that size is not read"
    )
