"""Atomic writing: under another name first, then renamed, so that no reader sees half a file.

Used for everything that go_rl writes under a name that the user chose. A rename would replace
whatever is there, a device node included, so only regular files are replaced.
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

from go_rl.core.errors import GoRLError

LONGEST = 60
"""Characters of the file's name in the name of the temporary file; file systems allow 255 bytes."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
)


@contextmanager
def writing(path: str | Path, error: type[GoRLError]) -> Iterator[None]:
    """Raise an ``error`` that names the path for an `OSError` of the block that writes it."""
    try:
        yield
    except OSError as reason:
        raise error(f"{path}: cannot be written ({reason.strerror})") from reason


@contextmanager
def whole_file(path: str | Path) -> Iterator[IO[bytes]]:
    """Yield a file that replaces ``path`` once the block has ended without an error.

    Missing folders are made; a symbolic link stays one, and its target is replaced. When the block
    raises, interrupts included, the old file stays.

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
    """Raise an `OSError`, whose ``strerror`` is a sentence, unless a file can have this name:
    nothing or a regular file has it, and its folders are not files."""
    check_parents(path)
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        return
    for is_kind, kind in _KINDS:
        if is_kind(mode):
            raise OSError(errno.EINVAL, f"it is {kind}, not a regular file", str(path))


def check_parents(path: str | Path) -> None:
    """Raise a `NotADirectoryError` where a folder above ``path`` is a file."""
    for place in Path(path).parents:
        try:
            is_folder = stat.S_ISDIR(os.stat(place).st_mode)
        except OSError:  # nothing there, unless a link leads nowhere
            is_folder = not os.path.islink(place)
        if not is_folder:
            raise NotADirectoryError(errno.ENOTDIR, f"{place} is not a folder", str(path))
