"""Processes that tune are killed at random moments, and others go on in their place."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.tuning.loop.killed_run import BEGUN

ROOT = Path(__file__).parents[3]


def started(journal: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.tuning.loop.killed_run", str(journal)],
        cwd=ROOT, text=True, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().strip() == BEGUN
    return process


@pytest.mark.slow
def test_fifty_kills_are_each_resumed_to_the_same_state(tmp_path):
    began = time.monotonic()
    whole, _ = started(tmp_path / "whole.jsonl").communicate()
    takes, rng = time.monotonic() - began, np.random.default_rng(7)
    kept = (tmp_path / "whole.jsonl").read_bytes()
    kills = finished = 0
    while kills < 50:
        journal = tmp_path / f"{finished}.jsonl"
        process = started(journal)
        time.sleep(float(rng.uniform(0.0, 0.5 * takes)))
        process.send_signal(signal.SIGKILL)
        found, _ = process.communicate()
        if found:  # it was over before it was killed
            assert (found, journal.read_bytes()) == (whole, kept)
            finished += 1
            continue
        kills += 1
        text = journal.read_bytes() if journal.exists() else b""
        assert kept.startswith(text)
    found, _ = started(journal).communicate()
    assert (found, journal.read_bytes()) == (whole, kept)
    assert finished >= 1
