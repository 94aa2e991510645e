"""Pools: the file, the replay, and what records become."""

import json

import numpy as np
import pytest

from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Candidate
from go_rl.tuning.pools.candidate_pool import load_pools
from go_rl.tuning.pools.replay import ReplayBackend
from tests.tuning.toy_pools import pool, pool_set


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
