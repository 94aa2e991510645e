"""Kernels are visited in turn; one that takes the worker down leaves a reason, the others times."""

from typing import Any

import numpy as np
import pytest

from go_rl.core import ExecutionError
from go_rl.costs.kernels.measure.worker import KernelRequest
from go_rl.costs.timing.collector import Asked, Collector, whole_keys
from go_rl.costs.timing.config import CollectConfig, TimingConfig
from go_rl.costs.timing.measuring_run import Hold, MeasuringRun, Release, Timed, Visit
from go_rl.costs.timing.rounds import (
    VISIT_SECONDS,
    RequestOutcome,
    measure_together,
)
from go_rl.costs.timing.timing import TimingSamples
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
