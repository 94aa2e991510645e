"""The loop of slots, pools, and killed processes."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.journal import FileJournal
from go_rl.tuning.loop.nouns import Candidate
from go_rl.tuning.pools.candidate_pool import load_pools
from go_rl.tuning.pools.replay import ReplayBackend
from tests.tuning.loop.killed_run import BEGUN
from tests.tuning.toy_pools import pool, pool_set, tune

FALLING = [8e-3, 4e-3, 2e-3, 1e-3, 1e-3, 1e-3, 1e-3, 1e-3]
FALLING_POOLS = pool_set(pool("conv2d a", 1, 1e7, FALLING), pool("conv2d b", 1, 1e7, FALLING))


def test_an_operator_without_a_candidate_that_works_is_given_up():
    """The other goes on, and the network's latency is without it."""
    pools = pool_set(
        pool("conv2d a", 3, 1e7, [np.nan] * 6), pool("conv2d b", 2, 1e7, [4e-3, 2e-3, 1e-3, 1e-3])
    )
    for scheduler in ("round-robin", "dynamic-round-robin", "rounds", "ansor"):
        state = tune(pools, scheduler)
        assert [each.given_up for each in state.operators] == [True, False]
        assert len(state.operators[0].curve) == 3  # the patience of these tests
        assert state.latency == pytest.approx(2e-3)
        assert state.untuned_latency < np.inf


def test_no_candidate_that_works_of_any_operator_is_an_error():
    pools = pool_set(pool("conv2d a", 1, 1e7, [np.nan, np.nan, np.nan, np.nan]))
    with pytest.raises(TuningError, match="conv2d a: none of 3 candidates works"):
        tune(pools)
    with pytest.raises(TuningError, match="no tunable operator"):
        tune(pool_set())


def test_no_more_trials_are_made_than_asked_for_and_more_may_be_asked_for(tmp_path):
    def once(trials, folder="a"):
        journal = FileJournal(tmp_path / f"{folder}.jsonl", {"seed": 0})
        return tune(FALLING_POOLS, "dynamic-round-robin", journal, trials=trials)

    assert [once(trials, str(trials)).trials for trials in (1, 2, 5)] == [1, 2, 5]
    first, again = once(7), once(7)
    assert (first.trials, again.summary()) == (7, first.summary())
    assert once(9).trials == 9


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: text.replace(b'"version":1', b'"version":2'), "of version 2"),
        (lambda text: text.replace(b'"seed":3', b'"seed":4', 1), "another run .*differs in seed"),
        (lambda text: b"what\n" + text, "line 1 does not say"),
        (lambda text: text.replace(b'"phase":"slot"', b'"phase":"sl"', 1), "line .* is damaged"),
    ],
)
def test_journals_that_are_not_of_this_run_are_refused(tmp_path, change, said):
    path, about = tmp_path / "journal.jsonl", {"seed": 3}
    tune(FALLING_POOLS, journal=FileJournal(path, about), seconds=5.0)
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(TuningError, match=said):
        FileJournal(path, about)


def pools():
    return pool_set(
        pool("conv2d a", 2, 1e7, [3e-3, np.nan, 1e-3, 2e-3], 0.5),
        pool("matmul b", 1, 1e6, np.linspace(1e-3, 2e-3, 30)),
    )


def test_a_file_keeps_what_was_measured(tmp_path):
    path = tmp_path / "toy.npz"
    pools().save(path)
    again = load_pools(path)
    assert again.digest == pools().digest
    assert (again.network, again.target, again.candidates) == ("toy", "toy-target", 34)
    for one, other in zip(again.pools, pools().pools, strict=True):
        assert one.operator == other.operator
        for name in ("seconds", "spent", "features", "keys"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_the_pools_that_ship_are_read_by_name():
    found = load_pools("squeezenet")
    assert found.network == "squeezenet"
    assert found.candidates == sum(len(each.keys) for each in found.pools) > 1000


def test_replaying_gives_what_was_recorded_and_moves_the_clock():
    backend = ReplayBackend(pools())
    candidates = [Candidate(f"{i:016x}") for i in (2, 1)]
    fast, failed = backend.measure(0, candidates)
    assert fast.seconds == pytest.approx(1e-3)
    assert (failed.seconds, failed.reason) == (None, "it failed when it was recorded")
    assert backend.clock() == 1.0
    with pytest.raises(TuningError, match="conv2d a: candidate 'x' is not in the recorded pool"):
        backend.measure(0, [Candidate("x")])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "x"}, "is no file of candidate pools"),
        ({"version": 2}, "its version is 2, .* make them again from their records"),
        ({"digest": "0"}, "does not match its digest"),
        ({"operators": []}, "is damaged"),
        ({"network": None, "peak_flops": None}, "is damaged"),
    ],
)
def test_files_that_are_damaged_or_foreign_are_refused(tmp_path, change, said):
    path = tmp_path / "toy.npz"
    pools().save(path)
    with np.load(path) as file:
        arrays = dict(file)
    manifest = json.loads(arrays["manifest"].tobytes()) | change
    arrays["manifest"] = np.frombuffer(json.dumps(manifest).encode(), np.uint8)
    np.savez_compressed(path, **arrays)
    with pytest.raises(TuningError, match=said):
        load_pools(path)


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
