"""Programs: training and calibration by the API."""

from dataclasses import replace

import numpy as np
import pytest

from go_rl.api.calibrate_programs import (
    LEAST_TASKS,
    CalibrateProgramsConfig,
    calibrate_programs,
    tuned_weights,
)
from go_rl.api.training.programs import TrainProgramsConfig, train_programs
from go_rl.core import TrainingError
from go_rl.core.files.run_lock import RunLockError, locked
from go_rl.costs.programs.learn import reading, training
from go_rl.costs.programs.learn.predictor import ProgramPredictor
from go_rl.costs.programs.measure.data import ProgramTarget
from go_rl.costs.programs.workloads import TensorTask
from tests.costs.programs.made_up import (
    TINY_RUN,
    learned_programs,
    made_up_programs,
    with_nests_and_traces,
)

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
    more = TrainProgramsConfig(updates=FEW.updates)
    tuned = train_programs("any", tmp_path / "tuned", more, fine_tune=found.path)
    inputs = made_up.inputs
    again = ProgramPredictor.load(tuned.path)
    assert not np.array_equal(again.predict(inputs), weights.predict(inputs))


@pytest.mark.slow
def test_fine_tuning_makes_the_updates_asked_for_and_counts_them(tmp_path, made_up):
    weights = learned_programs()
    weights.save(tmp_path / "start.npz")
    reports, source = [], tmp_path / "start.npz"
    asked = TrainProgramsConfig(updates=3, loss="mape")
    found = train_programs(
        "any", tmp_path / "tuned", asked, fine_tune=source,
        report=lambda done, total, _: reports.append((done, total)),
    )  # fmt: skip
    assert reports == [(3, 6), (6, 6)]
    (more,) = ProgramPredictor.load(found.path).card["fine_tuned"]
    assert (more["training"]["updates"], more["training"]["loss"]) == (3, "mape")
    usual = weights.tuning_run()
    assert usual.updates == weights.config.updates // 5
    assert usual.learning_rate == weights.config.learning_rate / 5


@pytest.mark.parametrize(
    ("source", "given", "said"),
    [
        ("programs-5-cdmpp", {"members": 1}, "members is not read .*; loss and updates can be set"),
        ("programs-5-cdmpp", {"network": "paper"}, "network is not read in fine-tuning"),
        (
            "transfer-1",
            {"loss": "mse"},
            "loss is not read in fine-tuning the transfer tuner; upd",
        ),
        ("programs-5-cdmpp", {"model": "cdmpp-code"}, "leave out the model cdmpp-code"),
    ],
)
def test_fine_tuning_refuses_what_the_weights_settle(tmp_path, made_up, source, given, said):
    with pytest.raises(TrainingError, match=said):
        train_programs("any", tmp_path, TrainProgramsConfig(**given), fine_tune=source)
    assert not [*tmp_path.glob("*.npz")]


def test_fine_tuning_trees_has_no_updates(tmp_path, made_up):
    pytest.importorskip("lightgbm", reason="an extra of go_rl")
    asked = TrainProgramsConfig(updates=5)
    with pytest.raises(TrainingError, match="updates is not read in fine-tuning trees of programs"):
        train_programs("any", tmp_path, asked, fine_tune="programs-5")


@pytest.mark.parametrize(
    ("model", "name", "value"),
    [
        ("code-trees", "updates", 5), ("machine-trees", "labels", "log"),
        ("code-trees", "loss", "mse"), ("machine-trees", "network", "small"),
        ("code-trees", "members", 3), ("transfer", "members", 1), ("transfer", "loss", "mse"),
    ],
)  # fmt: skip
def test_an_option_that_the_model_does_not_read_is_refused(model, name, value):
    said = f"{name} is an option of the models cdmpp, cdmpp-code.*, and {model} does not read it"
    with pytest.raises(TrainingError, match=said):
        TrainProgramsConfig(model=model, **{name: value})


def test_updates_are_those_of_the_transfer_tuner_too():
    assert TrainProgramsConfig(model="transfer", updates=7).updates == 7


def by_leaves(examples, blue):
    """The programs, of the network blue if `blue` says so of a task, else of red."""
    networks = tuple(
        ("blue",) if blue(task) else ("red",) for task in range(len(examples.inputs.tasks))
    )
    return replace(examples, inputs=replace(examples.inputs, networks=networks))


def test_refuses_to_be_judged_by_programs_that_no_layer_is_for(tmp_path, made_up, monkeypatch):
    apart = by_leaves(made_up, lambda task: task % 2)  # which have two leaves, the others one
    monkeypatch.setattr(reading, "read_examples", lambda *_: apart)
    with pytest.raises(TrainingError, match="none has a number of leaves that is learned"):
        train_programs("any", tmp_path, replace(FEW, split="by_model", held_out=("blue",)))


@pytest.mark.slow
def test_programs_that_no_layer_is_for_do_not_judge(tmp_path, made_up, monkeypatch):
    mixed = by_leaves(made_up_programs(400, 50), lambda task: task % 2 or task < 4)
    monkeypatch.setattr(reading, "read_examples", lambda *_: mixed)
    found = train_programs("any", tmp_path, replace(FEW, split="by_model", held_out=("blue",)))
    assert found.dropped[-1][1] == 200
    assert found.errors["mape"] > 0


def test_trees_learn_the_tasks_that_judged_and_no_network_held_out(tmp_path, monkeypatch):
    pytest.importorskip("lightgbm", reason="an extra of go_rl")
    examples = by_leaves(with_nests_and_traces(200, 20), lambda task: task < 4)
    monkeypatch.setattr(reading, "read_examples", lambda *_: examples)
    trees = TrainProgramsConfig(model="code-trees")
    assert train_programs("any", tmp_path / "all", trees).programs == 200
    apart = replace(trees, split="by_model", held_out=("blue",))
    assert train_programs("any", tmp_path / "red", apart).programs < 160


@pytest.mark.parametrize(
    ("config", "options", "message"),
    [
        (FEW, {"search": 1, "fine_tune": "x"}, "search or fine_tune, not both"),
        (TrainProgramsConfig(model="code-trees"), {"search": 1}, "search is of CDMPP's networks"),
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


def _measured(programs: int, tasks: int):
    """Return made-up programs of another processor, on which everything takes three times as
    long."""
    examples = made_up_programs(programs, tasks, seed=1)
    known = tuple(TensorTask("matmul", (1, 2 + i, 8, 8)) for i in range(tasks))
    targets = (ProgramTarget("other", "x86-64-v3"), ProgramTarget("other", "x86-64-v4"))
    inputs = replace(examples.inputs, targets=targets, tasks=known)
    return replace(examples, inputs=inputs, seconds=3 * examples.seconds)


@pytest.mark.slow
def test_networks_learn_the_new_processor_and_judge_by_tasks_left_out(made_up):
    start = learned_programs()
    tuned, (before, after) = tuned_weights(start, _measured(96, 16), 0)
    assert after < before
    assert isinstance(tuned, ProgramPredictor)
    assert tuned.calibration != start.calibration
    ratio = tuned.predict(_measured(96, 16).inputs) / start.predict(_measured(96, 16).inputs)
    assert np.exp(np.log(ratio).mean()) > 1.3


@pytest.mark.slow
def test_too_few_tasks_with_a_time():
    start = learned_programs()
    few = _measured(20, LEAST_TASKS - 1)
    with pytest.raises(TrainingError, match=rf"{LEAST_TASKS - 1} tasks have a time, and"):
        tuned_weights(start, few, 0)


def test_names_and_weights_are_checked_before_anything_is_timed(tmp_path, monkeypatch):
    with pytest.raises(TrainingError, match=r"the name of .*mine must end in \.npz"):
        calibrate_programs(tmp_path / "mine")
    ranks = CalibrateProgramsConfig(weights="transfer-1")
    with pytest.raises(TrainingError, match="rank programs of one operator and know no seconds"):
        calibrate_programs(tmp_path / "mine.npz", ranks)
    with pytest.raises(TrainingError, match="this process may use the cores"):
        calibrate_programs(tmp_path / "mine.npz", CalibrateProgramsConfig(core=10**6))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(TrainingError, match="rank programs of one operator and know no seconds"):
        calibrate_programs(config=ranks)
    assert not [*tmp_path.iterdir()]
    mine = tmp_path / "mine.npz"
    with locked(mine, file=True), pytest.raises(RunLockError, match=r"mine\.npz"):
        calibrate_programs(mine)
