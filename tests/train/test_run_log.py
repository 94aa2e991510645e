"""The log of a run, resumed."""

from __future__ import annotations

import pytest

from go_rl.core import TrainingError
from go_rl.train.run_log import RunLog


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
