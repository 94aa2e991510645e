"""Reading untrusted gzip files: nothing is unpacked far beyond what such a file can mean."""

from __future__ import annotations

import gzip
import io
import zlib
from pathlib import Path
from typing import Any

from go_rl.core.files.paths import check_readable
from go_rl.runtime.array_file import most_unpacked

DAMAGED = (OSError, EOFError, ValueError, zlib.error)
"""Raised while a file of `open_packed` is read: it is no gzip file, damaged, or too large."""


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
