"""Predictors of programs: files and weights."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from costs.kernels.kernels import weights

from go_rl.core import CheckpointError, TrainingError
from go_rl.costs.programs.features.cdmpp_files import load_cdmpp
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.learn.program_weights import load_program_weights
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner
from go_rl.costs.programs.learn.weights_file import KIND
from go_rl.costs.programs.nests import NestError
from tests.costs.programs.made_up import TINY_RUN, learned_programs, made_up_programs, with_leaves


@pytest.fixture(scope="module")
def examples():
    return made_up_programs()


@pytest.fixture(scope="module")
def learned() -> ProgramPredictor:
    return learned_programs()


def test_learns_more_than_the_mean(examples, learned):
    """Seconds span three powers of two; errors of their logarithm are well below their spread, on
    any processor."""
    error = np.log(learned.predict(examples.inputs) / examples.seconds)
    assert error.std() < 0.7 * np.log(examples.seconds).std()


def test_interval_surrounds_the_prediction(examples, learned):
    found = learned.interval(examples.inputs)
    assert (found.low < found.seconds).all()
    assert (found.seconds < found.high).all()
    assert found.seconds == pytest.approx(learned.predict(examples.inputs))


def test_program_outside_the_range_is_unlike(examples, learned):
    far = examples.inputs.take(np.array([0, 1]))
    vectors = far.asts.vectors.copy()
    vectors[0, 0] = 1e3
    moved = replace(far, asts=replace(far.asts, vectors=vectors))
    assert learned.interval(moved).unlike.tolist()[0]


def test_file_round_trip(tmp_path, examples, learned):
    learned.save(tmp_path / "w.npz")
    loaded = ProgramPredictor.load(tmp_path / "w.npz")
    assert np.array_equal(loaded.predict(examples.inputs), learned.predict(examples.inputs))
    assert loaded.calibration == learned.calibration
    assert json.dumps(loaded.card) == json.dumps(learned.card)


def test_file_of_other_features_is_refused(tmp_path, monkeypatch, learned):
    learned.save(tmp_path / "w.npz")
    newer = replace(KIND, required={**KIND.required, "features": 99})
    monkeypatch.setattr("go_rl.costs.programs.learn.weights_file.KIND", newer)
    with pytest.raises(CheckpointError, match="its features is 1, and this version of go_rl"):
        ProgramPredictor.load(tmp_path / "w.npz")


def test_unknown_leaf_count_is_refused(examples, learned):
    with pytest.raises(TrainingError, match=r"has 9 leaves, and .* of 1, 2 leaves"):
        learned.predict(with_leaves(examples, 9))


def test_too_few_programs_are_refused(examples):
    with pytest.raises(TrainingError, match="5 programs of 5 tasks are left"):
        ProgramPredictor.fit(examples.take(np.arange(5)), TINY_RUN)


def columns() -> dict[str, Any]:
    return {
        "seconds": [1e-3, 2e-3], "spread": [1e-5, 0.0], "flops": [10, -1],
        "vectors": np.ones((3, 164)), "nodes": [2, 4, 1], "tree": [0, 1, 2, -1, 3, 4, -1, 0, 1, -1],
        "leaves": [2, 1], "sizes": [7, 3],
    }  # fmt: skip


def test_cdmpp_s_features_are_read(tmp_path):
    path = tmp_path / "features.npz"
    np.savez(path, **columns())
    found = load_cdmpp(path)
    assert [each.ordering.tolist() for each in found.programs] == [[2, 5], [1]]
    np.testing.assert_allclose(found.spread, [0.01, 0.0])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"vectors": np.ones((3, 163))}, "a leaf has 164 numbers"),
        ({"leaves": [2, 2]}, "do not add up"),
        ({"nodes": [2, 9, 1]}, "leaf 9 is not in"),
        ({"seconds": [0.0, 1.0]}, "seconds must be"),
        ({"tree": np.array([{}], object)}, "pickled objects"),
    ],
)
def test_features_that_contradict_each_other_are_refused(change, said, tmp_path):
    path = tmp_path / "features.npz"
    np.savez(path, **(columns() | change))
    with pytest.raises(NestError, match=said):
        load_cdmpp(path)


def test_pickles_are_not_read(tmp_path):
    path = tmp_path / "released.npy"
    np.save(path, np.array([[1.0, None]], object))
    with pytest.raises(NestError, match="can run any code and are not read"):
        load_cdmpp(path)


def test_each_kind_is_read_as_what_it_is(tmp_path):
    learned_programs().save(tmp_path / "network.npz")
    assert type(load_program_weights(tmp_path / "network.npz")) is ProgramPredictor
    assert type(load_program_weights("programs-5-cdmpp")) is ProgramPredictor
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
