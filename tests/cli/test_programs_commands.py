"""``go-rl train programs``, ``calibrate`` and ``predict --device this``: what is refused, and what
is printed."""

from pathlib import Path

import pytest

from go_rl.api import calibrate_programs, measure, this_device, this_programs
from go_rl.api.calibrate_programs import CalibratedPrograms, CalibrateProgramsConfig
from go_rl.api.predict import OperatorLatency, Prediction, UnpricedOperator
from go_rl.api.this_device import Calibrated
from go_rl.api.training import programs as train_programs
from go_rl.api.training.programs import TrainedPrograms
from go_rl.core import TrainingError
from go_rl.costs.programs.learn import search


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_train_programs_prints_what_was_learned(command, monkeypatch):
    errors = {"mape": 12.34, "median": 5.0, "pair_accuracy": 0.875}
    found = TrainedPrograms(Path("mine/weights.npz"), 1200, 30, (("noisy", 7), ("slow", 0)), errors)
    monkeypatch.setattr(train_programs, "train_programs", lambda *_, **__: found)
    said = command("train", "programs", "records", "--out", "mine")
    assert said.code == 0
    assert "1,200 programs of 30 tasks learned from (left out: 7 noisy)" in said.out
    assert "by_task: mean error 12.3 %, median 5.0 %, 87.5% of pairs in order." in said.out


def test_train_programs_needs_a_source(command):
    said = command("train", "programs")
    assert said.code != 0
    assert "no source of programs is given" in said.err


def test_train_programs_refuses_an_empty_folder(command, tmp_path):
    (tmp_path / "records").mkdir()
    said = command("train", "programs", "records")
    assert said.code != 0
    assert "no tensor program has a time" in said.err


@pytest.mark.parametrize(
    ("flags", "answer"),
    [
        (("--search-steps", 8), "search_steps must be >= 9, not 8"),
        (("--search", -1), "--search (search) is a number of trials, 0 to 1000, not -1"),
        (("--search", 1001), "--search (search) is a number of trials, 0 to 1000, not 1001"),
    ],
)
def test_train_programs_names_the_flag_that_is_wrong(command, flags, answer):
    said = command("train", "programs", "programs-1", *flags)
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert answer in said.err


def test_a_search_is_as_long_as_its_stages():
    assert search.RUNGS[0] == train_programs.LEAST_SEARCH_STEPS
    assert search.ProgramSearchConfig(train_programs.MOST_TRIALS)
    with pytest.raises(TrainingError):
        search.ProgramSearchConfig(train_programs.MOST_TRIALS + 1)


def test_measure_programs_takes_what_it_reads(command, monkeypatch):
    asked = {}
    monkeypatch.setattr(
        measure, "tensor_tasks", lambda config: asked.update(config=config) or [("n", "t", 5e6)]
    )
    said = command("measure", "programs", "d", "--list", "--networks", "resnet18", "--codegen",
                   "x86-64-v3", "--target", "mine", "--core", 0, "--round", 2, "--timeout", 9,
                   "--most-flops", 1e6, "--seed", 7, "--visits", 3)  # fmt: skip
    assert said.code == 0
    assert "1 tasks of 1 networks" in said.out
    found = asked["config"]
    assert (found.networks, found.codegen) == (("resnet18",), ("x86-64-v3",))
    of_measure = found.measure
    assert (of_measure.target, of_measure.core, of_measure.round) == ("mine", 0, 2)
    assert (of_measure.timeout, of_measure.timing.visits) == (9, 3)
    assert (of_measure.sampling.most_flops, of_measure.sampling.seed) == (1e6, 7)


@pytest.mark.parametrize("flag", ["--vary", "--platform", "--share", "--kernels", "--fusions"])
def test_measure_programs_refuses_options_of_kernels(command, flag):
    assert f"no option {flag}" in command("measure", "programs", "d", flag, "1").err
    assert f"{flag} " not in command("measure", "programs", "--help").out


def test_what_ships_for_others_is_not_named(command):
    """Data of kernels and of programs ship in one folder."""
    assert command("train", "kernels", "nothing", "o.npz").err.endswith("ships: kernels-cpu-1\n")
    assert command("train", "programs", "nothing").err.endswith(
        "ships: programs-1, programs-2, programs-3\n"
    )


def test_broken_files_are_called_what_they_are(command, tmp_path):
    (tmp_path / "broken.npz").write_text("garbage")
    assert "not a readable go_rl file" in command("train", "kernels", "broken.npz", "o.npz").err
    assert "broken.npz: no feature file" in command("train", "programs", "broken.npz").err
    said = command("train", "operators", "nothere", "--out", "o.npz").err
    assert "nothere: no such folder of measured operators" in said


def test_train_programs_refuses_a_misspelt_data_set(command):
    said = command("train", "programs", "program-1")
    assert said.code != 0
    assert "no program data 'program-1'; did you mean 'programs-1'" in said.err


def test_calibrate_says_where_it_wrote(command, monkeypatch):
    found = Calibrated(Path("this.npz"), 40, 8.76, "AuthenticAMD family 25 model 17")
    monkeypatch.setattr(this_device, "calibrate", lambda *_, **__: found)
    said = command("calibrate", "--device", "this", "--out", "this.npz")
    assert said.code == 0
    assert "40 kernels timed on AuthenticAMD family 25 model 17" in said.out
    assert "next: go-rl predict zoo:resnet50 --device this --weights this.npz" in said.out


def test_predict_of_a_machine_that_was_not_calibrated(command):
    said = command("predict", "zoo:bert-tiny", "--device", "this")
    assert said.code != 0
    assert "run go-rl calibrate --device this" in said.err


def test_a_table_on_this_machine_is_refused_before_anybody_calibrates(command):
    said = command("predict", "operators.csv", "--device", "this")
    assert said.code != 0
    assert "a table of operators is of GPUs; give a network" in said.err


def test_calibrate_programs_prints_errors_and_what_comes_next(command, monkeypatch):
    asked = []
    found = CalibratedPrograms(Path("mine.npz"), 240, 40, 91.2, 33.4)
    monkeypatch.setattr(
        calibrate_programs, "calibrate_programs",
        lambda out, config, **_: asked.append((out, config)) or found,
    )  # fmt: skip
    said = command(
        "calibrate", "--device", "this", "--programs", "--minutes", "3", "--schedules", "4",
        "--out", "mine.npz",
    )  # fmt: skip
    assert said.code == 0
    assert asked == [("mine.npz", CalibrateProgramsConfig(minutes=3.0, schedules=4))]
    assert "240 programs of 40 tasks timed" in said.out
    assert "within 33 % on average, before within 91 %: mine.npz" in said.out
    assert "--by programs --weights mine.npz" in said.out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--by", "programs"), "nothing is known of this machine's programs; run go-rl calibrate"),
        (("--by", "programs", "--weights", "transfer-1"), "rank programs of one operator"),
        (("--by", "programs", "--weights", "programs-9"), "no weights of tensor programs"),
        (("--by", "programs", "--trip-count", "3"), "'trip_count' cannot be set"),
        (("--schedules", "out/tune-x"), "schedules are of programs"),
    ],
)
def test_predict_by_programs_refuses_before_anything_is_compiled(command, flags, message):
    said = command("predict", "zoo:bert-tiny", "--device", "this", *flags)
    assert said.code == 2
    assert message in said.err.replace("\n", " ")


def test_predict_by_programs_is_of_this_machine_and_of_networks(command, tmp_path):
    said = command("predict", "zoo:bert-tiny", "--device", "t4", "--by", "programs")
    assert said.code == 2
    assert "by programs is of this machine: set device to 'this'" in said.err
    (tmp_path / "operators.csv").write_text("op,batch,width\nadd,2,64\n")
    said = command("predict", "operators.csv", "--device", "this", "--by", "programs")
    assert said.code == 2
    assert "a table of operators does not say what it computes" in said.err.replace("\n", " ")


def test_a_folder_without_candidates_is_one_clear_error(command, tmp_path):
    said = command(
        "predict", "zoo:bert-tiny", "--device", "this", "--by", "programs", "--weights",
        "programs-1", "--schedules", str(tmp_path),
    )  # fmt: skip
    assert said.code == 2
    assert "holds no candidates" in said.err.replace("\n", " ")


def test_predict_by_programs_prints_functions_and_those_without_a_price(command, monkeypatch):
    monkeypatch.setattr(this_programs, "predict_programs", lambda *_, **__: PRICED)
    said = command("predict", "zoo:bert-tiny", "--device", "this", "--by", "programs")
    assert said.code == 0
    assert "replayed on one core: 2.1 ms (1 to 4); unlike what was measured: 1 of 2" in said.out
    assert "no price, not in the sum: 3 × take 9x4: index is data" in said.out
    assert "Schedules: all default." in said.out
    document = command(
        "predict", "zoo:bert-tiny", "--device", "this", "--by", "programs", "--json"
    ).document
    assert document["latency_ms"] == 2.1
    assert document["unpriced"] == [{"what": "take 9x4", "calls": 3, "reason": "index is data"}]


PRICED = Prediction(
    "this",
    (
        OperatorLatency("default schedule", 1.0, 0.5, 2.0, False, "matmul 2x3 3x4"),
        OperatorLatency("tuned schedule", 1.0, 0.5, 2.0, True, "matmul 2x3 3x4"),
    ),
    1.0, 4.0, 2.1, ("Schedules: all default.",),
    unpriced=(UnpricedOperator("take 9x4", 3, "index is data"),),
)  # fmt: skip
