"""The log of a run, resumed."""

import errno
from types import SimpleNamespace

import pytest

from go_rl.core import TrainingError
from go_rl.runtime.run_log import RunLog


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
