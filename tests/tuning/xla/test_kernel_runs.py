"""Runs of the kernel tuner that are killed, stopped, limited, or scheduled by others."""

from dataclasses import replace

import pytest
from tuning.xla.fakes import Machine, tune
from tuning.xla.test_kernel_tuner import EVERYTHING, O1, fused_is_slow

from go_rl.tuning.config import TuneConfig, TuningError
from go_rl.tuning.loop.journal import FileJournal
from go_rl.tuning.loop.tuning_run import STOPPED

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


@pytest.mark.parametrize("kills", [(9, 2)])
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
    with pytest.raises(TuningError, match="trials must be >= 1"):
        TuneConfig(trials=0)
