"""The file of golden results: a header that says where it was made, and the facts by case."""

import gzip
import hashlib
import json
import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .fingerprint import Facts

ROOT = Path(__file__).resolve().parents[2]
RECORDED = Path(__file__).parent / "results.json.gz"
"""The results that count."""
FORMAT = "go_rl-golden-1"
LIBRARIES = ("jax", "numba", "numpy", "ortools", "scipy")
PROCESSOR = Path("/proc/cpuinfo")


class ResultsError(Exception):
    """A file of results cannot be used; the message says which and why."""


@dataclass
class Results:
    """Facts by case, and what they were made with."""

    header: Mapping[str, Any]
    cases: dict[str, Facts] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write aside, sorted, and rename: equal results make equal files."""
        document = {"header": dict(self.header), "cases": self.cases}
        text = json.dumps(document, sort_keys=True, indent=0, separators=(",", ":"))
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f"{path.name}.{os.getpid()}.new")
        try:
            aside.write_bytes(gzip.compress(text.encode(), mtime=0))
            aside.replace(path)
        finally:
            aside.unlink(missing_ok=True)


def load_results(path: Path) -> Results:
    """Read what `Results.save` wrote.

    Raises:
        ResultsError: there is no such file, or it is damaged or of another format.
    """
    try:
        document = json.loads(gzip.decompress(path.read_bytes()))
        found = Results(document["header"], document["cases"])
    except (gzip.BadGzipFile, EOFError, zlib.error, ValueError, KeyError, TypeError) as error:
        raise ResultsError(f"{path}: is no file of golden results ({error})") from error
    except OSError as error:
        raise ResultsError(f"{path}: cannot be read ({error.strerror})") from error
    if found.header.get("format") != FORMAT:
        raise ResultsError(f"{path}: is of format {found.header.get('format')!r}, not {FORMAT!r}")
    return found


def new_results() -> Results:
    """Return results without cases, made by this tree on this machine."""
    header = {
        "format": FORMAT,
        "processor": _processor(),
        "libraries": {name: version(name) for name in LIBRARIES},
        "tree": tree_digest(),
    }
    return Results(header)


def tree_digest() -> str:
    """Return a hash of go_rl and of the cases: results of one go on only with the same."""
    found = hashlib.sha256()
    for folder in (ROOT / "go_rl", Path(__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            found.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return found.hexdigest()[:16]


def _processor() -> str:
    try:
        lines = PROCESSOR.read_text().splitlines()
    except OSError:
        return ""
    given = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return given[0] if given else ""
