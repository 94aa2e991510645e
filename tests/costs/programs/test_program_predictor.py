"""CDMPP: what it learns, its files, and the errors of bad input."""

import json
from dataclasses import replace

import numpy as np
import pytest

from go_rl.core import CheckpointError, TrainingError
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.learn.training import ProgramTrainConfig
from go_rl.costs.programs.learn.weights_file import KIND
from tests.costs.programs.made_up import (
    TINY_RUN,
    learned_programs,
    made_up_programs,
    with_leaves,
)


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


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"batch": 0}, "batch must be >= 1"),
        ({"updates": 0}, "updates must be >= 1"),
        ({"cmd_weight": -1.0}, "must be >= 0"),
    ],
)
def test_bad_configuration(fields, message):
    with pytest.raises(TrainingError, match=message):
        ProgramTrainConfig(**fields)
