"""The runner itself: every trial once, resumed after a kill, failures kept and tried again."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from counted.table import page, row_of, write_table

from .progress_file import ProgressFile
from .suite import Failure, Suite
from .trial import Batch, run_batch, run_trial
from .worker_pool import ROOT, Runner, chosen


def odd_ones_lose(index: int) -> str | None:
    return f"{index} is odd" if index % 2 else None


def seventh_raises(index: int) -> str | None:
    if index == 7:
        raise ValueError("seven")
    return None


def third_kills_its_process(index: int) -> str | None:
    if index == 3:
        os._exit(9)
    return None


def sleeps(index: int) -> str | None:
    time.sleep(5)
    return None


def suite(trial, count: int = 10, **fields) -> Suite:
    return Suite("tiny", "nothing is odd", "numbers", count, trial, **fields)


def in_this_process(monkeypatch) -> None:
    """Run batches without a pool, of at most three trials each."""

    def batches(self, suite, todo):
        for first in range(0, len(todo), 3):
            if not self._over:
                yield run_batch(suite, todo[first : first + 3], 60.0)

    monkeypatch.setattr(Runner, "_batches", batches)


def run(runner: Runner, suite: Suite, fraction: float = 1.0) -> tuple[list[Failure], list]:
    told: list[tuple[int, int]] = []
    found = runner.run(suite, chosen(suite, fraction), lambda done, lost: told.append((done, lost)))
    return sorted(found, key=lambda failure: failure.index), told


def test_what_a_trial_raises_is_a_failure_with_its_place():
    failure = run_trial(suite(seventh_raises), 7)
    assert failure is not None
    assert failure.what.startswith("ValueError: seven (test_runner.py:")
    assert failure.repeat == "python -m tests.counted repeat tiny 7"
    assert run_trial(suite(seventh_raises), 6) is None


def test_a_trial_that_takes_too_long_is_lost():
    failure = run_trial(suite(sleeps, limit_seconds=0.05), 0)
    assert failure is not None
    assert failure.what == "took longer than 0.05 s"


def test_a_batch_ends_with_its_time_but_not_before_one_trial():
    batch = run_batch(suite(odd_ones_lose), [1, 2, 3], 0.0)
    assert batch.indices == (1,)
    assert batch.failures == (Failure("tiny", 1, "1 is odd"),)


def test_a_fraction_is_part_of_every_larger_one():
    whole = chosen(suite(odd_ones_lose, 1000), 1.0)
    tenth = chosen(suite(odd_ones_lose, 1000), 0.1)
    assert sorted(whole) == list(range(1000))
    assert tenth == whole[:100]
    assert tenth != sorted(tenth)
    assert len(chosen(suite(odd_ones_lose, 12), 0.1)) == 2


def test_each_trial_is_run_once_however_often_the_runner_starts(tmp_path, monkeypatch):
    in_this_process(monkeypatch)
    found, told = run(Runner(tmp_path), suite(odd_ones_lose), 0.5)
    tenth = chosen(suite(odd_ones_lose), 0.5)
    assert [f.index for f in found] == sorted(i for i in tenth if i % 2)
    assert told[0] == (0, 0)
    assert told[-1] == (5, len(found))
    found, told = run(Runner(tmp_path), suite(odd_ones_lose))
    assert [f.index for f in found] == [1, 3, 5, 7, 9]
    assert told[0][0] == 5
    assert told[-1] == (10, 5)
    lines = (tmp_path / "tiny.jsonl").read_text().splitlines()
    indices = [i for line in lines for i in json.loads(line)["indices"]]
    assert sorted(indices) == list(range(10))


def test_nothing_starts_when_the_time_is_over(tmp_path, monkeypatch):
    in_this_process(monkeypatch)
    assert run(Runner(tmp_path, seconds=0.0), suite(odd_ones_lose))[1] == [(0, 0)]


def test_a_line_cut_off_by_a_kill_is_no_line(tmp_path):
    file = ProgressFile(tmp_path, suite(odd_ones_lose))
    file.append(Batch((1, 2), (Failure("tiny", 1, "odd"),), 0.5), "one")
    with file.lines.path.open("a") as cut:
        cut.write('{"count": 10, "indices": [3')
    file.append(Batch((4,), (), 0.25), "one")
    record = file.read()
    assert sorted(record.commit) == [1, 2, 4]
    assert record.failures == {1: Failure("tiny", 1, "odd")}
    assert record.cpu_seconds == 0.75


def test_failures_are_tried_again_on_another_commit_only(tmp_path):
    file = ProgressFile(tmp_path, suite(odd_ones_lose))
    file.append(Batch((1, 2), (Failure("tiny", 1, "odd"),), 0.5), "one")
    record = file.read()
    assert [record.todo(i, "one") for i in (1, 2, 3)] == [False, False, True]
    assert [record.todo(i, "two") for i in (1, 2, 3)] == [True, False, True]
    file.append(Batch((1,), (), 0.5), "two")
    assert file.read().failures == {}


def test_trials_of_another_count_do_not_count(tmp_path):
    ProgressFile(tmp_path, suite(odd_ones_lose, 10)).append(Batch((1,), (), 0.5), "one")
    assert ProgressFile(tmp_path, suite(odd_ones_lose, 11)).read().commit == {}


def test_the_table_says_what_was_asked_done_and_lost(tmp_path):
    tiny = suite(odd_ones_lose, each=4)
    file = ProgressFile(tmp_path, tiny)
    file.append(Batch((1, 2), (Failure("tiny", 1, "1 is odd"),), 90.0), "one")
    file.append(Batch((4,), (), 30.4), "two")
    row, failures = row_of(tiny, tmp_path)
    lines = page([row], failures).splitlines()
    assert lines[2].startswith("0 of 1 suites at full count, 1 trials lost, 2 CPU minutes.")
    assert lines[6] == ("| tiny | nothing is odd | 40 numbers | 12 | 1 | 120 | one (8), two (4) |")
    assert lines[-1] == "- `python -m tests.counted repeat tiny 1`: 1 is odd"


def test_without_a_trial_the_table_that_is_there_stays(tmp_path):
    with pytest.raises(SystemExit, match="records no trial"):
        write_table(tmp_path / "state", tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_trial_that_kills_its_process_is_found(tmp_path):
    found, told = run(Runner(tmp_path), suite(third_kills_its_process, 6))
    assert found == [Failure("tiny", 3, "the process that ran it died")]
    assert told[-1] == (6, 1)


@pytest.mark.slow
def test_workers_end_with_a_runner_that_is_killed(tmp_path):
    command = [sys.executable, "-m", "tests.counted", "run", "--suite", "malformed-inputs"]
    runner = subprocess.Popen([*command, "--state", str(tmp_path)], cwd=ROOT)
    until(lambda: (tmp_path / "malformed-inputs.jsonl").exists())
    workers = children(runner.pid)
    assert workers
    runner.kill()
    runner.wait()
    until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers))


def children(pid: int) -> list[int]:
    """Processes that a process has started."""
    return [int(text) for text in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def until(condition) -> None:
    """Wait for a condition for at most a minute."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end, "it did not come to pass"
        time.sleep(0.05)
