"""Pools: the file, the replay, and what records become."""

import numpy as np
import pytest

from go_rl.core.files.strict_json import parse_json
from go_rl.runtime.records import canonical_json
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Candidate, draw_fresh
from go_rl.tuning.pools.candidate_pool import load_pools
from go_rl.tuning.pools.replay import NEAREST, ReplayBackend
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


def test_a_pool_is_drawn_without_replacement_and_neighbours_are_near():
    space, rng = ReplayBackend(pools()).space(1), np.random.default_rng(0)
    drawn = space.draw(100, rng)
    assert len({candidate.key for candidate in drawn}) == len(drawn) == 30
    known = {candidate.key for candidate in drawn[:25]}
    fresh = draw_fresh(space, 10, known, rng)
    assert {candidate.key for candidate in fresh} == {candidate.key for candidate in drawn[25:]}
    near = {int(space.neighbour(Candidate(f"{15:016x}"), rng).key, 16) for _ in range(200)}
    assert near <= set(range(15 - NEAREST, 15 + NEAREST + 1)) - {15}
    assert space.features(drawn[:3]).shape == (3, 1)
    alone = ReplayBackend(pool_set(pool("conv2d", 1, 1e7, [1e-3]))).space(0)
    assert alone.neighbour(Candidate(f"{0:016x}"), rng) is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda header: header | {"format": "x"}, "does not say 'go_rl schedule pools'"),
        (lambda header: header | {"version": 2}, "pools of version 2"),
        (lambda header: header | {"digest": "0"}, "its digest is another"),
        (lambda header: header | {"operators": header["operators"][:1]}, "is damaged"),
        (lambda header: {"format": header["format"], "version": 1}, "is damaged"),
    ],
)
def test_files_that_are_damaged_or_foreign_are_refused(tmp_path, change, said):
    path = tmp_path / "toy.npz"
    pools().save(path)
    with np.load(path) as file:
        arrays = dict(file)
    header = change(parse_json(arrays["header"].tobytes().decode()))
    arrays["header"] = np.frombuffer(canonical_json(header).encode(), np.uint8)
    np.savez_compressed(path, **arrays)
    with pytest.raises(TuningError, match=said):
        load_pools(path)


def test_files_that_are_none_are_refused(tmp_path):
    path = tmp_path / "toy.npz"
    pools().save(path)
    path.write_bytes(path.read_bytes()[:-200])
    with pytest.raises(TuningError, match="cannot be read as candidate pools"):
        load_pools(path)
    with pytest.raises(TuningError, match="no recorded network 'resnet'"):
        load_pools("resnet")
    one = pools().pools[0]
    with pytest.raises(TuningError, match="a candidate is there twice"):
        type(one)(one.operator, one.seconds, one.spent, one.features, one.keys * 0)
