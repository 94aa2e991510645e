"""Safe files of arrays: nothing is unpacked that a file does not really hold, and no pickle.

A small archive can promise terabytes: in the header of an array, which NumPy allocates before it
reads, or as gigabytes of zeros, which compress a thousandfold. `read_arrays` reads untrusted
``.npz``, `open_packed` untrusted gzip; `write_parameters` and `read_parameters` keep a tree of
arrays with a manifest (JSON) and a digest.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from go_rl.core.errors import CheckpointError
from go_rl.core.files.paths import check_readable
from go_rl.core.files.strict_json import parse_json
from go_rl.core.files.whole_file import whole_file, writing
from go_rl.core.printable import reason

FREE_BYTES = 256 << 20
"""Bytes to which an archive may always unpack."""
LARGEST_RATIO = 100
"""Beyond `FREE_BYTES`, largest ratio of unpacked to packed size."""
UNREADABLE = (OSError, ValueError, EOFError, LookupError, RuntimeError, TypeError, ArithmeticError,
              SyntaxError, struct.error, zipfile.BadZipFile, zlib.error)  # fmt: skip
"""Raised by `read_arrays` for a damaged file."""
DAMAGED = (OSError, EOFError, ValueError, zlib.error)
"""Raised while a file of `open_packed` is read: it is no gzip file, damaged, or too large."""
MANIFEST, DIGEST = "manifest", "digest"
Arrays = Mapping[str, np.ndarray]
"""Arrays by the names of parameters, with slashes between those of modules."""


def most_unpacked(size: int) -> int:
    """Return to how many bytes a packed file of ``size`` bytes may unpack."""
    return max(FREE_BYTES, LARGEST_RATIO * size)


def read_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an ``.npz`` by name.

    Raises:
        ValueError: an array is larger than what its archive holds, or of Python objects.
        Others of `UNREADABLE`: the file is absent or damaged.
    """
    if path.exists() and not path.is_file():
        raise ValueError("it is a folder, a device or a pipe, not a file")
    with path.open("rb") as file, zipfile.ZipFile(file) as archive:
        _check_size(archive, path.stat().st_size)
        return {
            info.filename.removesuffix(".npy"): _array(archive, info)
            for info in archive.infolist()
            if not info.is_dir()
        }


def _check_size(archive: zipfile.ZipFile, size: int) -> None:
    unpacked = sum(info.file_size for info in archive.infolist())
    if unpacked > most_unpacked(size):
        raise ValueError(f"it unpacks to {unpacked:,} bytes, far more than such a file can mean")


def _array(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> np.ndarray:
    with archive.open(info) as member:
        shape, dtype = _header(member)
        stored = info.file_size - member.tell()
    if dtype.hasobject or not dtype.itemsize:
        raise ValueError(f"array {info.filename!r} holds Python objects, or nothing")
    if math.prod(shape) * dtype.itemsize != stored:
        raise ValueError(f"array {info.filename!r} of shape {shape} does not fill {stored:,} bytes")
    with archive.open(info) as member:
        return np.lib.format.read_array(member, allow_pickle=False)


def _header(member: Any) -> tuple[tuple[int, ...], np.dtype]:
    version = np.lib.format.read_magic(member)
    if version == (1, 0):
        shape, _, dtype = np.lib.format.read_array_header_1_0(member)
    else:
        shape, _, dtype = np.lib.format.read_array_header_2_0(member)
    if any(extent < 0 for extent in shape):
        raise ValueError(f"an array of shape {shape}")
    return shape, dtype


class _Bounded(io.RawIOBase):
    """A stream that fails behind a number of bytes."""

    def __init__(self, file: Any, most: int) -> None:
        self._file, self._most, self._left = file, most, most

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count = self._file.readinto(buffer)
        self._left -= count
        if self._left < 0:
            raise ValueError(
                f"it unpacks to more than {self._most:,} bytes, far more than such a file can mean"
            )
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def open_packed(path: Path) -> io.BufferedReader:
    """Return the unpacked bytes of a gzip file as a stream; reading raises `DAMAGED`.

    Raises:
        OSError: the file cannot be opened, or is a named pipe.
    """
    check_readable(path)
    most = most_unpacked(path.stat().st_size)
    return io.BufferedReader(_Bounded(gzip.open(path, "rb"), most))


def write_parameters(path: Path, params: Any, manifest: Mapping[str, Any]) -> None:
    """Write a tree of parameters and its manifest; a reader never sees half a file.

    Raises:
        CheckpointError: the file cannot be written.
    """
    arrays = flat_parameters(params)
    document = {**manifest, DIGEST: digest_of(arrays)}
    text = np.frombuffer(json.dumps(document, ensure_ascii=False).encode(), np.uint8)
    with writing(path, CheckpointError), whole_file(path) as file:
        np.savez_compressed(file, allow_pickle=False, **arrays, **{MANIFEST: text})


def read_parameters(path: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return the manifest and the arrays; `check_digest` compares them with their digest.

    Raises:
        CheckpointError: not such a file.
    """
    try:
        arrays = read_arrays(path)
        if MANIFEST not in arrays:
            raise ValueError("it has no manifest, which all that go_rl saves has")
        manifest = parse_json(arrays.pop(MANIFEST).tobytes())
    except FileNotFoundError as error:
        raise CheckpointError(f"{path}: no such file") from error
    except UNREADABLE as error:
        cut = isinstance(error, (EOFError, zipfile.BadZipFile, zlib.error))
        raise CheckpointError(
            f"{path}: cannot be read as weights ({reason(error)})"
            f"{'; it may be truncated, or another kind of file' if cut else ''}"
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
    want = {name: value.shape for name, value in _leaves(expected)}
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
    flat = {name: np.ascontiguousarray(value) for name, value in _leaves(params)}
    return dict(sorted(flat.items(), key=lambda item: item[0].split("/")))


def _leaves(tree: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Leaves of nested mappings, by name."""
    for name, value in tree.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}/{inner}", leaf) for inner, leaf in _leaves(value))
        else:
            yield name, value


def parameter_tree(arrays: Arrays) -> Any:
    """Return the tree that `flat_parameters` flattened."""
    tree: dict[str, Any] = {}
    for name, value in arrays.items():
        *path, last = name.split("/")
        inner = tree
        for each in path:
            inner = inner.setdefault(each, {})
        inner[last] = value
    return tree


def digest_of(arrays: Arrays) -> str:
    """Return SHA-256 over names, types, shapes and numbers."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        digest.update(f"{name} {arrays[name].dtype} {arrays[name].shape}".encode())
        digest.update(np.ascontiguousarray(arrays[name]).tobytes())
    return digest.hexdigest()
