"""Reading untrusted ``.npz`` archives: nothing is unpacked that the file does not really hold.

A small archive can promise terabytes: in the header of an array, which NumPy allocates before it
reads, or as gigabytes of zeros, which compress a thousandfold.
"""

from __future__ import annotations

import math
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np

FREE_BYTES = 256 << 20
"""Bytes to which an archive may always unpack."""
LARGEST_RATIO = 100
"""Beyond `FREE_BYTES`, largest ratio of unpacked to packed size."""
UNREADABLE = (OSError, ValueError, EOFError, LookupError, RuntimeError, TypeError, ArithmeticError,
              SyntaxError, struct.error, zipfile.BadZipFile, zlib.error)  # fmt: skip
"""Raised by `read_arrays` for a damaged file."""


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
        raise ValueError("it is a folder, a device or a pipe, and no file")
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
