"""``go-rl train programs``, ``calibrate`` and ``predict --device this``: what is refused, and what
is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from go_rl.api import this_device
from go_rl.api.this_device import Calibrated
from go_rl.api.training import programs as train_programs
from go_rl.api.training.programs import TrainedPrograms


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


def test_train_programs_refuses_an_empty_folder(command, tmp_path):
    (tmp_path / "records").mkdir()
    said = command("train", "programs", "records")
    assert said.code != 0
    assert "no tensor program has a time" in said.err


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
