"""Writing files whole: aside first, then renamed, so that no reader ever sees half of one.

The one door for everything that go_rl writes under a name that the user chose. A rename would put
a file in the place of whatever is there, a device node included, so only regular files are
replaced.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

LONGEST = 60
"""Characters of the file's name that the name of the part repeats; file systems allow 255 bytes."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """Yield a file that takes the place of ``path`` once the block has ended well.

    Folders that lack are made; a symbolic link stays one, and what it points to is replaced. When
    the block raises, interrupts included, what was there before stays.

    Raises:
        OSError: see `check_target`; or the disk is full, or the folder cannot be written.
    """
    check_target(path)
    path = Path(os.path.realpath(path))
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name[:LONGEST]}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        with part.open("xb") as file:
            yield file
        os.replace(part, path)
    except OSError as error:  # without a name, or with the temporary one
        if error.errno is None or error.filename not in (None, str(part)):
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file whole, in UTF-8; see `whole_file`."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str | Path, content: bytes) -> None:
    """Write a file whole; see `whole_file`."""
    with whole_file(path) as file:
        file.write(content)


def check_target(path: str | Path) -> None:
    """Raise an `OSError`, whose ``strerror`` is a sentence, unless a file can have this name: there
    is none yet, or a regular one, and no file is in the way of its folders."""
    check_parents(path)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    for is_kind, kind in _KINDS:
        if is_kind(mode):
            raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", str(path))


def check_parents(path: str | Path) -> None:
    """Raise a `NotADirectoryError` where a file is in the way of the folders above ``path``."""
    for place in Path(path).parents:
        if os.path.lexists(place) and not os.path.isdir(place):
            raise NotADirectoryError(errno.ENOTDIR, f"{place} is not a folder", str(path))
