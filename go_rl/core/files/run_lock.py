"""`locked`: one run at a time writes into a folder, or under the name of a file.

The lock is a file that tells who holds it, and the kernel's lock on that file (``flock``), which
ends with the process however it ends: what a dead process of this machine left behind is no lock. A
file that a process of another machine left, over a file system that both share, stays one.
"""

from __future__ import annotations

import functools
import inspect
import json
import os
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from go_rl.core.errors import GoRLError
from go_rl.core.files.scratch_folder import END, START

LOCK = ".lock"
"""Name of the file in a folder; beside a file it begins with a point and the file's name."""
ATTEMPTS = 100
"""Times that a file is opened anew which its holder has just removed."""
SETTLING = 0.05
"""Seconds after which a lock whose holder is not written yet is read again."""


P = ParamSpec("P")
R = TypeVar("R")


class RunLockError(GoRLError):
    """Another run writes into the folder, or the lock cannot be taken."""


class TakenError(RunLockError):
    """Another run writes into the folder."""


@contextmanager
def locked(target: str | Path, *, file: bool = False) -> Iterator[None]:
    """Hold the lock of a folder or a file while the block runs. The folder is made; it goes again
    where it is then empty.

    Args:
        target: a folder.
        file: it is the name of a file instead, in whose folder the lock lies.

    Raises:
        RunLockError: another run holds it, this process's own included, which is named; or the lock
            cannot be written.
    """
    target = Path(target)
    path = target.with_name(f".{target.name}{LOCK}") if file else target / LOCK
    made: list[Path] = []
    try:
        number = _taken(path, target, made)
    except OSError as error:
        raise RunLockError(f"{target}: cannot be locked ({path}: {error.strerror})") from error
    try:
        yield
    finally:
        _remove(path, made)
        os.close(number)


def exclusive(argument: str, *, file: bool = False) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return a decorator: the function runs while it holds the lock (`locked`) of what it is given
    as this argument, by position or by name: a folder, or the name of a file."""

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        signature = inspect.signature(function)

        @functools.wraps(function)
        def run(*args: P.args, **kwargs: P.kwargs) -> R:
            with locked(signature.bind(*args, **kwargs).arguments[argument], file=file):
                return function(*args, **kwargs)

        return run

    return decorate


def _remove(path: Path, made: Sequence[Path]) -> None:
    """Remove the lock's file, and the folders that were made for it where nothing is in them.

    While the lock is held the first of them is put aside: a run that begins in it at the same time
    makes it anew, and removes it in the end.
    """
    folder = path.parent
    with suppress(OSError):
        if folder in made and all(_is_passing(each, path) for each in folder.iterdir()):
            aside = folder.with_name(f"{START}{os.getpid()}_{folder.name}{END}")
            folder.rename(aside)
            shutil.rmtree(aside, ignore_errors=True)
        else:
            path.unlink()
    for each in made:
        with suppress(OSError):
            each.rmdir()  # only an empty one goes


def _is_passing(file: Path, lock: Path) -> bool:
    """Whether a file is the lock, or a temporary folder of a run that has just begun."""
    return file == lock or (file.name.startswith(START) and file.name.endswith(END))


def _taken(path: Path, target: Path, made: list[Path]) -> int:
    """The descriptor of the lock's file, which this process holds; folders that are made for it are
    added to ``made``."""
    import fcntl

    vanished: OSError | None = None
    for _ in range(ATTEMPTS):
        try:
            for folder in (*reversed(path.parent.parents), path.parent):
                with suppress(FileExistsError):
                    folder.mkdir()
                    made.insert(0, folder)
            number = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError as error:  # perhaps a run has just removed what it had made
            vanished = error
            continue
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _holder(number)
            os.close(number)
            raise _refusal(target, path, holder) from None
        if not _is(path, number):  # its holder removed it meanwhile
            os.close(number)
            continue
        holder = _holder(number, wait=False)
        if holder and holder.get("host") != socket.gethostname():
            os.close(number)
            raise _refusal(target, path, holder)
        os.ftruncate(number, 0)
        os.pwrite(number, json.dumps(_own()).encode(), 0)
        return number
    if vanished is not None:
        raise vanished
    raise RunLockError(f"{target}: its lock {path} changes all the time; try again")


def _own() -> dict[str, Any]:
    return {
        "process": os.getpid(), "host": socket.gethostname(),
        "since": time.strftime("%Y-%m-%d %H:%M:%S"),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:4]]),
    }  # fmt: skip


def _is(path: Path, number: int) -> bool:
    """Whether a descriptor is of the file that has a name now."""
    try:
        there, ours = os.stat(path), os.fstat(number)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino)


def _holder(number: int, wait: bool = True) -> dict[str, Any]:
    """Content of a lock's file; nothing where it is empty or damaged, as while it is written."""
    for _ in range(2 if wait else 1):
        try:
            told = json.loads(os.pread(number, 4096, 0).decode())
        except ValueError:
            told = None
        if isinstance(told, dict):
            return told
        if wait:
            time.sleep(SETTLING)
    return {}


def _refusal(target: Path, path: Path, holder: dict[str, Any]) -> TakenError:
    who = f"process {holder.get('process', '?')} on {holder.get('host', '?')}"
    since = f" since {holder['since']}" if "since" in holder else ""
    command = f" ({holder['command']})" if holder.get("command") else ""
    away = holder.get("host", socket.gethostname()) != socket.gethostname()
    ends = f", or delete {path} if that run is over" if away else ""
    return TakenError(
        f"{target}: another run writes there: {who}{command}{since}; wait for its end or name "
        f"another{ends}"
    )
