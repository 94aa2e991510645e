"""The first trial of every suite, so that none rots; a tenth of each as a slow test."""

import os

import pytest
from runner.trial import run_trial
from runner.worker_pool import Runner, chosen

from .suites import NAMES, find_suite

pytestmark = pytest.mark.usefixtures("unchecked_types")

SLOW_ONLY = {"anytime", "determinism", "kills", "mutants", "model-mutants", "signals", "two-runs"}
"""Suites of processes, clocks and long trials."""
FEW = sorted(set(NAMES) - SLOW_ONLY)


def test_every_suite_has_a_name_and_a_claim_of_its_own():
    suites = [find_suite(name) for name in NAMES]
    assert [suite.name for suite in suites] == list(NAMES)
    assert len({suite.proves for suite in suites}) == len(NAMES)
    assert set(NAMES) >= SLOW_ONLY


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


@pytest.mark.parametrize("name", FEW)
def test_the_first_trial_holds(name):
    assert run_trial(find_suite(name), 0) is None


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_tenth_holds(name, tmp_path):
    runner = Runner(tmp_path, processes=min(2, len(os.sched_getaffinity(0))))
    suite = find_suite(name)
    told: list[tuple[int, int]] = []
    lost = runner.run(suite, chosen(suite, 0.1), lambda done, failed: told.append((done, failed)))
    assert [f"{failure.repeat}: {failure.what}" for failure in lost] == []
    assert told[-1] == (len(chosen(suite, 0.1)), 0)
