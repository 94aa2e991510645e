"""Pools: the file, the replay, and what records become."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest

from go_rl.core.files.strict_json import parse_json
from go_rl.costs.programs.nests import (
    OPERATION_NAMES,
    Access,
    ForLoop,
    LoopNest,
    LoopVariable,
    NestBuffer,
    Statement,
    nest_to_json,
)
from go_rl.costs.programs.workloads import TensorTask
from go_rl.runtime.records import Record, canonical_json
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.nouns import Schedule, draw_fresh
from go_rl.tuning.pools.pools_from_records import pools_from_records
from go_rl.tuning.pools.replay import NEAREST, ReplayBackend
from go_rl.tuning.pools.schedule_pool import PoolSet, load_pools
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
    assert (again.network, again.target, again.schedules) == ("toy", "toy-target", 34)
    for one, other in zip(again.pools, pools().pools, strict=True):
        assert one.operator == other.operator
        for name in ("seconds", "spent", "features", "keys"):
            np.testing.assert_array_equal(getattr(one, name), getattr(other, name))


def test_replaying_gives_what_was_recorded_and_moves_the_clock():
    backend = ReplayBackend(pools())
    schedules = [Schedule(f"{i:016x}") for i in (2, 1)]
    fast, failed = backend.measure(0, schedules)
    assert fast.seconds == pytest.approx(1e-3)
    assert (failed.seconds, failed.reason) == (None, "it failed when it was recorded")
    assert backend.clock() == 1.0
    with pytest.raises(TuningError, match="conv2d a: schedule 'x' is not in the recorded pool"):
        backend.measure(0, [Schedule("x")])


def test_a_pool_is_drawn_without_replacement_and_neighbours_are_near():
    space, rng = ReplayBackend(pools()).space(1), np.random.default_rng(0)
    drawn = space.draw(100, rng)
    assert len({schedule.key for schedule in drawn}) == len(drawn) == 30
    known = {schedule.key for schedule in drawn[:25]}
    fresh = draw_fresh(space, 10, known, rng)
    assert {schedule.key for schedule in fresh} == {schedule.key for schedule in drawn[25:]}
    near = {int(space.neighbour(Schedule(f"{15:016x}"), rng).key, 16) for _ in range(200)}
    assert near <= set(range(15 - NEAREST, 15 + NEAREST + 1)) - {15}
    assert space.features(drawn[:3]).shape == (3, 1)
    alone = ReplayBackend(pool_set(pool("conv2d", 1, 1e7, [1e-3]))).space(0)
    assert alone.neighbour(Schedule(f"{0:016x}"), rng) is None


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
    with pytest.raises(TuningError, match="cannot be read as schedule pools"):
        load_pools(path)
    with pytest.raises(TuningError, match="no recorded network 'resnet'"):
        load_pools("resnet")
    one = pools().pools[0]
    with pytest.raises(TuningError, match="a schedule is there twice"):
        type(one)(one.operator, one.seconds, one.spent, one.features, one.keys * 0)


TASK = TensorTask("matmul", (1, 8, 8, 8))


def copy_nest() -> LoopNest:
    """B[8] = A[8] + A[8]."""
    here = (LoopVariable(0),)
    counts = tuple(int(name == "float_add_sub") for name in OPERATION_NAMES)
    add = Statement(Access(1, here), (Access(0, here), Access(0, here)), counts)
    buffers = (NestBuffer("A", (8,)), NestBuffer("B", (8,)))
    return LoopNest(buffers, (ForLoop(8, "serial", (add,)),))


def record(number, trace, **fields):
    details = {"nest": nest_to_json(copy_nest()), "trace": trace, "compile_seconds": 0.25,
               "visit_seconds": 0.5}  # fmt: skip
    given = {"seconds": 1e-3 * (number + 1), "repeats": 3, "details": details} | fields
    return Record(workload=TASK.workload, target="t", setting=f'{{"draw":{number}}}', **given)


def test_records_become_pools():
    slow = {"seconds": None, "repeats": 0, "details": {}}
    found = pools_from_records(
        "net", {TASK: 3},
        [
            record(0, "a"), record(1, "b"), record(2, "a"),
            record(3, "c", reason="took more than 20 s", **slow),
            record(4, "d", reason="4 schedules could be drawn; this is number 4", **slow),
        ],
        1e11, {},
    )  # fmt: skip
    assert isinstance(found, PoolSet)
    (only,) = found.pools
    assert (only.operator.repeats, only.operator.flops) == (3, 1024.0)
    assert only.operator.name == TASK.title
    seconds = only.seconds.tolist()
    assert seconds[:2] == pytest.approx([1e-3, 2e-3])
    assert len(seconds) == 3
    assert isnan(seconds[2])
    assert only.spent.tolist() == pytest.approx([0.75, 0.75, 20.0])
    assert only.features.shape == (3, 164)
    assert only.features[0].sum() > 0
    assert found.provenance["impossible"] == 0
    median = record(0, "a").details | {"median": 4e-3}
    noisy = [record(0, "a", details=median), record(1, "b", seconds=1e-9)]
    with_noise = pools_from_records("net", {TASK: 1}, noisy, 1e11, {})
    assert with_noise.pools[0].seconds[0] == pytest.approx(4e-3)
    assert isnan(with_noise.pools[0].seconds[1])  # 1024 FLOP in 1 ns exceed the peak
    assert with_noise.provenance["impossible"] == 1
    other = Record(workload=TASK.workload, target="u", seconds=1.0, repeats=1)
    with pytest.raises(TuningError, match="records must be of one target, not of t, u"):
        pools_from_records("net", {TASK: 1}, [record(0, "a"), other], 1e11, {})
    with pytest.raises(TuningError, match="not of none"):
        pools_from_records("net", {TASK: 1}, [], 1e11, {})
