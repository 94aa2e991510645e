"""Kernels are visited in turn; one that takes the worker down leaves a reason, the others times."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from go_rl.core import ExecutionError
from go_rl.costs.kernels.measure.collect import ModelEnd, operand_bytes
from go_rl.costs.kernels.measure.worker import KernelTask
from go_rl.costs.timing.collector import Asked, Collector, whole_keys
from go_rl.costs.timing.config import CollectConfig, TimingConfig
from go_rl.costs.timing.measuring_run import Hold, MeasuringRun, Release, Timed, Visit
from go_rl.costs.timing.rounds import (
    GROUP,
    NOT_READY,
    PARTIAL,
    VISIT_SECONDS,
    TaskOutcome,
    batches,
    measure_together,
)
from go_rl.costs.timing.timing import TimingSamples
from go_rl.runtime.records import RECORDS, RecordStore
from go_rl.runtime.warm_worker import WarmWorker, WorkerDied, WorkerFailed, WorkerTimeout

CONFIG = CollectConfig(timing=TimingConfig(visits=3))


def task(name: str, *shape: int) -> KernelTask:
    return KernelTask(name.encode(), (), ((shape, "float32"),), 1e-5)


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
            case Hold(number, task):
                assert number == len(self.held)
                name = task.program.decode()
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


def told(outcomes: list[TaskOutcome], name: str) -> list[Any]:
    return [each[name] for each in outcomes if not isinstance(each, str)]


def test_kernels_are_visited_in_turn_and_then_released():
    machine = Machine({})
    outcomes = measure_together(machine, [task("a"), task("b")], CONFIG)
    assert machine.visits == ["a", "b"] * 3
    assert machine.held == []
    assert told(outcomes, "calls") == [3, 3]
    assert told(outcomes, "seconds") == [1e-3, 1e-3]  # a low quantile of 1, 2 and 3
    assert told(outcomes, "compile_seconds") == [1.0, 1.0]


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
    outcomes = measure_together(machine, [task("a"), task("b"), task("c")], CONFIG)
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


def test_who_is_asked_for_behind_the_third_death_has_no_time():
    """Each time it dies in front of the second program."""
    outcomes = measure_together(Mortal({1, 3, 5}), [1.0, 2.0], CONFIG)
    assert told(outcomes, "seconds") == [1.0]
    assert outcomes[1] == "the worker's process died between two requests"


@pytest.mark.parametrize(("patience", "calls"), [(4.5e-3, 5), (1.5e-3, 3)])
def test_slow_ones_are_visited_until_patience_ends(patience, calls):
    """Its quickest call takes 1 ms, and five of these 5; three visits are the least."""
    config = replace(CONFIG, timing=replace(CONFIG.timing, visits=9, patience=patience))
    machine = Machine({}, config)
    assert told(measure_together(machine, [task("a")], config), "calls") == [calls]


@pytest.mark.parametrize(("variation", "calls"), [(0.48, 2), (0.47, 9), (0.0, 9)])
def test_what_varies_little_is_not_visited_again(variation, calls):
    """Visits take 1, 2, 3, ... ms: of the first two the standard deviation is sqrt(0.5) and the
    mean 1.5, a variation of 0.471; of more, the variation is larger."""
    config = replace(CONFIG, timing=replace(CONFIG.timing, visits=9, variation=variation))
    machine = Machine({}, config)
    assert told(measure_together(machine, [task("a")], config), "calls") == [calls]


def test_nothing_to_measure_asks_nobody():
    assert measure_together(Machine({}), [], CONFIG) == []


def in_batches(items: list[Asked | ModelEnd], most: int) -> list[list[Asked | ModelEnd]]:
    return [list(batch) for batch in batches(items, operand_bytes, most)]


def test_batches_end_where_memory_does():
    """Operands of 0, 0.8, 0.8 and 0.8 GB, of which two fit; the last is alone."""
    large = task("large", 200_000_000)
    items = [
        Asked("0", "", "no time", {}),
        Asked("1", "", large, {}),
        Asked("2", "", large, {}),
        ModelEnd("m", None),
        Asked("3", "", large, {}),
    ]
    assert in_batches(items, 10) == [items[:4], items[4:]]
    assert in_batches(items, 2) == [items[:2], items[2:4], items[4:]]


def test_times_are_kept_as_they_come_and_again_when_they_are_whole():
    """Both are visited four times: kept after the third, and after the last."""
    config = replace(CONFIG, timing=replace(CONFIG.timing, visits=4))
    machine, kept = Machine({}, config), []

    def keep(outcomes: dict[int, TaskOutcome]) -> None:
        kept.extend((i, told([o], "calls")[0], told([o], PARTIAL)[0]) for i, o in outcomes.items())

    outcomes = measure_together(machine, [task("a"), task("b")], config, keep)
    assert kept == [(0, 3, True), (1, 3, True), (0, 4, False), (1, 4, False)]
    assert told(outcomes, PARTIAL) == [False, False]


def test_the_first_have_times_while_the_last_are_not_compiled_yet():
    """Three rounds of visits follow the first group, and the run stops behind them."""
    names = [f"k{i}" for i in range(GROUP + 1)]
    machine, kept = Machine({f"hold {names[-1]}": KeyboardInterrupt()}), {}
    with pytest.raises(KeyboardInterrupt):
        measure_together(machine, [task(name) for name in names], CONFIG, kept.update)
    assert sorted(kept) == list(range(GROUP))


def test_the_first_have_times_while_the_next_are_not_made_yet():
    """Tasks are cut while others are measured: a run stopped at the second group has the first."""

    def cut():
        yield from (task(f"k{i}") for i in range(GROUP))
        raise KeyboardInterrupt

    kept = {}
    with pytest.raises(KeyboardInterrupt):
        measure_together(Machine({}), cut(), CONFIG, kept.update)
    assert sorted(kept) == list(range(GROUP))


def test_a_collector_keeps_what_was_asked_for_and_lacks_it_no_longer(tmp_path):
    """A time, a reason of the worker and one why nothing could be asked."""
    machine = Machine({"b": WorkerFailed("ValueError", "wrong")})
    asked = [
        Asked("1", "", task("a"), {"model": "m"}, ("compile_seconds", VISIT_SECONDS)),
        Asked("2", "", task("b"), {"model": "m"}, ("compile_seconds",)),
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


class Disturbed(Machine):
    """A machine whose core is disturbed from time to time.

    Args:
        before: visits, from 0, of which each finds the core disturbed before it begins.
        meanwhile: visits during which it is.
    """

    def __init__(self, before: set[int], meanwhile: set[int], config: CollectConfig) -> None:
        super().__init__({}, config)
        self.before, self.meanwhile = before, meanwhile
        self.asked = 0

    def call(self, request: Any, timeout: float) -> Any:
        if not isinstance(request, Visit):
            return super().call(request, timeout)
        number, self.asked = self.asked, self.asked + 1
        may_be_disturbed = request.timing.most_slowed == 0
        if number in self.before and not may_be_disturbed:
            return None
        timing = self.config.timing
        samples = super().call(replace(request, timing=timing), timeout)
        slowed = 2.0 if number in self.before | self.meanwhile else 1.0
        return replace(samples, slowed=np.array([slowed]))


def quiet(**changes: Any) -> CollectConfig:
    return CollectConfig(timing=TimingConfig(visits=3, most_slowed=1.1, **changes))


@pytest.mark.parametrize("disturbed", range(7))
def test_a_disturbed_visit_does_not_count_and_is_made_again(disturbed):
    for machine in (Disturbed({disturbed}, set(), quiet()), Disturbed(set(), {disturbed}, quiet())):
        outcomes = measure_together(machine, [task("a"), task("b")], machine.config)
        assert told(outcomes, "calls") == [3, 3]
        assert told(outcomes, "slowed") == [1.0, 1.0]


def test_who_waited_long_enough_visits_a_disturbed_core():
    always = set(range(99))
    machine = Disturbed(always, set(), quiet(wait=0.03))
    outcomes = measure_together(machine, [task("a"), task("b")], machine.config)
    assert told(outcomes, "calls") == [3, 3]
    assert told(outcomes, "slowed") == [2.0, 2.0]


def test_of_quiet_and_disturbed_visits_the_quiet_ones_count():
    """The first program has three visits at once, the second one of a quiet core."""
    machine = Disturbed(set(range(4, 99)), set(), quiet(wait=0.03))
    outcomes = measure_together(machine, [task("a"), task("b")], machine.config)
    assert machine.visits.count("b") == 3
    assert told(outcomes, "calls") == [3, 1]
    assert told(outcomes, "slowed") == [1.0, 1.0]


def test_what_was_disturbed_while_it_ran_comes_behind_the_others():
    machine = Disturbed(set(), {0}, quiet())
    measure_together(machine, [task("long"), task("b")], machine.config)
    assert machine.visits == ["long"] * 3 + ["b", "long", "b", "b"]


def test_what_was_disturbed_is_measured_by_the_next_run(tmp_path):
    with RecordStore(tmp_path / RECORDS) as store:
        machine = Disturbed(set(range(99)), set(), quiet(wait=0.03))
        collector = Collector(store, machine, machine.config, 1.0, set())
        collector.measure([Asked("w", "{}", task("a"), {}), Asked("w", "[]", task("b"), {})])
        target = machine.config.target
        assert whole_keys(store, target) == {("w", "{}", 0), ("w", "[]", 0)}
        assert whole_keys(store, target, most_slowed=1.1) == set()


@pytest.mark.parametrize("config", [CONFIG, quiet()])
def test_while_the_next_is_not_ready_the_others_are_visited(config):
    machine = Machine({}, config)
    late = [task("a"), *[NOT_READY] * (3 * GROUP), task("b")]
    assert told(measure_together(machine, late, config), "calls") == [3, 3]
    assert machine.visits == ["a"] * 3 + ["b"] * 3


def test_nothing_is_recorded_of_what_is_not_ready(tmp_path):
    with RecordStore(tmp_path / RECORDS) as store:
        collector = Collector(store, Machine({}), CONFIG, 1.0, set())
        collector.measure([NOT_READY, Asked("w", "{}", task("a"), {}), NOT_READY])
        assert collector.made == store.count(CONFIG.target) == 1
