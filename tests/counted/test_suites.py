"""The first trials of every suite that is quick; a tenth of each as a slow test."""

import os

import pytest
from runner.suite import run_trial
from runner.worker_pool import Runner, chosen

from .malformed import CASES as MALFORMED
from .suites import NAMES, find_suite

pytestmark = pytest.mark.usefixtures("unchecked_types")

FIRST = {
    "checked-plans": 160, "corrupted-plans": 116, "small-problems": 66, "planted": 8,
    "metamorphic": 20, "environments": 20, "malformed-inputs": len(MALFORMED), "hostile-folders": 4,
    "grown-files": 1,
}  # fmt: skip
"""Trials of suites without processes, clocks and long trials: every sort of problem, corruption and
input. The other tests leave out what these hold."""


def test_every_suite_has_a_name_and_a_claim_of_its_own():
    suites = [find_suite(name) for name in NAMES]
    assert [suite.name for suite in suites] == list(NAMES)
    assert len({suite.proves for suite in suites}) == len(NAMES)
    assert set(NAMES) >= set(FIRST)


def test_the_counts_are_those_that_were_asked_for():
    asked = {name: find_suite(name) for name in NAMES}
    counts = {name: suite.count * suite.each for name, suite in asked.items()}
    least = {
        "checked-plans": 40_000, "corrupted-plans": 3_000, "small-problems": 5_000, "planted": 300,
        "anytime": 600, "malformed-inputs": 250, "mutants": 100_000,
        "model-mutants": 100_000, "determinism": 12,
        "kills": 100, "hostile-folders": 50, "two-runs": 12, "signals": 20, "grown-files": 60,
    }  # fmt: skip
    assert {name: counts[name] for name, count in least.items() if counts[name] < count} == {}


@pytest.mark.parametrize(("name", "trials"), FIRST.items())
def test_the_first_trials_hold(name, trials):
    suite = find_suite(name)
    assert [lost for i in range(trials) if (lost := run_trial(suite, i))] == []


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_tenth_holds(name, tmp_path):
    runner = Runner(tmp_path, processes=min(2, len(os.sched_getaffinity(0))))
    suite = find_suite(name)
    told: list[tuple[int, int]] = []
    lost = runner.run(suite, chosen(suite, 0.1), lambda done, failed: told.append((done, failed)))
    assert [f"{failure.repeat}: {failure.what}" for failure in lost] == []
    assert told[-1] == (len(chosen(suite, 0.1)), 0)
