"""`train_programs`: splits, what is written, and the errors of bad input."""

from dataclasses import replace

import numpy as np
import pytest

from go_rl.api.training.programs import TrainProgramsConfig, split_of, train_programs
from go_rl.core import TrainingError
from go_rl.costs.programs.learn import reading, training
from go_rl.costs.programs.learn.code_trees import CodeTrees
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.learn.program_weights import load_program_weights
from go_rl.costs.programs.learn.transfer.tuner import TransferTuner
from tests.costs.programs.made_up import TINY_RUN, made_up_programs
from tests.costs.programs.with_nests import with_nests_and_traces

FEW = TrainProgramsConfig(steps=TINY_RUN.steps, members=1)
"""With `TINY_RUN`, whose programs are compiled for other tests, too."""


@pytest.fixture
def made_up(monkeypatch):
    examples = made_up_programs()
    monkeypatch.setattr(reading, "read_examples", lambda *_: examples)
    monkeypatch.setitem(training.NAMED_RUNS, "small", TINY_RUN)
    return examples


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
    "model", [pytest.param("cdmpp-code", marks=pytest.mark.slow), "code-trees"]
)
def test_models_that_read_the_code_of_loops(tmp_path, monkeypatch, made_up, model):
    if model == "code-trees":
        pytest.importorskip("lightgbm", reason="an extra: pip install 'go_rl[trees]'")
    examples = with_nests_and_traces(160, 20)
    monkeypatch.setattr(reading, "read_examples", lambda *_: examples)
    found = train_programs("any", tmp_path / "out", replace(FEW, model=model))
    kind = CodeTrees if model == "code-trees" else ProgramPredictor
    held = examples.inputs.take(np.arange(5))
    weights = load_program_weights(found.path)
    assert isinstance(weights, kind)
    assert (weights.predict(held) > 0).all()
    assert found.errors["mape"] > 0
    tuned = train_programs("any", tmp_path / "tuned", FEW, fine_tune=found.path)
    again = load_program_weights(tuned.path)
    assert type(again) is kind
    assert not np.array_equal(again.predict(held), weights.predict(held))


@pytest.mark.slow
def test_the_transfer_tuner_is_judged_by_order_alone(tmp_path, made_up):
    found = train_programs("any", tmp_path / "out", replace(FEW, model="transfer"))
    assert isinstance(load_program_weights(found.path), TransferTuner)
    assert list(found.errors) == ["pair_accuracy"]


def test_splits_by_name(made_up):
    by_model = TrainProgramsConfig(split="by_model", held_out=("red",))
    held_out = made_up.inputs.take(split_of(made_up, by_model).held_out)
    assert {made_up.inputs.networks[t] for t in held_out.task.tolist()} == {("red",)}
    by_target = TrainProgramsConfig(split="by_target", held_out=("cpu x86-64-v4",))
    assert set(made_up.inputs.target[split_of(made_up, by_target).held_out].tolist()) == {1}


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
    with pytest.raises(TrainingError, match="steps must be >= 1"):
        TrainProgramsConfig(steps=0)


def test_too_few_programs(tmp_path, monkeypatch):
    monkeypatch.setattr(reading, "read_examples", lambda *_: made_up_programs(20))
    with pytest.raises(TrainingError, match="20 programs of 20 tasks are left to learn from"):
        train_programs("any", tmp_path, FEW)
