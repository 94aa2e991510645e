"""Our own file: a graph as a compressed ``.npz`` with a JSON manifest and the graph's digest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core import GraphError, OpGraph, ReadError, check_graph
from go_rl.core.files.strict_json import parse_json, shown
from go_rl.core.files.whole_file import whole_file
from go_rl.core.printable import reason
from go_rl.runtime.array_file import UNREADABLE, read_arrays

KIND, FORMAT = "go_rl-graph-", "go_rl-graph-2"
MANIFEST = "manifest"
TEXT_FIELDS = ("names", "op_type", "source")
SECONDS = "seconds."
ARRAYS = {
    "kind": "int8", "flops": "float64", "bytes_accessed": "float64", "output_bytes": "float64",
    "weight_bytes": "float64", "output_itemsize": "float64", "weight_itemsize": "float64",
    "tied_node": "int32", "tied_array": "int32", "tied_bytes": "float64",
    "output_shape": "int64", "colocation": "int32", "is_backward": "bool", "is_output": "bool",
    "senders": "int32", "receivers": "int32", "edge_bytes": "float64", "edge_output": "int32",
}  # fmt: skip
"""Arrays of a graph and their types."""
OPTIONAL = {"transfer_seconds": "float64", "geometry": "float64", "element_type": "int8"}
"""Arrays that a graph may lack."""
TABLES = ("output_shape", "geometry")
"""Arrays of two dimensions; the others have one."""
SIZED_BY = {
    **dict.fromkeys(("senders", "receivers", "edge_bytes", "edge_output"), "senders"),
    **dict.fromkeys(("tied_node", "tied_array"), "tied_array"),
    "tied_bytes": "tied_bytes",
}  # fmt: skip
"""Arrays with an entry for each edge, for each reader of a tied array and for each tied array, and
the array whose length they have; the others have an entry for each node."""
_FACTS: dict[str, tuple[tuple[type, ...], str]] = {
    "format": ((str,), "a text"),
    "dims": ((dict,), "sizes by name"),
    "notes": ((list,), "a list of sentences"),
    "training": ((bool,), "true or false"),
    "accelerators": ((int,), "a whole number"),
    "cpus": ((int,), "a whole number"),
    "memory_bytes": ((int, float), "a number"),
}
"""Facts in a graph's ``meta`` that other parts of go_rl read, where it has them."""


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
        content = read_arrays(path)
    except UNREADABLE as error:
        raise ReadError(f"{path}: not a readable go_rl file ({reason(error)})") from error
    manifest = _manifest(content, path)
    try:
        _check_manifest(manifest)
        _check_arrays(content, len(manifest["names"]))
        graph = _graph(manifest, content)
        check_graph(graph)
    except (ValueError, GraphError) as error:
        raise ReadError(f"{path}: a damaged go_rl graph ({error})") from error
    if graph.digest != manifest["digest"]:
        raise ReadError(f"{path}: damaged: its content does not match the digest it carries")
    return graph


def _manifest(content: dict[str, np.ndarray], path: Path) -> dict[str, Any]:
    try:
        manifest = parse_json(content[MANIFEST].tobytes())
        version = manifest["format"]
    except (KeyError, ValueError, TypeError) as error:
        raise ReadError(f"{path}: an .npz without the manifest of a go_rl graph") from error
    if version != FORMAT:
        what = "" if str(version).startswith(KIND) else "no graph: "
        raise ReadError(
            f"{path}: {what}format {shown(version)}; this version of go_rl reads {FORMAT!r}"
        )
    return manifest


def _check_manifest(manifest: dict[str, Any]) -> None:
    """Raise a `ValueError` for a field of the manifest that is missing or of another type."""
    for field, kind in {"name": str, "digest": str, "meta": dict}.items():
        if not isinstance(manifest.get(field), kind):
            raise ValueError(f"its {field} must be a {kind.__name__}, not {manifest.get(field)!r}")
    nodes = manifest.get("names")
    for field in TEXT_FIELDS:
        allowed = (int, str) if field == "names" else (str,)
        entries = manifest.get(field)
        if not isinstance(entries, list) or any(type(entry) not in allowed for entry in entries):
            raise ValueError(f"its {field} must list a text for each node")
        if len(entries) != len(nodes or ()):
            raise ValueError(f"its {field} has {len(entries)} entries for {len(nodes or ())} nodes")
    for fact, (allowed, what) in _FACTS.items():
        if fact in manifest["meta"] and type(manifest["meta"][fact]) not in allowed:
            raise ValueError(f"its {fact} must be {what}, not {manifest['meta'][fact]!r}")
    for dim, size in manifest["meta"].get("dims", {}).items():
        if type(size) is not int or size < 1:
            raise ValueError(f"its size of dimension {dim!r} must be 1 or more, not {size!r}")


def _check_arrays(content: dict[str, np.ndarray], nodes: int) -> None:
    """Raise a `ValueError` for an array that is missing, or of another type, rank or length."""
    wanted = ARRAYS | {name: kind for name, kind in OPTIONAL.items() if name in content}
    wanted |= {name: "float64" for name in content if name.startswith(SECONDS)}
    if absent := [name for name in wanted if name not in content]:
        raise ValueError(f"array {absent[0]!r} is missing")
    for name, kind in wanted.items():
        array, rank = content[name], 2 if name in TABLES else 1
        if array.dtype != kind or array.ndim != rank:
            raise ValueError(
                f"array {name!r} must be of type {kind} and rank {rank}, not {array.dtype} of "
                f"shape {array.shape}"
            )
        entries = len(content[SIZED_BY[name]]) if name in SIZED_BY else nodes
        if len(array) != entries:
            raise ValueError(f"array {name!r} has {len(array)} entries, not {entries}")


def _graph(manifest: dict[str, Any], content: dict[str, np.ndarray]) -> OpGraph:
    profiles = sorted(name for name in content if name.startswith(SECONDS))
    fields: dict[str, Any] = {field: tuple(manifest[field]) for field in TEXT_FIELDS}
    fields |= {name: content.get(name) for name in (*ARRAYS, *OPTIONAL)}
    return OpGraph(
        name=manifest["name"],
        **fields,
        seconds={name.removeprefix(SECONDS): content[name] for name in profiles},
        meta=manifest["meta"],
    )
