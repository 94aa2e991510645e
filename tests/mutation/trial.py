"""The trial: one file is read under limits of memory and time; only a `GoRLError` may come out."""

import importlib
import os
import resource
import select
import signal
import tempfile
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import NoReturn
from unittest import mock

from runner.suite import TooLongError, time_limit

from .kinds import KINDS, mutant

MEMORY_BYTES = 4 << 30
"""What reading one file may take beyond what the process holds when it begins."""
SECONDS = 30
"""Longest that reading one file may take."""
GUARDED = ("onnx", "stablehlo", "bytecode")
"""Kinds whose readers leave C++ code to a subprocess."""

SHARED = ("jax._src.interpreters.mlir", "jax._src.export.serialization_generated",
          "jaxlib.mlir.dialects.stablehlo")  # fmt: skip
"""What the workers of `GUARDED` import on first use: here once, before they are forked."""


class Outcome(Enum):
    """How a trial may end."""

    READ = "read"
    """The file was read."""
    REFUSED = "refused"
    """A `GoRLError` said what is wrong with it."""
    ESCAPED = "escaped"
    """Another exception came out."""
    LEFTOVER = "leftover"
    """A `GoRLError`, but from the guard at the door: no reader foresaw what is wrong."""
    TOO_LARGE = "too large"
    """More memory than `MEMORY_BYTES`."""
    TOO_LONG = "too long"
    """More time than `SECONDS`."""

    @property
    def failed(self) -> bool:
        """Whether it breaks the contract; a leftover keeps it, if narrowly."""
        return self not in (Outcome.READ, Outcome.REFUSED, Outcome.LEFTOVER)


@dataclass(frozen=True)
class Failure:
    """A mutant that broke the contract (or a leftover, where these are asked for)."""

    kind: str
    number: int
    outcome: Outcome
    detail: str
    """The exception with its innermost place, or the signal."""


ESCAPED_NAME = "escaped.txt"
"""Where a forked worker leaves the exception that it let out."""


def trial(kind: str, data: bytes, forked: bool = False) -> tuple[Outcome, str]:
    """Read ``data`` as a file of a kind; return how it ended and a sentence.

    Args:
        kind: one of `KINDS`.
        data: what the file holds.
        forked: run the C++ code of ONNX and XLA in a fork of this process, which has imported
            everything, and not in a new one: many times faster.
    """
    from go_rl.core import GoRLError
    from go_rl.graphs.readers import guarded

    run = run_forked if forked else guarded.run_guarded
    with (
        tempfile.TemporaryDirectory(prefix="mutant_") as folder,
        mock.patch.object(guarded, "run_guarded", run),
    ):
        path = Path(folder) / f"mutant{KINDS[kind].suffix}"
        path.write_bytes(data)
        try:
            with _limits():
                KINDS[kind].read(path)
        except GoRLError as error:
            return _judge(error)
        except TooLongError as error:
            return Outcome.TOO_LONG, _place(error)
        except MemoryError as error:
            return Outcome.TOO_LARGE, _place(error)
        except Exception as error:
            return Outcome.ESCAPED, _place(error)
    return Outcome.READ, ""


def run_mutants(kind: str, start: int, count: int, leftovers: bool = False) -> list[Failure]:
    """Try mutants ``start`` to ``start + count - 1`` of a kind; return what broke the contract.

    Args:
        kind: one of `KINDS`.
        start, count: numbers; each mutant depends on its own number alone.
        leftovers: report what only the guard at the door refused, too.
    """
    return [f for i in range(start, start + count) for f in _try(kind, i, leftovers)]


def _try(kind: str, number: int, leftovers: bool) -> list[Failure]:
    data = mutant(kind, number)
    outcome, detail = trial(kind, data, forked=True)
    if outcome.failed and kind in GUARDED:  # what breaks this process, the subprocess may bear
        before = detail
        outcome, detail = trial(kind, data)
        if not outcome.failed:
            outcome, detail = Outcome.LEFTOVER, before
    wanted = outcome.failed or (leftovers and outcome is Outcome.LEFTOVER)
    return [Failure(kind, number, outcome, detail)] if wanted else []


def run_forked(module: str, folder: Path, timeout: float) -> str:
    """What `go_rl.graphs.readers.guarded.run_guarded` does, in a child that has imported
    everything."""
    for name in (module, *SHARED):
        importlib.import_module(name)
    with warnings.catch_warnings():
        # JAX and Python warn of locks that other threads may hold: the child calls neither JAX nor
        # threads, and one that waits forever is killed.
        warnings.simplefilter("ignore")
        child = os.fork()
    if child == 0:
        _serve_forked(module, folder)
    pidfd = os.pidfd_open(child)
    try:
        ended = bool(select.select([pidfd], [], [], timeout)[0])
    finally:
        os.close(pidfd)
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    if not ended:
        raise TimeoutError
    escaped = folder / ESCAPED_NAME
    if escaped.exists():
        raise RuntimeError(escaped.read_text())
    return f"status {status}" if status else ""


def _serve_forked(module: str, folder: Path) -> NoReturn:
    """Do a worker's work; an exception that the worker lets out is left in a file."""
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        importlib.import_module(module).main(folder)
    except BaseException as error:
        (folder / ESCAPED_NAME).write_text(_place(error))
    finally:
        os._exit(0)


def _judge(error: BaseException) -> tuple[Outcome, str]:
    """A refusal whose cause is the guard's own is a leftover; one of memory is too large."""
    if isinstance(error.__cause__, MemoryError):
        return Outcome.TOO_LARGE, _place(error.__cause__)
    if getattr(error, "unforeseen", False):
        return Outcome.LEFTOVER, _place(error.__cause__ or error)
    return Outcome.REFUSED, str(error)


def _place(error: BaseException) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "go_rl" in f.filename]
    last = frames[-1] if frames else None
    where = f"{Path(last.filename).name}:{last.lineno}" if last else "?"
    return f"{where} {type(error).__name__}: {str(error)[:200]}"


@contextmanager
def _limits() -> Iterator[None]:
    """Limit address space and time of what runs inside."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_address_space() + MEMORY_BYTES, before[1]))
    try:
        with time_limit(SECONDS):
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _address_space() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
