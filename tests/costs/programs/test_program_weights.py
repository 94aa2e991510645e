"""`load_program_weights`: one reader, by the file's own kind."""

import pytest
from costs.kernels.kernels import weights

from go_rl.core import CheckpointError
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.learn.program_weights import load_program_weights
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner
from tests.costs.programs.made_up import learned_programs


def test_each_kind_is_read_as_what_it_is(tmp_path):
    learned_programs().save(tmp_path / "network.npz")
    assert type(load_program_weights(tmp_path / "network.npz")) is ProgramPredictor
    assert type(load_program_weights("programs-1")) is ProgramPredictor
    assert type(load_program_weights("transfer-1")) is TransferTuner


@pytest.mark.parametrize("content", [b"", b"nothing of the kind \xff"])
def test_wrong_files_are_one_clear_error(content, tmp_path):
    path = tmp_path / "other.npz"
    path.write_bytes(content)
    with pytest.raises(CheckpointError, match="other"):
        load_program_weights(path)


def test_a_file_of_something_else_says_what_would_be_right(tmp_path):
    weights().save(tmp_path / "other.npz")
    with pytest.raises(CheckpointError, match=r"no weights of tensor programs.*go-rl train progr"):
        load_program_weights(tmp_path / "other.npz")
    with pytest.raises(CheckpointError, match=r"no weights of tensor programs 'program-1'.*mean"):
        load_program_weights("program-1")
