"""Pools of records, and paths of inner tuners over them."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest

from experiments.tuning.make_pools import pools_from_records
from experiments.tuning.replayed.replayed_runs import RecordedPath, record_path
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
from go_rl.runtime.records import Record
from go_rl.tuning.config import TuningError
from go_rl.tuning.loop.schedulers import scheduler_of
from go_rl.tuning.loop.slot_loop import tune_operators
from go_rl.tuning.loop.slots import SlotConfig
from go_rl.tuning.pools.candidate_pool import PoolSet
from go_rl.tuning.pools.replay import ReplayBackend
from go_rl.tuning.tuners import inner_tuner
from tests.tuning.toy_pools import pool, pool_set

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


def falling(rng, count):
    """Seconds whose best falls with diminishing returns."""
    return (1e-3 + 5e-3 * np.exp(-np.arange(count) / rng.uniform(3, 12))) * rng.uniform(0.5, 2)


def test_a_recorded_path_is_walked_as_the_inner_tuner_made_it():
    rng = np.random.default_rng(3)
    pools = pool_set(*(pool(f"conv2d {k}", 1, 1e7, falling(rng, 40)) for k in range(2)))
    config = SlotConfig(seconds=1e6, batch=4, patience=20, seed=5)
    paths = [record_path(pools, k, inner_tuner("random"), config) for k in range(2)]
    walked = iter(paths)
    scheduler = scheduler_of("dynamic-random")
    live = tune_operators(ReplayBackend(pools), scheduler, inner_tuner("random"), config)
    again = tune_operators(
        ReplayBackend(pools), scheduler, lambda *_: RecordedPath(next(walked)), config
    )
    assert again.summary() == live.summary()
