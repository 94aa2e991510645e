"""Our own file: a graph as a compressed ``.npz`` with a JSON manifest and the graph's digest."""

from __future__ import annotations

import json
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core import GraphError, OpGraph, ReadError, check_graph
from go_rl.core.whole_file import whole_file

FORMAT = "go_rl-graph-1"
MANIFEST = "manifest"
TEXT_FIELDS = ("names", "op_type", "source")
SECONDS = "seconds."
ARRAYS = (
    "kind", "flops", "bytes_accessed", "output_bytes", "weight_bytes", "output_itemsize",
    "weight_itemsize", "weight_group", "output_shape", "colocation", "is_backward", "is_output",
    "senders", "receivers", "edge_bytes", "edge_output",
)  # fmt: skip
OPTIONAL = ("transfer_seconds", "geometry")
"""Arrays that a graph may lack."""

_UNREADABLE = (OSError, ValueError, EOFError, NotImplementedError, RuntimeError,
               zipfile.BadZipFile, zlib.error)  # fmt: skip


def save_graph(graph: OpGraph, path: str | Path) -> None:
    """Write ``graph`` to ``path``; a reader never sees a half-written file."""
    path = Path(path)
    arrays: dict[str, Any] = {name: getattr(graph, name) for name in ARRAYS}
    arrays |= {SECONDS + kind: values for kind, values in graph.seconds.items()}
    for name in OPTIONAL:
        if getattr(graph, name) is not None:
            arrays[name] = getattr(graph, name)
    manifest: dict[str, Any] = {"format": FORMAT, "digest": graph.digest, "name": graph.name}
    manifest |= {field: list(getattr(graph, field)) for field in TEXT_FIELDS}
    manifest["meta"] = dict(graph.meta)
    text = json.dumps(manifest, ensure_ascii=False).encode()
    arrays[MANIFEST] = np.frombuffer(text, np.uint8)
    with whole_file(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays)


def load_graph(path: str | Path) -> OpGraph:
    """Read a graph written by `save_graph`, checking its digest and every invariant.

    Raises:
        ReadError: not such a file, another format version, or damaged content.
    """
    path = Path(path)
    try:
        # NumPy leaves a file that it opened itself open when the archive is damaged.
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
    except _UNREADABLE as error:
        raise ReadError(f"{path}: not a readable go_rl graph ({error})") from error
    manifest = _manifest(content, path)
    try:
        graph = _graph(manifest, content)
        check_graph(graph)
    except (KeyError, TypeError, ValueError, GraphError) as error:
        raise ReadError(f"{path}: a damaged go_rl graph ({error})") from error
    if graph.digest != manifest["digest"]:
        raise ReadError(f"{path}: damaged: its content does not match the digest it carries")
    return graph


def _manifest(content: dict[str, np.ndarray], path: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(content[MANIFEST].tobytes())
        version = manifest["format"]
    except (KeyError, ValueError, TypeError) as error:
        raise ReadError(f"{path}: an .npz without the manifest of a go_rl graph") from error
    if version != FORMAT:
        raise ReadError(f"{path}: format {version!r}; this version of go_rl reads {FORMAT!r}")
    return manifest


def _graph(manifest: dict[str, Any], content: dict[str, np.ndarray]) -> OpGraph:
    profiles = sorted(name for name in content if name.startswith(SECONDS))
    fields: dict[str, Any] = {field: tuple(manifest[field]) for field in TEXT_FIELDS}
    fields |= {name: content[name] for name in ARRAYS}
    return OpGraph(
        name=manifest["name"],
        **fields,
        seconds={name.removeprefix(SECONDS): content[name] for name in profiles},
        transfer_seconds=content.get("transfer_seconds"),
        geometry=content.get("geometry"),
        meta=manifest["meta"],
    )
