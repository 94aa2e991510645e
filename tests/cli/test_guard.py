"""Whatever happens to a command has one exit code and, but for defects, one line."""

import errno
import io
import json
import os
import subprocess
import sys

import pytest

from go_rl.cli import guard
from go_rl.cli.exit_codes import BAD_INPUT, DEFECT, INTERRUPTED, OK, PIPE_CLOSED, REJECTED
from go_rl.cli.main import prepare_streams
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


def go_rl(*words: str, encoding: str = "utf-8", close: str = "") -> subprocess.CompletedProcess:
    """Run the command in a process of its own, with a stream closed by the shell."""
    script = 'exec "$0" -m go_rl "$@" ' + close
    return subprocess.run(
        ["sh", "-c", script, sys.executable, *words],
        capture_output=True, timeout=120, check=False,
        env=os.environ | {"PYTHONIOENCODING": encoding},
    )  # fmt: skip


def test_characters_that_an_encoding_lacks_get_plain_ones(monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    prepare_streams()
    sys.stdout.write("3 µs, 1.5×, – │┏━┓ ü 中")
    sys.stdout.flush()
    assert raw.getvalue() == b"3 us, 1.5x, - |+-+ ? ?"
    monkeypatch.undo()


@pytest.mark.slow
@pytest.mark.parametrize(("close", "printed"), [("2>&- <&-", True), (">&- 2>&- <&-", False)])
def test_closed_streams(close, printed):
    found = go_rl("hardware", "show", "ring4", "--json", close=close)
    assert (found.returncode, found.stderr) == (0, b"")
    assert (json.loads(found.stdout)["name"] == "ring4") if printed else found.stdout == b""


def test_a_table_in_ascii():
    found = go_rl("hardware", "show", "ring4", encoding="ascii")
    assert (found.returncode, found.stderr) == (0, b"")
    assert b"launch us" in found.stdout
