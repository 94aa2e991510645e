"""`train_programs`: splits, what is written, and the errors of bad input."""

from dataclasses import replace

import numpy as np
import pytest

from go_rl.api.training.programs import TrainProgramsConfig, train_programs
from go_rl.core import TrainingError
from go_rl.costs.programs.learn import reading, training
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from tests.costs.programs.made_up import TINY_RUN, made_up_programs

FEW = TrainProgramsConfig(updates=TINY_RUN.updates, members=1)
"""With `TINY_RUN`, whose programs are compiled for other tests, too."""


@pytest.fixture
def made_up(monkeypatch):
    examples = made_up_programs()
    monkeypatch.setattr(reading, "read_examples", lambda *_: examples)
    monkeypatch.setitem(training.NAMED_RUNS, "small", TINY_RUN)
    return examples


@pytest.mark.slow
def test_writes_weights_and_judges_them(tmp_path, made_up):
    found = train_programs("any", tmp_path / "out", FEW)
    weights = ProgramPredictor.load(found.path)
    assert found.tasks == 16
    assert weights.name == "out"
    assert weights.card["judged"]["mape"] == found.errors["mape"] > 0
    tuned = train_programs("any", tmp_path / "tuned", FEW, fine_tune=found.path)
    inputs = made_up.inputs
    again = ProgramPredictor.load(tuned.path)
    assert not np.array_equal(again.predict(inputs), weights.predict(inputs))


@pytest.mark.parametrize(
    ("config", "options", "message"),
    [
        (FEW, {"search": 1, "fine_tune": "x"}, "search or fine_tune, not both"),
        (replace(FEW, model="code-trees"), {"search": 1}, "search is of CDMPP's networks"),
        (
            replace(FEW, split="by_target", held_out=("cpu v4",)),
            {},
            "no target 'cpu v4'. *Targets: cpu x86-64-v3, cpu x86-64-v4",
        ),
        (replace(FEW, split="by_model", held_out=("rde",)), {}, "no program of a network 'rde'"),
    ],
)
def test_bad_options(tmp_path, made_up, config, options, message):
    with pytest.raises(TrainingError, match=message):
        train_programs("any", tmp_path, config, **options)


def test_bad_configurations():
    with pytest.raises(TrainingError, match="held_out is for by_model and by_target"):
        TrainProgramsConfig(held_out=("resnet50",))
    with pytest.raises(TrainingError, match="by_target needs the one target"):
        TrainProgramsConfig(split="by_target")
    with pytest.raises(TrainingError, match="updates must be >= 1"):
        TrainProgramsConfig(updates=0)
