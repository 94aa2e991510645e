"""A handful of trials of every suite, so that none rots; a tenth of each as a slow test."""

import os

import numpy as np
import pytest
from runner.worker_pool import Runner, chosen

from .corruptions import CORRUPTIONS
from .malformed import CASES
from .suites import NAMES, find_suite

pytestmark = pytest.mark.usefixtures("unchecked_types")

FEW = {
    "checked-plans": range(8),
    "corrupted-plans": range(len(CORRUPTIONS)),
    "small-problems": range(11, 33),
    "planted": range(8, 16),
    "metamorphic": range(8),
    "environments": range(5, 25),
    "malformed-inputs": np.random.default_rng(0).permutation(len(CASES))[:16].tolist(),
    "mutants": (4,),
    "model-mutants": (0,),
    "hostile-folders": (0, 13, 26, 39),
    "grown-files": (0, 1, 3, 4),
}
"""Trials of less than a second or two together; suites of processes and clocks have none."""
SLOW_ONLY = {"anytime", "determinism", "kills", "signals", "two-runs"}


def test_every_suite_has_a_name_and_a_claim_of_its_own():
    suites = [find_suite(name) for name in NAMES]
    assert [suite.name for suite in suites] == list(NAMES)
    assert len({suite.proves for suite in suites}) == len(NAMES)
    assert set(FEW) | SLOW_ONLY == set(NAMES)


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


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_tenth_holds(name, tmp_path):
    runner = Runner(tmp_path, processes=min(2, len(os.sched_getaffinity(0))))
    suite = find_suite(name)
    told: list[tuple[int, int]] = []
    lost = runner.run(suite, chosen(suite, 0.1), lambda done, failed: told.append((done, failed)))
    assert [f"{failure.repeat}: {failure.what}" for failure in lost] == []
    assert told[-1] == (len(chosen(suite, 0.1)), 0)
