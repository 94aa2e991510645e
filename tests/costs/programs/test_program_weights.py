"""`load_program_weights`: one reader, by the file's own kind."""

import numpy as np
import pytest
from costs.kernels.kernels import weights

from go_rl.core import CheckpointError, TrainingError
from go_rl.costs.programs.learn.code_trees import CodeTrees
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.learn.program_weights import load_program_weights, predictor_of_seconds
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner
from go_rl.costs.trees.boosted import BoostedConfig
from tests.costs.programs.made_up import learned_programs
from tests.costs.programs.with_nests import with_nests_and_traces

FEW = BoostedConfig(trees=30, leaves=4, learning_rate=0.3, least_rows=1, column_share=1.0)


def test_each_kind_is_read_as_what_it_is(tmp_path):
    learned_programs().save(tmp_path / "network.npz")
    assert type(load_program_weights(tmp_path / "network.npz")) is ProgramPredictor
    assert type(load_program_weights("programs-1")) is ProgramPredictor
    assert type(load_program_weights("transfer-1")) is TransferTuner


def test_trees_come_with_their_interval_and_learn_further(tmp_path):
    pytest.importorskip("lightgbm", reason="an extra: pip install 'go_rl[trees]'")
    examples = with_nests_and_traces(80, 10)
    trees = CodeTrees.fit(examples, FEW)
    trees.save(tmp_path / "trees.npz")
    again = load_program_weights(tmp_path / "trees.npz")
    assert isinstance(again, CodeTrees)
    first, second = trees.interval(examples.inputs), again.interval(examples.inputs)
    np.testing.assert_array_equal(first.high, second.high)
    assert (first.low < first.high).all()
    assert not first.unlike.any()
    slower = type(examples)(examples.inputs, 3 * examples.seconds, examples.spread)
    more = again.fine_tuned(slower, FEW)
    ratio = more.predict(examples.inputs) / again.predict(examples.inputs)
    assert np.exp(np.log(ratio).mean()) == pytest.approx(3, rel=0.1)


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


def test_ranks_are_no_seconds():
    with pytest.raises(TrainingError, match="transfer-1: weights of the transfer tuner rank"):
        predictor_of_seconds("transfer-1")
