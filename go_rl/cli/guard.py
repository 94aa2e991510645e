"""`guarded`: run a command; what it raises becomes a line on standard error and an exit code."""

from __future__ import annotations

import errno
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress

from go_rl.cli.console import complain
from go_rl.cli.exit_codes import BAD_INPUT, DEFECT, INTERRUPTED, PIPE_CLOSED, TERMINATED
from go_rl.cli.stopping import Terminated
from go_rl.core import GoRLError

DISK = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
"""Error numbers of a full disk: no defect of go_rl, whichever file it was."""


def guarded(run: Callable[[], int]) -> int:
    """Return the exit code of a command (`go_rl.cli.exit_codes`); standard output is flushed.

    Raises:
        SystemExit: the command line was wrong or asked for help.
    """
    _open_streams()
    try:
        return _flushed(run)
    except GoRLError as error:
        complain(str(error))
        return BAD_INPUT
    except KeyboardInterrupt as stop:
        return _stopped(stop)
    except BrokenPipeError:
        return PIPE_CLOSED
    except OSError as error:
        if error.filename is None and error.errno not in DISK:
            return _defect()
        complain(_about(error))
        return BAD_INPUT
    except Exception as error:
        stop = _stop_behind(error)
        return _stopped(stop) if stop else _defect()
    finally:
        _discard_what_cannot_be_written()


def _flushed(run: Callable[[], int]) -> int:
    """The code of the command, once what it printed is out: a verdict that nobody got is none."""
    try:
        code = run()
    except SystemExit as leaving:
        if isinstance(leaving.__context__, BrokenPipeError):  # rich leaves so, with code 1
            raise leaving.__context__ from None
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return code


def _stopped(stop: KeyboardInterrupt) -> int:
    complain(str(stop) or "stopped")
    exec("")  # CPython forgets that compiled code, such as an import, was interrupted
    return TERMINATED if isinstance(stop, Terminated) else INTERRUPTED


def _stop_behind(error: BaseException | None) -> KeyboardInterrupt | None:
    """The user's interrupt that an exception was made of, as by Python 3.11 where a class is
    being made; None: it has another reason."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error


def _about(error: OSError) -> str:
    """Sentence about a file that could not be read or written; standard output has no name."""
    return f"{error.filename or 'standard output'}: cannot be used ({error.strerror})"


def _defect() -> int:
    with suppress(OSError):
        traceback.print_exc()
    complain(
        f"this is a defect in go_rl, not in your input; please report it with the lines above "
        f"(exit code {DEFECT})"
    )
    return DEFECT


def _open_streams() -> None:
    """Give a process that was started without standard output or error one that goes nowhere."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, number)
            setattr(sys, name, open(number, "w", closefd=False))  # noqa: SIM115 - for good


def _discard_what_cannot_be_written() -> None:
    """The interpreter flushes once more when it ends, and would complain a second time."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
