"""Files of arrays and of runs, and loading ahead."""

import errno
import gzip
import threading
from types import SimpleNamespace

import pytest

from go_rl.core import TrainingError
from go_rl.core.errors import GoRLError
from go_rl.costs.operators.measured_tables import read_measured
from go_rl.runtime import array_file
from go_rl.runtime.array_file import open_packed
from go_rl.runtime.prefetch import prefetch
from go_rl.runtime.records.record_file import load_records
from go_rl.runtime.run_log import RunLog


def test_items_keep_their_order_and_are_made_in_one_thread_before_they_are_asked_for():
    made, third = [], threading.Event()

    def items():
        for i in range(5):
            made.append(threading.get_ident())
            if i == 2:
                third.set()
            yield i

    found = prefetch(items(), 2)
    assert next(found) == 0
    assert third.wait(10)
    assert list(found) == [1, 2, 3, 4]
    assert len(set(made)) == 1
    assert made[0] != threading.get_ident()


def test_an_error_comes_behind_the_items_before_it():
    def items():
        yield 1
        raise ValueError("two")

    found = prefetch(items(), 3)
    assert next(found) == 1
    with pytest.raises(ValueError, match="two"):
        next(found)


def test_who_stops_early_waits_for_no_more_than_the_item_being_made():
    made = []

    def items():
        for i in range(1000):
            made.append(i)
            yield i

    found = prefetch(items(), 4)
    assert next(found) == 0
    found.close()
    count = len(made)
    assert count <= 6
    assert len(made) == count


@pytest.fixture(autouse=True)
def _small(monkeypatch):
    monkeypatch.setattr(array_file, "FREE_BYTES", 1 << 16)


def packed(path, content):
    path.write_bytes(gzip.compress(content))
    return path


def test_as_much_as_is_allowed_is_read(tmp_path):
    content = bytes(1 << 16)
    with open_packed(packed(tmp_path / "a.gz", content)) as file:
        assert file.read() == content


@pytest.mark.parametrize("read", [load_records, read_measured])
def test_a_file_that_grows_a_thousandfold_is_refused(read, tmp_path):
    grown = packed(tmp_path / "linear.csv.gz", b"0" * (1 << 20))
    with pytest.raises(GoRLError, match=r"linear\.csv\.gz.*it unpacks to more than"):
        read(tmp_path if read is read_measured else grown)


def test_lines_after_the_checkpoint_and_cut_off_lines_are_struck_out(tmp_path):
    log = RunLog(tmp_path)
    for step in (1, 2, 3):
        log.write(step, {"loss": 0.5})
    log.close()
    with log.path.open("a") as file:
        file.write('{"step": 4, "lo')
    again = RunLog(tmp_path, step=2)
    again.write(3, {"loss": 0.25})
    again.close()
    assert log.path.read_text().splitlines() == [
        '{"step": 1, "loss": 0.5}', '{"step": 2, "loss": 0.5}', '{"step": 3, "loss": 0.25}',
    ]  # fmt: skip
    assert any((tmp_path / "tensorboard").iterdir())


def test_a_log_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TrainingError, match=r"log\.jsonl: cannot be written"):
        RunLog(tmp_path / "file")


@pytest.mark.parametrize("part", ["_file", "_events"])
def test_a_disk_that_fills_up_is_named_and_blocks_nobody(part, tmp_path, monkeypatch):
    log = RunLog(tmp_path)

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    getattr(log, part).close()
    monkeypatch.setattr(log, part, SimpleNamespace(write=full, write_event=full, close=full))
    for step in range(20):
        with pytest.raises(TrainingError, match=r"log\.jsonl: cannot be written \(No space left"):
            log.write(step, {"loss": 0.5})
    log.close()
