"""Measurements are made once, or replayed and paid for; comparisons are made afresh."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tuning.xla.fakes import MEASURING, READING, Machine, space

from go_rl.runtime.records import AS_IT_COMES, RecordStore
from go_rl.tuning.config import TuneConfig
from go_rl.tuning.xla.budget import TuningBudget
from go_rl.tuning.xla.kernel_timer import AGAIN, KernelTimer


@dataclass
class Counting(Machine):
    """Remembers how many times as many rounds were asked for."""

    times: list[int] = field(default_factory=list)

    def together(self, jobs, times=1):
        self.times.append(times)
        return [self.time_one(nodes, setting) for nodes, setting in jobs]


@contextmanager
def timer_of(folder: Path, machine: Machine) -> Iterator[KernelTimer]:
    config = TuneConfig(target="cpu-1").measuring
    with RecordStore(folder / "records.sqlite") as store:
        budget = TuningBudget(600.0, machine.clock)
        yield KernelTimer(store, machine, config, "mlp", budget, machine.clock)


PARTS = [(part, AS_IT_COMES) for part in space().default.parts]


def counted() -> Counting:
    """The first measurement takes one second, and each other one more."""
    machine = Counting(lambda nodes, setting: 0.0)
    machine.seconds = lambda nodes, setting: float(len(machine.asked))
    return machine


def test_how_many_measurements_fit_is_told_by_those_made(tmp_path):
    with timer_of(tmp_path, counted()) as timer:
        assert timer.affordable(1000.0) == 1
        timer.measure_together(PARTS)
        assert timer.affordable(10.5 * (MEASURING + READING)) == 10
        assert timer.affordable(0.1 * MEASURING) == 1
        assert timer.spent_on(PARTS) == pytest.approx(2 * MEASURING, abs=5 * READING)


def test_comparisons_have_more_visits_and_are_replayed_by_their_number_only(tmp_path):
    machine = counted()
    with timer_of(tmp_path, machine) as timer:
        timer.measure_together(PARTS)
        first, second = (timer.again(PARTS, number) for number in (0, 1))
    assert machine.times == [1, AGAIN, AGAIN]
    assert [record.seconds for record in (*first, *second)] == [3.0, 4.0, 5.0, 6.0]
    other = counted()
    with timer_of(tmp_path, other) as timer:
        again = [timer.again(PARTS, number) for number in (1, 0)]
        fresh = timer.again(PARTS, -1)
    assert [r.seconds for each in again for r in each] == [5.0, 6.0, 3.0, 4.0]
    assert (other.times, [record.seconds for record in fresh]) == ([AGAIN], [1.0, 2.0])
