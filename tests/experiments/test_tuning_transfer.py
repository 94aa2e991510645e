"""Cells of tuning that transfers by hand, Chameleon's page, latency of a live run."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.tuning import live
from experiments.tuning.guided import transfer_runs
from experiments.tuning.guided.recorded_programs import RecordedPrograms, without
from experiments.tuning.guided.transfer_runs import TransferPlan, TunedPools, outcome
from experiments.tuning.replayed import chameleon_replayed
from go_rl.tuning.loop.nouns import TunedOperator
from go_rl.tuning.pools.candidate_pool import CandidatePool, PoolSet
from tests.costs.programs.with_nests import with_nests_and_traces

SECONDS = ((4.0, 1.0, 2.0), (3.0, 6.0, 2.0))
"""Of a heavy operator, used once, and of a light one, used twice."""


def pools() -> TunedPools:
    """Candidates of both operators point to the right, upwards and to the left; the tuner likes the
    last one best. All trials take 10 s."""
    operators = (TunedOperator("conv2d a", "a", 1, 90.0), TunedOperator("conv2d b", "b", 2, 5.0))
    features = np.array([[0.0], [1.0], [9.0]], np.float32)
    made = tuple(
        CandidatePool(each, np.array(took, np.float32), np.full(3, 10.0, np.float32), features,
                     np.arange(3, dtype=np.uint64))
        for each, took in zip(operators, SECONDS, strict=True)
    )  # fmt: skip
    states = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]], np.float32)
    seconds = tuple(np.array(each) for each in SECONDS)
    return TunedPools(
        "toy", seconds, (np.full(3, 10.0),) * 2, (features.astype(np.float64),) * 2, (states,) * 2,
        (np.array([3.0, 2.0, 1.0]),) * 2, np.array([1.0, 2.0]), np.array([90.0, 5.0]),
        ("conv2d", "conv2d"), (np.array([1.0]),) * 2,
        RecordedPrograms(PoolSet("toy", "cpu", 1e9, made), (), 0),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("arm", "measured", "latency", "trials"),
    [
        (transfer_runs.ATTENTION, 0, 1 + 2 * 6.0, 3),  # upwards is the heavy one's best
        (transfer_runs.ATTENTION, 2, 1 + 2 * 2.0, 5),  # then to the left
        (transfer_runs.OWN, 1, 1 + 2 * 2.0, 4),
        (transfer_runs.FLOP, 1, 1 + 2 * 6.0, 4),
        (transfer_runs.SHAPE, 3, 1 + 2 * 2.0, 6),
        (transfer_runs.CHANCE, 0, 1 + 2 * 6.0, 3),
    ],
)
def test_latency_and_time_relative_to_full_tuning(arm, measured, latency, trials):
    """Full tuning ends at 1 + 2 x 2 seconds and takes 6 trials; a guide reads 3 candidates."""
    found = outcome(pools(), TransferPlan(0.5, 0, measured), arm, np.random.default_rng(0))
    assert found.tuned == 1
    assert found.latency == pytest.approx(latency / 5.0)
    assert found.time == pytest.approx((10.0 * trials + 0.09) / 60.0)


def test_tuned_operators_are_tried_in_the_tuners_order():
    """The heavy operator's last candidate, which it likes best, is 1 s slower than the best; both
    operators' candidates are read."""
    found = outcome(pools(), TransferPlan(0.5, 1, 1), transfer_runs.OWN, np.random.default_rng(0))
    assert found.latency == pytest.approx((2 + 2 * 2.0) / 5.0)
    assert found.time == pytest.approx((20.0 + 0.18) / 60.0)
    drawn = {
        outcome(
            pools(), TransferPlan(1.0, 1, 0), transfer_runs.NO_TUNER, np.random.default_rng(seed)
        ).time
        for seed in range(3)
    }
    assert drawn == {20.0 / 60.0}


def test_without_reuse_a_candidate_is_drawn():
    plan = TransferPlan(0.5, 0, 0)
    drawn = {
        outcome(pools(), plan, transfer_runs.NONE, np.random.default_rng(seed)).latency
        for seed in range(20)
    }
    assert sorted(drawn) == pytest.approx([(1 + 2 * took) / 5.0 for took in sorted(SECONDS[1])])
    whole = outcome(pools(), TransferPlan(1.0, 0, 0), transfer_runs.NONE, np.random.default_rng(0))
    assert (whole.tuned, whole.latency, whole.time) == (2, 1.0, 1.0)


def test_chameleons_page_tells_ratios():
    row = chameleon_replayed.ChameleonRow
    near = 90.0, 60.0, 45.0, 30.0
    rows = [
        row("r", "toy", 0, 5.0, 4.0, 100.0, 80.0, 50.0, 25.0, *near, 30, 40),
        row("r", "toy", 1, 5.0, 4.0, 90.0, float("inf"), 90.0, 45.0, *near, 30, 40),
        row("r", "toy", 2, 5.0, 4.0, 60.0, 50.0, 40.0, 20.0, *near, 30, 40),
    ]
    options = chameleon_replayed.ChameleonReplayed(seeds=3)
    text = chameleon_replayed._page(rows, [pools().recorded.pools], options)
    assert "| toy | 3.00 (2.00–4.00) | 1.50 (1.00–2.00) | 1.20 (never–1.25) | 3.00 (3.00" in text
    assert "75 %" in text


def test_latency_of_a_live_run_by_hand():
    """4 s for a minute, 2 s for two, 1 s for the last of four."""
    curve = np.array([[0.0, 4.0], [1.0, 2.0], [3.0, 1.0]])
    assert [live.at(curve, minutes) for minutes in (0.5, 1.0, 4.0)] == [4.0, 2.0, 1.0]
    assert live.mean_latency(curve, 4.0) == pytest.approx((4 + 2 * 2 + 1) / 4)


def test_operators_of_a_network_are_left_out():
    """Of programs of four tasks, those of two are another network's own."""
    examples = with_nests_and_traces(8, 4)
    own = tuple(task for task in examples.inputs.tasks[:2] if task is not None)
    left = without(examples, own)
    assert sorted(set(left.inputs.task.tolist())) == [2, 3]
    assert len(left.seconds) == 4
