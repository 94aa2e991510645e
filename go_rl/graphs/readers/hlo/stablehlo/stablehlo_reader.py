"""StableHLO as a graph, by way of HLO: text (MLIR as ``lowered.as_text()`` prints it) or bytecode.

XLA's own parser reads it and translates it to HLO in a subprocess, so every printed form,
`chlo` operator and composite that this version of jaxlib knows is covered by one reader of truth:
`readers.hlo.reader`.
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Collection, Mapping
from pathlib import Path

import numpy as np

from go_rl.core import MissingDependencyError, OpGraph, ReadError
from go_rl.core.files.scratch_folder import scratch_folder
from go_rl.graphs.readers import guarded
from go_rl.graphs.readers.file_errors import read_bytes, read_text
from go_rl.graphs.readers.hlo.reader import graph_of_hlo
from go_rl.graphs.readers.hlo.stablehlo.stablehlo_bytecode import is_stablehlo_bytecode

FORMAT = "stablehlo"
WORKER = "go_rl.graphs.readers.hlo.stablehlo.stablehlo_worker"
DEEPEST = 256
"""Depth of nested brackets; real programs nest a few dozen."""


def read_stablehlo(
    path: str | Path,
    unknown: str = "error",
    weights: Collection[int] = (),
    trip_count: int | None = None,
    dims: Mapping[str, int] | None = None,
) -> OpGraph:
    """Read a StableHLO file; other options, costs and errors as in `read_hlo`.

    Args:
        path: the file.
        unknown: see `read_hlo`.
        weights: see `read_hlo`.
        trip_count: see `read_hlo`.
        dims: sizes that the module leaves unknown, by the names that JAX gave them, or by argument
            and axis, such as ``arg0.1``.

    Raises:
        ReadError: XLA cannot parse or translate the module (its first complaint is quoted), or a
            size is unknown.
        UnknownOperatorError: see `read_hlo`.
    """
    path = Path(path)
    hlo, partitions = _translated(_content(path), path, dims or {})
    return graph_of_hlo(hlo, path, FORMAT, (unknown, trip_count), weights, dims, partitions)


def _content(path: Path) -> bytes:
    """The bytes of a file; text is checked first."""
    content = read_bytes(path)
    if not is_stablehlo_bytecode(content):
        text = read_text(path)
        _check_depth(text, path)
        return text.encode("utf-8")
    return content


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


def _translated(content: bytes, path: Path, dims: Mapping[str, int]) -> tuple[str, int]:
    """The HLO of a module, and the number of its partitions."""
    if importlib.util.find_spec("jaxlib") is None:
        raise MissingDependencyError(
            "StableHLO needs a jaxlib with its MLIR bindings; pip install -U jax"
        )
    with scratch_folder("stablehlo") as folder:
        size = (folder / "in.mlir").write_bytes(content)
        (folder / "dims.json").write_text(json.dumps(dict(dims)), "utf-8")
        try:
            wrong = guarded.run_guarded(WORKER, folder, guarded.time_limit(size))
        except TimeoutError as error:
            wrong = str(error)
        if (folder / "refusal.txt").exists():
            raise ReadError(f"{path}: {(folder / 'refusal.txt').read_text('utf-8')}")
        if (folder / "complaint.txt").exists():
            wrong = (folder / "complaint.txt").read_text("utf-8")
        if "bad_alloc" in wrong:
            wrong = (
                f"it takes more memory than the {guarded.MEMORY_BYTES >> 30} GiB of a small file"
            )
        if wrong:
            form = "bytecode" if is_stablehlo_bytecode(content) else "text"
            raise ReadError(f"{path}: XLA cannot read this StableHLO {form}: {wrong}")
        partitions = json.loads((folder / "partitions.json").read_text("utf-8"))
        return (folder / "out.hlo").read_text("utf-8"), partitions
