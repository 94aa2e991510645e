"""`scratch_folder`: a temporary folder that a killed run leaves only until the next one starts.

Its maker holds the kernel's lock on it (``flock``), which ends with the process however it ends: a
folder that can be locked has no owner any more.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

START, END = ".go_rl_", ".scratch"
"""How the name of every such folder begins and ends."""
ATTEMPTS = 100
"""Times that a folder is made anew which another run has just taken for a dead one's."""


@contextmanager
def scratch_folder(kind: str, parent: str | Path | None = None) -> Iterator[Path]:
    """Yield a new folder, which is removed at the end; those of dead processes are removed first.

    Args:
        kind: a word in its name that tells what it is for.
        parent: folder that it is made in; None: that for temporary files.

    Raises:
        OSError: it cannot be made.
    """
    parent = Path(tempfile.gettempdir() if parent is None else parent)
    _remove_dead(parent)
    folder, number = _made(kind, parent)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(number)


def _made(kind: str, parent: Path) -> tuple[Path, int]:
    """A new folder and its descriptor, locked where the file system has locks."""
    for _ in range(ATTEMPTS):
        folder = Path(tempfile.mkdtemp(prefix=f"{START}{kind}_", suffix=END, dir=parent))
        with suppress(FileNotFoundError):
            number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            with suppress(OSError):
                _lock(number)
            if folder.exists():
                return folder, number
            os.close(number)  # a run that cleans came between
    raise FileNotFoundError(2, "temporary folders vanish as soon as they are made", str(parent))


def _remove_dead(parent: Path) -> None:
    """Remove this user's folders whose owners are dead."""
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(START) and entry.name.endswith(END):
                with suppress(OSError):
                    _remove_if_dead(entry.path)


def _remove_if_dead(folder: str) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        if os.fstat(number).st_uid == os.geteuid():
            _lock(number)
            shutil.rmtree(folder, ignore_errors=True)
    finally:
        os.close(number)


def _lock(number: int) -> None:
    """Lock a folder; raises `OSError` where another process holds it, or no lock can be had."""
    import fcntl

    fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
