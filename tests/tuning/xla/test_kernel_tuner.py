"""Kernels tuned and run."""

import csv
import json
from dataclasses import replace

import numpy as np
import pytest
from tuning.xla.fakes import MEASURING, Machine, program, tune

from go_rl.runtime.records import RecordStore
from go_rl.tuning.config import TuneConfig, TuningError
from go_rl.tuning.loop.journal import FileJournal
from go_rl.tuning.loop.tuning_run import STOPPED
from go_rl.tuning.xla.outcome import write_tuned

EVERYTHING = TuneConfig(minutes=60.0, guide="everything", candidates=16, target="cpu-1")
O1, FAST = '{"flags":{"xla_backend_optimization_level":1}}', "xla_cpu_enable_fast_math"
OPERATORS = np.flatnonzero(~program().graph.is_fed).tolist()
SECOND_LAYER = OPERATORS[3:]


def fused_is_slow(nodes, setting) -> float:
    """10 us for each operator, 5 us for a kernel; the second layer fused whole: 60 us more, its
    product with tanh: 4 us less. Whatever has that product is twice as fast at level 1."""
    seconds = 5e-6 + 1e-5 * len(nodes)
    seconds += 6e-5 * (list(nodes) == SECOND_LAYER) - 4e-6 * (list(nodes) == SECOND_LAYER[:2])
    return seconds / (2.0 if setting == O1 and nodes[0] == SECOND_LAYER[0] else 1.0)


def test_it_finds_the_best_fusion_and_the_best_setting(tmp_path):
    """The first layer whole: 35 us; of the second, the product and tanh fused, under level 1: 10.5
    us, and the last operator: 15 us. The default: 35 + 95 us."""
    tuned = tune(Machine(fused_is_slow), tmp_path, EVERYTHING)
    assert tuned.kept == "tuned"
    assert tuned.default_seconds == pytest.approx(130e-6)
    assert tuned.kept_seconds == pytest.approx(60.5e-6)
    assert tuned.speedup == pytest.approx(130 / 60.5)
    assert [len(part.nodes) for part in tuned.fusion.parts] == [3, 2, 1]
    assert list(tuned.settings.values()) == [O1]
    assert tuned.curve[0].seconds == pytest.approx(130e-6)
    assert {point.default_seconds for point in tuned.curve} == {tuned.curve[0].seconds}
    values = [point.seconds for point in tuned.curve]
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(60.5e-6)


def test_time_is_obeyed_and_getting_ready_does_not_count(tmp_path):
    """Two minutes are twelve measurements: two of the default; six of what is not fused, which is
    faster, but comparing these eight again would take too long; four settings."""
    machine = Machine(fused_is_slow)
    tuned = tune(machine, tmp_path, replace(EVERYTHING, minutes=2.0))
    assert 2.0 <= tuned.minutes < 2.0 + 1.1 * MEASURING / 60
    assert tuned.measured == len(machine.asked)
    assert machine.now > 1000.0
    with RecordStore(tmp_path / "records.sqlite") as store:
        records = store.find("cpu-1", round=0)
    assert [bool(record.setting) for record in records].count(True) == 4
    assert len(records) == len(machine.asked) == 12
    assert tuned.kept == "default"


def test_what_is_known_is_not_measured_again_but_paid_for(tmp_path):
    first = tune(Machine(fused_is_slow), tmp_path, replace(EVERYTHING, minutes=4.0))
    again = Machine(fused_is_slow)
    second = tune(again, tmp_path, replace(EVERYTHING, minutes=4.0))
    assert again.asked == []
    assert second.replayed == first.measured
    assert first.kept == "tuned"
    assert (second.kept, second.speedup) == (first.kept, first.speedup)
    assert second.minutes == pytest.approx(first.minutes, abs=0.1)


def test_a_default_that_cannot_be_timed_is_an_error(tmp_path):
    with pytest.raises(TuningError, match=r"default fusion cannot be timed: .*crashed"):
        tune(Machine(lambda nodes, setting: "crashed"), tmp_path, EVERYTHING)


def test_too_few_minutes_for_the_default_are_an_error_that_says_how_far_it_came(tmp_path):
    with pytest.raises(TuningError, match="1 of the 2 kernels of the default fusion"):
        tune(Machine(fused_is_slow), tmp_path, replace(EVERYTHING, minutes=0.1))


def test_the_folder_says_what_is_kept_and_how_it_was_found(tmp_path):
    def seconds(nodes, setting):
        return fused_is_slow(nodes, setting) * (0.5 if FAST in setting else 1.0)

    tuned = tune(Machine(seconds), tmp_path, EVERYTHING)
    write_tuned(tuned, EVERYTHING, tmp_path)
    document = json.loads((tmp_path / "tuned.json").read_text())
    assert document["speedup"] == pytest.approx(tuned.speedup)
    assert len(document["fusion"]["leader"]) == program().graph.num_nodes
    assert document["kernels"][0]["nodes"] == ["dot_general.0", "tanh.0", "mul.0"]
    assert document["kernels"][0]["setting"] == {"flags": {FAST: True}}
    assert document["kernels"][0]["seconds"] == pytest.approx(17.5e-6)
    assert any("fast math" in note for note in document["notes"])
    rows = list(csv.DictReader((tmp_path / "curve.csv").read_text().splitlines()))
    assert len(rows) == len(tuned.curve) == len(document["curve"])
    assert float(rows[-1]["seconds"]) == tuned.curve[-1].seconds


SHORT = replace(EVERYTHING, minutes=12.0, candidates=8)
ABOUT = {"run": "this"}


class Killed(Exception):  # noqa: N818 - what happened
    """The process is gone."""


def dying(after: int, error: type[BaseException] = Killed) -> Machine:
    """A machine that fails once, behind so many measurements."""
    machine = Machine(lambda nodes, setting: 0.0)

    def seconds(nodes, setting):
        if len(machine.asked) == after + 1:
            raise error
        return fused_is_slow(nodes, setting)

    machine.seconds = seconds
    return machine


def found(tuned) -> tuple:
    """What a run decided, and when, to a hundredth of a minute."""
    curve = [(point.seconds, point.found) for point in tuned.curve]
    return tuned.fusion.key, dict(tuned.settings), tuned.kept_seconds, tuned.trials, curve


def test_a_run_that_was_killed_goes_on_as_if_it_never_was(tmp_path):
    whole = tune(Machine(fused_is_slow), tmp_path / "whole", SHORT)
    for after in (9, 2):
        journal = FileJournal(tmp_path / "journal.jsonl", ABOUT)
        with pytest.raises(Killed):
            tune(dying(after), tmp_path, SHORT, journal=journal)
    rest = Machine(fused_is_slow)
    journal = FileJournal(tmp_path / "journal.jsonl", ABOUT)
    assert found(tune(rest, tmp_path, SHORT, journal=journal)) == found(whole)
    assert len(rest.asked) < whole.measured


def test_control_c_ends_tuning_and_keeps_what_is_known(tmp_path):
    tuned = tune(dying(20, KeyboardInterrupt), tmp_path, SHORT)
    assert STOPPED in tuned.notes
    assert tuned.trials > 1
    with pytest.raises(KeyboardInterrupt, match="stopped before the default fusion was measured"):
        tune(dying(0, KeyboardInterrupt), tmp_path / "other", SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("scheduler", ["ansor", "dynamic-random", "sequential"])
def test_any_scheduler_finds_the_best(tmp_path, scheduler):
    tuned = tune(Machine(fused_is_slow), tmp_path, replace(EVERYTHING, scheduler=scheduler))
    assert tuned.kept_seconds == pytest.approx(60.5e-6)
    assert list(tuned.settings.values()) == [O1]
    assert tuned.minutes <= EVERYTHING.minutes + 1.0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"scheduler": "dynatun"}, "unknown scheduler 'dynatun'.*'dynatune'"),
        ({"scheduler": "oracle"}, "oracle sees recorded curves"),
        ({"tuner": "anealing"}, "unknown inner tuner 'anealing'.*'annealing'"),
        ({"tuner": "guide"}, "unknown inner tuner 'guide'.*'guided'.*There are guided, annealing"),
    ],
)
def test_unknown_names_are_refused_before_anything_is_measured(tmp_path, wrong, said):
    machine = Machine(fused_is_slow)
    with pytest.raises(TuningError, match=said):
        tune(machine, tmp_path, replace(SHORT, **wrong))
    assert machine.asked == []
