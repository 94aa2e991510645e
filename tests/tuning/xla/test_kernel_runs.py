"""Runs of the kernel tuner that are killed, stopped, limited, or scheduled by others."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tuning.xla.fakes import Machine, space, tune
from tuning.xla.test_kernel_tuner import EVERYTHING, O1, fused_is_slow

from go_rl.tuning.config import TuneConfig, TuningError
from go_rl.tuning.loop.journal import FileJournal, MemoryJournal
from go_rl.tuning.loop.tuning_run import STOPPED
from go_rl.tuning.xla.kernel_times import KernelTimes
from go_rl.tuning.xla.tune_kernels import kernel_curve

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


@pytest.mark.parametrize("kills", [(3,), (9, 2), (14, 7, 5)])
def test_a_run_that_was_killed_goes_on_as_if_it_never_was(tmp_path, kills):
    whole = tune(Machine(fused_is_slow), tmp_path / "whole", SHORT)
    for after in kills:
        journal = FileJournal(tmp_path / "journal.jsonl", ABOUT)
        with pytest.raises(Killed):
            tune(dying(after), tmp_path, SHORT, journal=journal)
    rest = Machine(fused_is_slow)
    journal = FileJournal(tmp_path / "journal.jsonl", ABOUT)
    assert found(tune(rest, tmp_path, SHORT, journal=journal)) == found(whole)
    assert len(rest.asked) < whole.measured


def test_the_curve_is_told_by_the_journal_alone(tmp_path):
    journal = MemoryJournal()
    tuned = tune(Machine(fused_is_slow), tmp_path, SHORT, journal=journal)
    assert kernel_curve(space(), json_round_trip(tmp_path, journal.kept)) == tuned.curve
    assert tuned.curve[0].found == "default"
    assert tuned.curve[-1].seconds < tuned.curve[0].seconds == pytest.approx(130e-6)


def json_round_trip(folder, batches):
    path = folder / "copy.jsonl"
    copy = FileJournal(path, ABOUT)
    for batch in batches:
        copy.append(batch)
    return list(FileJournal(path, ABOUT).batches())


def test_control_c_ends_tuning_and_keeps_what_is_known(tmp_path):
    tuned = tune(dying(20, KeyboardInterrupt), tmp_path, SHORT)
    assert STOPPED in tuned.notes
    assert tuned.trials > 1
    with pytest.raises(KeyboardInterrupt, match="stopped before the default fusion was measured"):
        tune(dying(0, KeyboardInterrupt), tmp_path / "other", SHORT)


def test_no_more_trials_are_made_than_asked_for(tmp_path):
    for trials in (1, 4, 9):
        config = replace(SHORT, trials=trials)
        journal = FileJournal(tmp_path / f"{trials}.jsonl", ABOUT)
        tuned = tune(Machine(fused_is_slow), tmp_path / str(trials), config, journal=journal)
        assert tuned.trials == trials
        journal = FileJournal(tmp_path / f"{trials}.jsonl", ABOUT)
        again = tune(Machine(fused_is_slow), tmp_path / str(trials), config, journal=journal)
        assert found(again) == found(tuned)


@pytest.mark.parametrize("scheduler", ["ansor", "dynamic-random", "sequential"])
def test_any_scheduler_finds_the_best(tmp_path, scheduler):
    tuned = tune(Machine(fused_is_slow), tmp_path, replace(EVERYTHING, scheduler=scheduler))
    assert tuned.kept_seconds == pytest.approx(60.5e-6)
    assert list(tuned.settings.values()) == [O1]
    assert tuned.minutes <= EVERYTHING.minutes + 1.0


def test_a_belief_candidates_kernels_without_flop_too(tmp_path):
    pytest.importorskip("emcee", reason="needs the extra tuning")
    config = replace(EVERYTHING, scheduler="dynatune", minutes=4.0)
    assert tune(Machine(fused_is_slow), tmp_path, config).speedup > 1.0


@pytest.mark.parametrize("tuner", ["random", "annealing"])
def test_any_inner_tuner_finds_a_faster_one(tmp_path, tuner):
    pytest.importorskip("xgboost", reason="needs the extra tuning")
    config = replace(EVERYTHING, tuner=tuner, k_graph=4, minutes=30.0)
    tuned = tune(Machine(fused_is_slow), tmp_path, config)
    assert tuned.kept_seconds < 71e-6


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
    with pytest.raises(TuningError, match="trials must be >= 1"):
        TuneConfig(trials=0)


def test_a_fusion_comes_back_from_its_candidate():
    drawn = space().draw(8, np.random.default_rng(3))
    other = type(space())(space().graph)
    for candidate in drawn:
        plain = type(candidate)(candidate.key, json.loads(json.dumps(candidate.document)))
        assert other.read(plain).key == candidate.key
    near = space().neighbour(drawn[0], np.random.default_rng(0))
    assert near is not None
    assert near.key != drawn[0].key
    assert space().features(drawn).shape[0] == len(drawn)


def test_kernels_that_a_better_fusion_lacks_are_used_no_more():
    """The default has two kernels of three; without fusion there are six of one."""
    times = KernelTimes.of(space())
    times.keep(space().default)
    times.keep(space().none)
    assert [each.repeats for each in times.operators] == [1, 0, 0, *[1] * 6]
    times.keep(space().default)
    assert [each.repeats for each in times.operators] == [1, 1, 1, *[0] * 6]
    assert [each.whole for each in times.operators].count(True) == 1
