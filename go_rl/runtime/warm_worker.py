"""`WarmWorker`: a function called in a process of its own, so that a crash or a hang is a result.

The process stays warm: imports and compiled code serve the next call.
"""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from types import MappingProxyType
from typing import Any

from go_rl.core.errors import GoRLError

GRACE_SECONDS = 5.0
"""Seconds that a process gets to end by itself, before it is killed."""
NOTHING: Mapping[str, str] = MappingProxyType({})
STDERR = 2

_PROGRAM = """
import sys
from multiprocessing.connection import Connection
connection = Connection(int(sys.argv[1]))
sys.path[:] = connection.recv()
from go_rl.runtime.warm_process import serve
serve(connection, int(sys.argv[2]), sys.argv[3])
"""


class WorkerError(GoRLError):
    """A worker gave no result, or was set up wrongly."""


class WorkerTimeout(WorkerError):  # noqa: N818 - what happened, not who was wrong
    """The call took too long; its process was killed."""


class WorkerDied(WorkerError):  # noqa: N818
    """The process ended during the call; the message names its exit status or signal."""


class WorkerFailed(WorkerError):  # noqa: N818
    """The function raised; the process stays warm. A note holds the traceback."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(kind, message)
        self.kind = kind
        """Name of the type raised, such as ``ValueError``."""
        self.message = message
        """Message of the error."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


@dataclass(frozen=True)
class _Process:
    """A running process and its connection to this one."""

    popen: subprocess.Popen[bytes]
    connection: Connection
    lifeline: Connection
    """Nothing is sent through it: when its last copy here is closed, the kernel kills the process
    and all that it started."""

    def kill(self) -> None:
        """Kill the process and those it started."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, signal.SIGKILL)

    def end(self, grace: float) -> int:
        """Return the exit status; the process has ``grace`` seconds to end by itself."""
        self.connection.close()
        with suppress(subprocess.TimeoutExpired):
            self.popen.wait(grace)
        self.kill()
        self.lifeline.close()
        return self.popen.wait()


class _Deadline:
    """Context in which a process is killed when the time is over, which ends waiting for it."""

    def __init__(self, process: _Process, seconds: float) -> None:
        self.passed = False
        self._process = process
        self._timer = threading.Timer(seconds, self._pass)
        self._timer.daemon = True

    def __enter__(self) -> _Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()

    def _pass(self) -> None:
        self.passed = True
        self._process.kill()


class WarmWorker:
    """One process that calls one function, payload by payload; made by the first call.

    What the function prints goes to the standard error. The process ends with the one that started
    it (on Linux even in the middle of a call). Calls from several threads take turns.

    Args:
        function: ``module:name``; the process finds modules where this one does, but does not
            import this one's main module.
        core: the CPU core, or the cores, that it runs on, before it imports anything large; None:
            any.
        environment: variables set beside those of this process, before any import.

    Raises:
        WorkerError: ``function`` is not of that form.
    """

    def __init__(
        self,
        function: str,
        core: int | Collection[int] | None = None,
        environment: Mapping[str, str] = NOTHING,
    ) -> None:
        module, colon, name = function.partition(":")
        if not (module and colon and name) or ":" in name:
            raise WorkerError(f"function must be 'module:name', not {function!r}")
        self._function = function
        self._core = core
        self._environment = dict(environment)
        self._process: _Process | None = None
        self._turn = threading.Lock()
        self._closed = False

    def call(self, payload: Any, timeout: float) -> Any:
        """Return the function's result; after a timeout or a death, the next call starts a
        fresh process.

        Args:
            payload: the function's argument; pickled, as its result is.
            timeout: seconds, which include starting a process and its imports where there is none.

        Raises:
            WorkerDied: the process ended: a crash, or lack of memory.
            WorkerError: the worker is closed, the timeout is no time, or the core cannot be had.
            WorkerFailed: the function raised, cannot be imported, or its result cannot be pickled.
            WorkerTimeout: the time is over.
        """
        if not 0 < timeout <= threading.TIMEOUT_MAX:
            raise WorkerError(f"timeout must be finite and above 0 seconds, not {timeout!r}")
        request = pickle.dumps(payload, pickle.HIGHEST_PROTOCOL)
        with self._turn:
            answer = self._exchange(request, timeout)
        worked, content = pickle.loads(answer)
        if worked:
            return content
        kind, message, trace = content
        failure = WorkerFailed(kind, message)
        failure.add_note(trace)
        raise failure

    def stop(self) -> None:
        """End the process at once, also in the middle of a call, which raises `WorkerDied`."""
        if (process := self._process) is not None:
            process.kill()

    def close(self) -> None:
        """End the process; a closed worker cannot be called."""
        with self._turn:
            self._closed = True
            self._end(GRACE_SECONDS)

    def __enter__(self) -> WarmWorker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _exchange(self, request: bytes, timeout: float) -> bytes:
        process = self._running()
        deadline = _Deadline(process, timeout)
        try:
            with deadline:
                process.connection.send_bytes(request)
                answer = process.connection.recv_bytes()
        except (EOFError, OSError):
            status = self._end(GRACE_SECONDS)
            if deadline.passed:
                raise WorkerTimeout(f"no answer in {timeout:g} s") from None
            raise WorkerDied(f"the process {_how_it_ended(status)}") from None
        except BaseException:  # an interrupt: its answer must not become the next call's
            self._end(0.0)
            raise
        if deadline.passed:  # in the moment between the answer and here
            self._end(0.0)
        return answer

    def _running(self) -> _Process:
        if self._closed:
            raise WorkerError(f"the worker of {self._function} is closed; make another")
        if self._process is not None and self._process.popen.poll() is not None:
            self._end(0.0)  # it died between two calls
        if self._process is None:
            self._process = self._start()
        return self._process

    def _start(self) -> _Process:
        ours, theirs = Pipe()
        their_lifeline, lifeline = Pipe(duplex=False)
        ends = theirs.fileno(), their_lifeline.fileno()
        # -P: the working folder comes before the standard library only where it does so here.
        arguments = ["-P", "-c", _PROGRAM, *map(str, ends), self._function]
        with theirs, their_lifeline:
            popen = subprocess.Popen(
                [sys.executable, *arguments], pass_fds=ends, process_group=0,
                stdin=subprocess.DEVNULL, stdout=STDERR, env={**os.environ, **self._environment},
            )  # fmt: skip
        process = _Process(popen, ours, lifeline)
        try:
            _pin(popen.pid, self._core)
            with suppress(OSError):  # it died already: the call will say so
                ours.send(sys.path)  # it has been waiting for this
        except BaseException:
            process.end(0.0)
            raise
        return process

    def _end(self, grace: float) -> int:
        """End the process, where there is one, and return its exit status."""
        process, self._process = self._process, None
        return 0 if process is None else process.end(grace)


def _pin(pid: int, core: int | Collection[int] | None) -> None:
    if core is None:
        return
    if sys.platform != "linux":
        raise WorkerError(f"core {core}: this system cannot pin a process; leave core out")
    try:
        os.sched_setaffinity(pid, {core} if isinstance(core, int) else set(core))
    except (OSError, ValueError, OverflowError):
        raise WorkerError(
            f"core {core} cannot be had; this process may use "
            f"{', '.join(map(str, sorted(os.sched_getaffinity(0))))}"
        ) from None


def _how_it_ended(status: int) -> str:
    if status >= 0:
        return f"ended with exit status {status}"
    with suppress(ValueError):
        return f"was killed by {signal.Signals(-status).name}"
    return f"was killed by signal {-status}"
