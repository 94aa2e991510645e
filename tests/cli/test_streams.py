"""Output where the terminal is poor: narrow encodings, and streams that are closed."""

import io
import json
import os
import subprocess
import sys

import pytest

from go_rl.cli.main import prepare_streams


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
