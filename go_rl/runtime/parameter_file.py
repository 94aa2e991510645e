"""Parameters of a network as one safe file: arrays and a JSON manifest, no pickle, no code."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import traverse_util

from go_rl.core.errors import CheckpointError
from go_rl.core.files.strict_json import parse_json
from go_rl.core.files.whole_file import whole_file
from go_rl.runtime.array_file import UNREADABLE, read_arrays

MANIFEST, DIGEST = "manifest", "digest"
Arrays = Mapping[str, np.ndarray]
"""Arrays by the names of parameters, with slashes between those of modules."""


def write_parameters(path: Path, params: Any, manifest: Mapping[str, Any]) -> None:
    """Write a tree of parameters and its manifest; a reader never sees half a file.

    Raises:
        CheckpointError: the file cannot be written.
    """
    arrays = flat_parameters(params)
    document = {**manifest, DIGEST: digest_of(arrays)}
    text = np.frombuffer(json.dumps(document, ensure_ascii=False).encode(), np.uint8)
    try:
        with whole_file(path) as file:
            np.savez_compressed(file, allow_pickle=False, **arrays, **{MANIFEST: text})
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be written ({error.strerror})") from error


def read_parameters(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the manifest and the arrays; `check_digest` compares them with their digest.

    Raises:
        CheckpointError: not such a file.
    """
    try:
        arrays = read_arrays(path)
        manifest = parse_json(arrays.pop(MANIFEST).tobytes())
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: no such file") from error
    except UNREADABLE as error:
        raise CheckpointError(
            f"{path}: cannot be read as weights ({type(error).__name__}: {error}); it may be "
            "truncated"
        ) from error
    if not isinstance(manifest, dict):
        raise CheckpointError(f"{path}: its manifest is no JSON object")
    return manifest, arrays


def check_digest(path: Path, manifest: Mapping[str, Any], arrays: Arrays) -> None:
    """Raise a `CheckpointError` for arrays that are not those that were written."""
    if manifest.get(DIGEST) != digest_of(arrays):
        raise CheckpointError(f"{path}: is damaged: its content does not match its digest")


def check_parameters(path: Path, arrays: Arrays, expected: Any) -> None:
    """Raise a `CheckpointError` for arrays that do not fit a tree of shapes and types, or are not
    finite."""
    flat: dict[tuple[str, ...], Any] = traverse_util.flatten_dict(expected)
    want = {"/".join(key): value.shape for key, value in flat.items()}
    for name in sorted(arrays.keys() | want.keys()):
        theirs = arrays[name].shape if name in arrays else None
        if theirs != want.get(name):
            raise CheckpointError(
                f"{path}: parameter {name!r} has shape {theirs}, this version expects "
                f"{want.get(name)}"
            )
        if arrays[name].dtype.kind not in "fiu":
            raise CheckpointError(
                f"{path}: parameter {name!r} is of type {arrays[name].dtype}, not of real numbers"
            )
        if not np.isfinite(arrays[name]).all():
            raise CheckpointError(f"{path}: parameter {name!r} holds numbers that are not finite")


def flat_parameters(params: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a tree by name."""
    flat = traverse_util.flatten_dict(jax.tree.map(np.asarray, params))
    return {"/".join(key): np.ascontiguousarray(value) for key, value in sorted(flat.items())}


def parameter_tree(arrays: Arrays) -> Any:
    """Return the tree that `flat_parameters` flattened."""
    return traverse_util.unflatten_dict({tuple(k.split("/")): v for k, v in arrays.items()})


def digest_of(arrays: Arrays) -> str:
    """Return SHA-256 over names, types, shapes and numbers."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
