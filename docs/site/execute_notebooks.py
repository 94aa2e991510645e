"""Execute the notebooks of ``docs/notebooks`` and keep their outputs: ``make notebooks``.

Each runs in a folder of its own that is thrown away. Outputs larger than `MOST_BYTES` and cells
that fail are errors; times of execution are left out, so that only what changed differs.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import nbformat  # pyright: ignore[reportMissingImports]
from nbclient import NotebookClient  # pyright: ignore[reportMissingImports]

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
SECONDS = 600
"""Longest time of one cell, on a machine that does other things too."""
MOST_BYTES = 120_000
"""Size of a notebook."""


def main(names: list[str]) -> None:
    """Execute the notebooks with these names, or all."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not names or path.stem in names:
            path.write_text(executed(path), encoding="utf-8")
            print(f"{path.name}: {path.stat().st_size:,} bytes", flush=True)


def executed(path: Path) -> str:
    """Return a notebook with the outputs of its cells, as text.

    Raises:
        ValueError: it is too large.
    """
    book = nbformat.read(path, as_version=4)
    with TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(book, timeout=SECONDS, resources=resources, record_timing=False).execute()
    for cell in book.cells:
        if cell.cell_type == "code":
            # Progress, which a reader sees as it goes and no longer needs.
            cell.outputs = [o for o in cell.outputs if o.get("name") != "stderr"]
    text = json.dumps(book, indent=1, ensure_ascii=False, sort_keys=True) + "\n"
    if len(text) > MOST_BYTES:
        raise ValueError(f"{path}: {len(text):,} bytes with its outputs, more than {MOST_BYTES:,}")
    return text


if __name__ == "__main__":
    main(sys.argv[1:])
