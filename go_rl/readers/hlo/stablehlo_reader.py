"""StableHLO text (MLIR as ``lowered.as_text()`` prints it) as a graph, by way of HLO.

XLA's own parser reads the text and translates it to HLO in a subprocess, so every printed form,
`chlo` operator and composite that this version of jaxlib knows is covered by one reader of truth:
`readers.hlo.reader`.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Collection
from pathlib import Path

import numpy as np

from go_rl.core import MissingDependencyError, OpGraph, ReadError
from go_rl.core.files.scratch_folder import scratch_folder
from go_rl.readers import guarded
from go_rl.readers.file_errors import read_text
from go_rl.readers.hlo.reader import graph_of_hlo

FORMAT = "stablehlo"
WORKER = "go_rl.readers.hlo.stablehlo_worker"
DEEPEST = 256
"""Depth of nested brackets; real programs nest a few dozen."""


def read_stablehlo(
    path: str | Path,
    unknown: str = "error",
    weights: Collection[int] = (),
    trip_count: int | None = None,
) -> OpGraph:
    """Read a StableHLO file; options, costs and errors as in `read_hlo`.

    Raises:
        ReadError: XLA cannot parse or translate the text; its first complaint is quoted.
        UnknownOperatorError: see `read_hlo`.
    """
    path = Path(path)
    text = _hlo_text(read_text(path), path)
    return graph_of_hlo(text, path, FORMAT, (unknown, trip_count), weights)


def _check_depth(text: str, path: Path) -> None:
    """XLA's parser recurses for each bracket; too many crash the process."""
    letters = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
    opening = np.isin(letters, np.frombuffer(b"([{<", np.uint8))
    closing = np.isin(letters, np.frombuffer(b")]}>", np.uint8))
    arrow = (letters[1:] == ord(">")) & (letters[:-1] == ord("-"))
    closing[1:] &= ~arrow
    depth = np.cumsum(opening.astype(np.int32) - closing)
    if depth.max(initial=0) > DEEPEST:
        line = text.encode()[: int(np.argmax(depth > DEEPEST))].count(b"\n") + 1
        raise ReadError(f"{path}:{line}: brackets are nested deeper than {DEEPEST}")


def _hlo_text(text: str, path: Path) -> str:
    _check_depth(text, path)
    if importlib.util.find_spec("jaxlib") is None:
        raise MissingDependencyError(
            "StableHLO text needs a jaxlib with its MLIR bindings; pip install -U jax"
        )
    with scratch_folder("stablehlo") as folder:
        size = (folder / "in.mlir").write_text(text, "utf-8")
        try:
            wrong = guarded.run_guarded(WORKER, folder, guarded.time_limit(size))
        except TimeoutError:
            wrong = f"not finished in {guarded.time_limit(size):g} s"
        if (folder / "complaint.txt").exists():
            wrong = (folder / "complaint.txt").read_text("utf-8")
        if "bad_alloc" in wrong:
            wrong = (
                f"it takes more memory than the {guarded.MEMORY_BYTES >> 30} GiB of a small file"
            )
        if wrong:
            raise ReadError(f"{path}: XLA cannot read this StableHLO text: {wrong}")
        return (folder / "out.hlo").read_text("utf-8")
