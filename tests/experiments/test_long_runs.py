"""Long runs: the list is one that commands take, and a worker runs, keeps and ends them."""

from __future__ import annotations

import shlex
import time

import pytest

from experiments.__main__ import names
from experiments.learning import long_runs
from go_rl.cli.commands.train.policy import TrainOptions
from go_rl.cli.parsing.parse import parse


def test_the_list_names_each_run_once_and_commands_that_exist():
    runs = long_runs.listed()
    assert len({run.name for run in runs}) == len(runs)
    for run in runs:
        program, *words = shlex.split(run.command)
        assert run.core_hours > 0
        if program == "python":
            assert words[:2] == ["-m", "experiments"]
            assert words[2] in names()
        else:
            assert program == "go-rl"
            assert words[0] in ("train", "measure")
            _, options = parse(words)
            assert f"experiments/learning/runs/{run.name}" in run.command
            if words[:2] == ["train", "policy"]:
                assert isinstance(options, TrainOptions)
                assert options.chosen.name
                assert options.out == f"experiments/learning/runs/{run.name}"


@pytest.fixture
def list_of_two(tmp_path, monkeypatch):
    """A run that ends, and one that fails; the session of the tests keeps its priority."""
    monkeypatch.setattr(long_runs, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(long_runs, "KEEP_EVERY", 0.05)
    monkeypatch.setattr(long_runs, "_step_back", lambda: None)
    runs = [
        long_runs.LongRun("ends", 'python -c "import time; time.sleep(0.3)"', 1.0, "nothing"),
        long_runs.LongRun("fails", 'python -c "raise SystemExit(3)"', 1.0, "nothing"),
    ]
    monkeypatch.setattr(long_runs, "listed", lambda: runs)
    return tmp_path / "runs"


def test_what_ends_is_marked_and_what_fails_is_tried_again(list_of_two, capfd):
    assert long_runs.work() == 0
    assert (list_of_two / "ends.done").exists()
    assert not (list_of_two / "fails.done").exists()
    assert "ends" in (list_of_two / "spent.json").read_text()
    before = time.perf_counter()
    long_runs.work()
    assert time.perf_counter() - before < 10
    said = capfd.readouterr().out
    assert said.count("== ends: ended") == 1
    assert said.count("== fails: ended with 3") == 2


def test_the_state_of_each_run_is_told(list_of_two, capsys, monkeypatch, tmp_path):
    monkeypatch.setattr(long_runs, "WORK", tmp_path / "work")
    long_runs.work()
    assert long_runs.status() == 0
    shown = capsys.readouterr().out
    assert "ends                 done" in shown
    assert "no worker" in shown
    assert long_runs._signal(long_runs.signal.SIGSTOP, "paused") == 1
