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
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from go_rl.core.errors import GoRLError

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
    made = [each for each in (path.parent, *path.parent.parents) if not each.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        number = _taken(path, target)
    except OSError as error:
        raise RunLockError(f"{target}: cannot be locked ({path}: {error.strerror})") from error
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()
        os.close(number)
        for folder in made:
            with suppress(OSError):
                folder.rmdir()  # only an empty one goes


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


def _taken(path: Path, target: Path) -> int:
    """The descriptor of the lock's file, which this process holds."""
    import fcntl

    for _ in range(ATTEMPTS):
        number = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
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
