"""Kernels timed in rounds."""

from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

from go_rl.core import ExecutionError
from go_rl.costs.kernels.measure.worker import KernelRequest
from go_rl.costs.timing import timing as kernel_timing
from go_rl.costs.timing.collector import Asked, Collector, whole_keys
from go_rl.costs.timing.config import CollectConfig, TimingConfig
from go_rl.costs.timing.core_speed import CoreSpeed
from go_rl.costs.timing.measuring_run import Hold, MeasuringRun, Release, Timed, Visit
from go_rl.costs.timing.rounds import VISIT_SECONDS, RequestOutcome, measure_together
from go_rl.costs.timing.timing import (
    Timing,
    TimingSamples,
    clocked,
    interval_ranks,
    timing_of,
    visit,
)
from go_rl.runtime.records import RECORDS, RecordStore
from go_rl.runtime.warm_worker import WarmWorker, WorkerDied, WorkerFailed, WorkerTimeout

CONFIG = CollectConfig(timing=TimingConfig(visits=3))


def request(name: str, *shape: int) -> KernelRequest:
    return KernelRequest(name.encode(), (), ((shape, "float32"),), 1e-5)


class Machine(WarmWorker):
    """Starts no process: a kernel takes as many milliseconds as it was visited.

    Args:
        trouble: raised at the visits of a kernel; of one named "hold x", when x is to be held.
    """

    def __init__(self, trouble: dict[str, BaseException], config: CollectConfig = CONFIG) -> None:
        super().__init__("no:worker")
        self.config = config
        self.trouble = trouble
        self.held: list[str] = []
        self.visits: list[str] = []

    def call(self, request: Any, timeout: float) -> Any:
        assert timeout == self.config.timeout
        match request:
            case Hold(number, wanted):
                assert number == len(self.held)
                name = wanted.program.decode()
                self._fail(f"hold {name}")
                self.held.append(name)
                return {"compile_seconds": 1.0, "xla": {}}
            case Visit(number, timing):
                name = self.held[number]
                self._fail(name)
                self.visits.append(name)
                assert timing == self.config.timing
                return TimingSamples(
                    np.array([1e-3 * self.visits.count(name)]), np.array([1.0]), np.zeros(1)
                )
            case Release():
                self.held.clear()
        return None

    def _fail(self, name: str) -> None:
        error = self.trouble.pop(name, None)
        if error and not isinstance(error, WorkerFailed):
            self.held.clear()
        if error:
            raise error


def told(outcomes: list[RequestOutcome], name: str) -> list[Any]:
    return [each[name] for each in outcomes if not isinstance(each, str)]


@pytest.mark.parametrize("moment", ["hold b", "b"])
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (WorkerTimeout("no answer"), "took more than 30 s"),
        (WorkerDied("killed"), "WorkerDied: killed"),
        (WorkerFailed("ValueError", "wrong"), "WorkerFailed: ValueError: wrong"),
    ],
)
def test_the_others_have_times_whatever_becomes_of_one(moment, error, said):
    machine = Machine({moment: error})
    outcomes = measure_together(machine, [request("a"), request("b"), request("c")], CONFIG)
    assert outcomes[1] == said
    assert told(outcomes, "calls") == [3, 3]


class Mortal(WarmWorker):
    """A program is the number of seconds that it takes; the process dies unseen before some calls.

    Args:
        deaths: the calls, from 0.
    """

    def __init__(self, deaths: set[int]) -> None:
        super().__init__("no:worker")
        self.deaths = deaths
        self.calls = 0
        self.process = MeasuringRun(self.compile)

    def call(self, payload: Any, timeout: float) -> Any:
        if self.calls in self.deaths:
            self.process = MeasuringRun(self.compile)
        self.calls += 1
        try:
            return self.process.answer(payload)
        except ExecutionError as error:
            raise WorkerFailed(type(error).__name__, str(error)) from error

    @staticmethod
    def compile(seconds: float) -> tuple[Timed, dict[str, Any]]:
        samples = TimingSamples(np.full(3, seconds), np.ones(3), np.zeros(3))
        return lambda timing: samples, {}


@pytest.mark.parametrize("death", range(9))
def test_nobody_has_the_time_of_another_whenever_the_process_dies(death):
    """Two requests hold programs, six visit them, one releases them."""
    assert told(measure_together(Mortal({death}), [1.0, 2.0], CONFIG), "seconds") == [1.0, 2.0]


def test_a_collector_keeps_what_was_asked_for_and_lacks_it_no_longer(tmp_path):
    """A time, a reason of the worker and one why nothing could be asked."""
    machine = Machine({"b": WorkerFailed("ValueError", "wrong")})
    asked = [
        Asked("1", "", request("a"), {"model": "m"}, ("compile_seconds", VISIT_SECONDS)),
        Asked("2", "", request("b"), {"model": "m"}, ("compile_seconds",)),
        Asked("3", "", "no operand travels", {"model": "n"}),
    ]
    with RecordStore(tmp_path / RECORDS) as store:
        collector = Collector(store, machine, CONFIG, 1e-5, set())
        collector.measure(each for each in asked)
        found = {record.workload: record for record in store.find(CONFIG.target)}
        again = Collector(store, machine, CONFIG, 1e-5, whole_keys(store, CONFIG.target))
    assert collector.made == 3
    assert found["1"].seconds == 1e-3
    assert found["1"].details["compile_seconds"] == 1.0
    assert found["1"].details[VISIT_SECONDS] == round(found["1"].details[VISIT_SECONDS], 4)
    assert [found[name].reason for name in "23"] == [
        "WorkerFailed: ValueError: wrong", "no operand travels"
    ]  # fmt: skip
    assert [found[name].details["model"] for name in "123"] == ["m", "m", "n"]
    assert not any(again.lacks(name, "") for name in "123")
    assert again.lacks("1", '{"draw":1}')


WORK = 1e-5
"""Seconds of the fixed work at full pace."""


class Clock:
    """Calls take these seconds, the first of which is the warm-up's; then the last for ever. The
    core is slowed by each call's factor, too."""

    def __init__(self, monkeypatch, seconds, slowed=(1.0,)):
        self.now, self.left, self.slowed = 0.0, list(seconds), list(slowed)
        monkeypatch.setattr(kernel_timing.time, "perf_counter", lambda: self.now)
        self.pace = CoreSpeed(WORK, self.work)

    def call(self):
        if len(self.slowed) > 1:
            self.slowed.pop(0)
        self.now += (self.left.pop(0) if len(self.left) > 1 else self.left[0]) * self.slowed[0]

    def work(self):
        self.now += WORK * self.slowed[0]


def time_calls(call, config, pace) -> Timing:
    return timing_of(visit(clocked(call), config, pace))


def test_the_warm_up_does_not_count(monkeypatch):
    clock = Clock(monkeypatch, [100.0, 1e-3])
    timing = time_calls(clock.call, TimingConfig(seconds=0.0095, most_calls=100), clock.pace)
    assert (timing.seconds, timing.calls) == (pytest.approx(1e-3), 10)
    assert timing.spread == pytest.approx(0.0, abs=1e-9)
    assert timing.slowed == pytest.approx(1.0)


def test_a_slowed_core_does_not_change_the_time(monkeypatch):
    """Every call takes 1 ms at full pace, and twice as long; one piece of work was held up."""
    clock = Clock(monkeypatch, [1e-3], [2.0, 2.0, 2.0, 2.0, 50.0, 2.0])
    timing = time_calls(clock.call, TimingConfig(seconds=0.1, least_calls=8), clock.pace)
    assert timing.seconds == pytest.approx(1e-3)
    assert timing.median == pytest.approx(1e-3)
    assert timing.slowed == pytest.approx(2.0)


@pytest.mark.parametrize("count", [20, 50, 200, 999])
def test_the_interval_holds_the_quantile_in_95_of_100_cases(count):
    """As many of ``count`` values lie below the quantile as a binomial draw says; the interval
    holds it when these are more than ``low`` and at most ``high``."""
    low, high = interval_ranks(count)
    inside = binom.cdf(high, count, 0.15) - (binom.cdf(low, count, 0.15) if low else 0.0)
    assert 0.95 <= inside <= 0.99
