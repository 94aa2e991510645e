"""What the processes of test_warm_worker.py are asked to do."""

import ctypes
import itertools
import os
import subprocess
import sys
import time

CALLS = itertools.count(1)


def process(_: object) -> int:
    """Who answers."""
    return os.getpid()


def nth_call(_: object) -> tuple[int, int]:
    """Who answers, for which time."""
    return os.getpid(), next(CALLS)


def act(order: tuple[str, float]) -> object:
    """Do what tests are about: raise, crash, hang, or just answer."""
    name, number = order
    return {
        "answer": lambda: (os.getpid(), number),
        "raise": lambda: divmod(number, 0),
        "unpicklable": lambda: lambda: None,
        "leave": lambda: sys.exit(int(number)),
        "exit": lambda: os._exit(int(number)),
        "signal": lambda: os.kill(os.getpid(), int(number)),
        "read": lambda: ctypes.string_at(0),
        "sleep": lambda: time.sleep(number),
        "hang": lambda: hang(number),
        "child": lambda: subprocess.run(["sleep", str(number)], check=True),
    }[name]()


def hang(seconds: float) -> None:
    """Sleep in compiled code that holds the interpreter lock."""
    ctypes.PyDLL(None).sleep(int(seconds))
