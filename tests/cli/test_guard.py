"""Whatever happens to a command has one exit code and, but for defects, one line."""

import errno
import os
import subprocess
import sys

import pytest

from go_rl.cli import guard
from go_rl.cli.exit_codes import BAD_INPUT, DEFECT, INTERRUPTED, OK, PIPE_CLOSED, REJECTED
from go_rl.core import PlanError

CHILD = (
    "import sys; from go_rl.cli.console import console; from go_rl.cli.guard import guarded; "
    "sys.exit(guarded(lambda: console().print('accepted') or {code}))"
)


def raising(error: BaseException):
    def run() -> int:
        raise error

    return run


def left_by_rich() -> int:
    """Rich answers a closed pipe with code 1, which is "rejected"."""
    try:
        raise BrokenPipeError
    except BrokenPipeError:
        raise SystemExit(1)  # noqa: B904


def interrupted_class() -> int:
    """Python 3.11 makes a RuntimeError of what comes up while a class is being made."""

    class Interrupts:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyboardInterrupt

    return len(type("Made", (), {"field": Interrupts()}).__name__)


@pytest.mark.parametrize(
    ("run", "code", "said"),
    [
        (interrupted_class, INTERRUPTED, "stopped"),
        (lambda: OK, OK, ""),
        (lambda: REJECTED, REJECTED, ""),
        (raising(PlanError("device must\nlist integers")), BAD_INPUT, "device must list integers"),
        (raising(KeyboardInterrupt()), INTERRUPTED, "stopped"),
        (raising(BrokenPipeError()), PIPE_CLOSED, ""),
        (left_by_rich, PIPE_CLOSED, ""),
        (raising(PermissionError(13, "Permission denied", "runs/x")), BAD_INPUT, "runs/x: cannot"),
        (raising(OSError(errno.ENOSPC, "No space left on device")), BAD_INPUT, "No space left"),
    ],
)
def test_what_is_expected_is_one_line(run, code, said, capsys):
    assert guard.guarded(run) == code
    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == bool(said)


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("x"), KeyError("x"), MemoryError(), OSError(errno.EMFILE, "many")]
)
def test_a_defect_is_told_from_a_verdict(error, capsys):
    assert guard.guarded(raising(error)) == DEFECT
    err = capsys.readouterr().err
    assert err.startswith("Traceback (most recent call last)")
    assert err.endswith("report it with the lines above (exit code 70)\n")


@pytest.mark.parametrize("leaving", [SystemExit(2), SystemExit(0)])
def test_the_parser_leaves_as_it_likes(leaving):
    with pytest.raises(SystemExit) as error:
        guard.guarded(raising(leaving))
    assert error.value.code == leaving.code


def child(code: int, stdout: int) -> subprocess.CompletedProcess[str]:
    program = [sys.executable, "-c", CHILD.format(code=code)]
    return subprocess.run(program, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_verdict_that_cannot_be_written_is_none():
    with open("/dev/full", "w") as full:
        found = child(REJECTED, full.fileno())
    assert found.returncode == BAD_INPUT
    assert found.stderr == ("go-rl: standard output: cannot be used (No space left on device)\n")


def test_a_verdict_that_nobody_reads_is_none():
    reader, writer = os.pipe()
    os.close(reader)
    try:
        found = child(OK, writer)
    finally:
        os.close(writer)
    assert (found.returncode, found.stderr) == (PIPE_CLOSED, "")
