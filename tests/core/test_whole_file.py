"""Files are written whole or not at all, and only regular files are replaced."""

import errno
import os
import stat
from pathlib import Path

import pytest

from go_rl.core.files.whole_file import (
    check_parents,
    check_target,
    whole_file,
    write_bytes,
)


@pytest.mark.parametrize("stop", [KeyboardInterrupt, OSError, ValueError])
def test_what_was_there_stays_when_the_writer_stops(
    stop: type[BaseException], tmp_path: Path
) -> None:
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


def test_a_full_disk_is_told_of_the_file(tmp_path: Path) -> None:
    def full() -> None:
        with whole_file(tmp_path / "plan.json"):
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left") as error:
        full()
    assert error.value.filename == str(tmp_path / "plan.json")
    assert not list(tmp_path.iterdir())


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    real, link = tmp_path / "kept" / "plan.json", tmp_path / "plan.json"
    link.symlink_to(real)
    for content in (b"first, of a link that leads nowhere yet", b"second"):
        write_bytes(link, content)
        assert link.is_symlink()
        assert real.read_bytes() == content


def test_a_pipe_is_not_replaced(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(tmp_path / "pipe")
    for name in ("pipe", "link"):
        with pytest.raises(OSError, match="it is a pipe, not a regular file"):
            write_bytes(tmp_path / name, b"")
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["link", "pipe"]


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full", "/dev/stdin/../null"])
def test_a_device_is_refused(device: str) -> None:
    with pytest.raises(OSError, match=r"it is a device|is not a folder"):
        check_target(device)


def test_a_file_above_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for check in (check_parents, check_target, lambda path: write_bytes(path, b"")):
        with pytest.raises(NotADirectoryError) as error:
            check(tmp_path / "file" / "out" / "plan.json")
        assert error.value.strerror == f"{tmp_path / 'file'} is not a folder"
