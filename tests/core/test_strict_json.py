"""Files: strict JSON, whole files, folders for scratch, files from outside."""

import errno
import io
import os
import signal
import stat
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from go_rl.core.files import strict_json
from go_rl.core.files.scratch_folder import scratch_folder
from go_rl.core.files.strict_json import DEEPEST, parse_json, read_json, shown
from go_rl.core.files.whole_file import check_parents, check_target, whole_file, write_bytes
from go_rl.runtime.array_file import UNREADABLE, read_arrays


def test_json_is_read():
    document = b'{"a": [1, 2.5, null, true, "\xc3\xa9"], "b": {"a": -1e300}}'
    assert parse_json(document) == {"a": [1, 2.5, None, True, "é"], "b": {"a": -1e300}}
    assert parse_json(b'\xef\xbb\xbf["\\ud83d\\ude00"]') == ["\U0001f600"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"\n ", "it is empty"),
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b"[-Infinity]", "-Infinity is no JSON number"),
        (b"[1e400]", "'1e400' is too large"),
        (b"[-1e999]", "too large"),
        (b'{"a": 1, "a": 1}', "field 'a' is there twice"),
        (b'{"x": {"a": 1, "b": 2, "a": 3}}', "field 'a' is there twice"),
        (b'{"a": "\xff"}', "not UTF-8 at byte 7"),
        (b"[" * 100_000, "nest deeper than 64 levels"),
        (b"[" * 100_000 + b"]" * 100_000, "nest deeper than 64 levels"),
        (b"[" * 65 + b"]" * 65, "nest deeper than 64 levels"),
        (b'{"a":' * 65 + b"1" + b"}" * 65, "nest deeper than 64 levels"),
        (b"9" * 5000, "digits"),
        (b"", "it is empty"),
        (b"{", "Expecting property name"),
        (b'["\\ud800"]', "half a surrogate pair"),
    ],
)
def test_what_is_no_json_is_refused(content, words):
    with pytest.raises(ValueError, match=words) as error:
        parse_json(content)
    assert len(str(error.value)) < 200


def test_what_never_ends_is_not_read_to_the_end(monkeypatch):
    monkeypatch.setattr(strict_json, "MOST_BYTES", 1 << 20)
    with pytest.raises(ValueError, match="more than 1 MiB"):
        read_json("/dev/zero")


def test_the_deepest_nesting_is_read():
    assert parse_json(b"[" * DEEPEST + b"]" * DEEPEST)


@pytest.mark.parametrize("value", ["x" * 10_000, [list(range(1000))] * 1000, 10**4000, {"a": "b"}])
def test_messages_stay_short(value):
    assert len(shown(value)) < 200
    assert shown("node 7") == "'node 7'"


def member(shape, content, descr="<f8"):
    """An array file with any shape in its header."""
    header = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (member((2**40,), b""), "does not fill 0 bytes"),
        (member((2**40, 2**40), bytes(8)), "does not fill 8 bytes"),
        (member((2,), bytes(24)), "does not fill 24 bytes"),
        (member((2**62,), b"", "|S0"), "Python objects, or nothing"),
        (member((1,), bytes(8), "|O"), "Python objects"),
        (bytes(257 << 20), "it unpacks to 269,484,032 bytes"),
    ],
)
def test_archives_that_promise_more_than_they_hold(tmp_path, content, message):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("x.npy", content)
    with pytest.raises(UNREADABLE, match=message):
        read_arrays(path)


def test_arrays_come_back_as_they_were(tmp_path):
    arrays = {"a": np.arange(6.0).reshape(2, 3), "b": np.array(7), "c": np.zeros((0, 4), np.int8)}
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    (tmp_path / "a.npz").write_bytes(file.getvalue())
    found = read_arrays(tmp_path / "a.npz")
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError, ValueError])
def test_what_was_there_stays_when_the_writer_stops(stop, tmp_path):
    path = tmp_path / "weights.npz"
    path.write_bytes(b"old")

    def stopped() -> None:
        with whole_file(path) as file:
            file.write(b"half of the n")
            file.flush()
            raise stop

    with pytest.raises(stop):
        stopped()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_full_disk_is_told_of_the_file(tmp_path):
    def full() -> None:
        with whole_file(tmp_path / "plan.json"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left") as error:
        full()
    assert error.value.filename == str(tmp_path / "plan.json")
    assert not list(tmp_path.iterdir())


def test_a_link_stays_one(tmp_path):
    (tmp_path / "kept").mkdir()
    real, link = tmp_path / "kept" / "plan.json", tmp_path / "plan.json"
    link.symlink_to(real)
    for content in (b"first, of a link that leads nowhere yet", b"second"):
        write_bytes(link, content)
        assert link.is_symlink()
        assert real.read_bytes() == content


def test_a_pipe_is_not_replaced(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="it is a pipe, not a regular file"):
            write_bytes(tmp_path / name, b"")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "pipe"]


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full", "/dev/stdin/../null"])
def test_a_device_is_refused(device):
    with pytest.raises(OSError, match=r"it is a device|is not a folder"):
        check_target(device)


def test_a_file_above_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    for check in (check_parents, check_target, lambda path: write_bytes(path, b"")):
        with pytest.raises(NotADirectoryError) as error:
            check(tmp_path / "file" / "out" / "plan.json")
        assert error.value.strerror == f"{tmp_path / 'file'} is not a folder"


HOLDER = """
import sys
from pathlib import Path
from go_rl.core.files.scratch_folder import scratch_folder
with scratch_folder("plan", Path(sys.argv[1])) as folder:
    (folder / "half").write_text("")
    print(folder, flush=True)
    sys.stdin.read()
"""


def names(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


def test_it_goes_with_all_in_it(tmp_path):
    with scratch_folder("plan", tmp_path) as folder:
        (folder / "deeper").mkdir()
        assert names(tmp_path) == [folder.name]
    assert names(tmp_path) == []


def test_what_a_killed_process_left_goes_and_what_a_living_one_has_stays(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert holder.stdin is not None
    assert holder.stdout is not None
    with holder, holder.stdin, holder.stdout:
        theirs = Path(holder.stdout.readline().strip())
        with scratch_folder("plan", tmp_path) as ours:
            assert names(tmp_path) == sorted((ours.name, theirs.name))
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    assert names(tmp_path) == [theirs.name]
    with scratch_folder("check", tmp_path) as ours:
        assert names(tmp_path) == [ours.name]
