"""Trained weights as one small safe file: arrays and a JSON manifest, no pickle, no code.

A name such as ``partition-1.0`` is interface-major, weights-minor: files of another major are
refused, files of another minor hold other numbers for the same network.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import jax
import numpy as np
from flax import traverse_util

from go_rl.core import CheckpointError, PolicyError
from go_rl.core.errors import nearest
from go_rl.policy.config import PolicyConfig

INTERFACE = 1
"""Major version: what the networks take and give."""
SHIPPED = Path(__file__).parent / "pretrained"
MANIFEST = "manifest"
OF_COMMANDS = (
    "; go-rl optimize takes weights of go-rl train-step and finetune-step, go-rl partition those "
    "of go-rl train and finetune"
)

_UNREADABLE = (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile)

Template = Callable[[PolicyConfig], Any]
"""Parameters of an untrained network of some configuration: what a file must hold."""


@dataclass(frozen=True, eq=False)
class WeightsFile:
    """What a file holds."""

    config: PolicyConfig
    params: Any
    name: str
    card: Mapping[str, Any]


def write_weights_file(
    path: str | Path,
    kind: str,
    name: str,
    network: tuple[PolicyConfig, Any],
    card: Mapping[str, Any],
) -> None:
    """Write weights of a kind of policy; a reader never sees a half-written file.

    Raises:
        CheckpointError: the file cannot be written.
    """
    path = Path(path)
    config, params = network
    arrays = _flat(params)
    manifest = {
        "format": kind,
        "interface": INTERFACE,
        "name": name,
        "config": asdict(config),
        "card": dict(card),
        "digest": _digest(arrays),
    }
    text = np.frombuffer(json.dumps(manifest, ensure_ascii=False).encode(), np.uint8)
    aside = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with aside.open("wb") as file:
            np.savez_compressed(file, allow_pickle=False, **arrays, **{MANIFEST: text})
        os.replace(aside, path)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        with suppress(OSError):
            aside.unlink(missing_ok=True)


def read_weights_file(source: str | Path, kind: str, template: Template) -> WeightsFile:
    """Read weights of a kind by the name of a shipped file, or by path.

    Raises:
        CheckpointError: no such weights, damaged, of another kind or interface.
    """
    path = _path(source)
    written = path.stat()
    return _load(path, kind, template, written.st_mtime_ns, written.st_size)


@cache
def _load(path: Path, kind: str, template: Template, time_written: int, size: int) -> WeightsFile:
    """Read a file once; another file in its place is another key."""
    manifest, arrays = _read(path)
    if manifest.get("format") != kind:
        other = manifest.get("format")
        what = f" but {other!r}{OF_COMMANDS}" if other else ""
        raise CheckpointError(f"{path}: is not a policy's weights file of kind {kind!r}{what}")
    if manifest.get("interface") != INTERFACE:
        raise CheckpointError(
            f"{path}: weights of interface {manifest.get('interface')}; this version of go_rl "
            f"reads interface {INTERFACE}. Train anew, or use one of "
            f"{', '.join(shipped_weights())}"
        )
    if manifest.get("digest") != _digest(arrays):
        raise CheckpointError(f"{path}: is damaged: its content does not match its digest")
    try:
        config = PolicyConfig(**manifest["config"])
        name, card = str(manifest["name"]), dict(manifest["card"])
    except (KeyError, TypeError, ValueError, PolicyError) as error:
        raise CheckpointError(
            f"{path}: its manifest does not fit this version ({type(error).__name__}: {error})"
        ) from error
    _check_arrays(path, arrays, jax.eval_shape(lambda: template(config)))
    params = traverse_util.unflatten_dict({tuple(k.split("/")): v for k, v in arrays.items()})
    return WeightsFile(config, params, name, card)


def shipped_weights() -> tuple[str, ...]:
    """Return the names of the weights that ship with the package."""
    return tuple(sorted(path.stem for path in SHIPPED.glob("*.npz")))


def _path(source: str | Path) -> Path:
    named = SHIPPED / f"{source}.npz"
    if isinstance(source, str) and "/" not in source and named.exists():
        return named
    path = Path(source)
    if not path.exists():
        names = shipped_weights()
        raise CheckpointError(
            f"no weights {str(source)!r}{nearest(str(source), names)} "
            f"Give a file, or one of {', '.join(names) or '(none are shipped)'}"
        )
    return path


def _read(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        manifest = json.loads(arrays.pop(MANIFEST).tobytes().decode())
    except _UNREADABLE as error:
        raise CheckpointError(
            f"{path}: cannot be read as weights ({type(error).__name__}); it may be truncated"
        ) from error
    if not isinstance(manifest, dict):
        raise CheckpointError(f"{path}: its manifest is no JSON object")
    return manifest, arrays


def _flat(params: Any) -> dict[str, np.ndarray]:
    flat = traverse_util.flatten_dict(jax.tree.map(np.asarray, params))
    return {"/".join(key): np.ascontiguousarray(value) for key, value in sorted(flat.items())}


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()


def _check_arrays(path: Path, arrays: Mapping[str, np.ndarray], expected: Any) -> None:
    flat: dict[tuple[str, ...], Any] = traverse_util.flatten_dict(expected)
    want = {"/".join(key): value.shape for key, value in flat.items()}
    for name in sorted(arrays.keys() | want.keys()):
        theirs = arrays[name].shape if name in arrays else None
        if theirs != want.get(name):
            raise CheckpointError(
                f"{path}: parameter {name!r} has shape {theirs}, this version expects "
                f"{want.get(name)}"
            )
        if not np.isfinite(arrays[name]).all():
            raise CheckpointError(f"{path}: parameter {name!r} holds numbers that are not finite")
