"""Policies judged by measured time: prices measured on demand, who is judged how, and the page."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tuning.xla.fakes import MEASURING, Machine, program

from experiments.learning.learned_rewards import Bench, LearnedRewards, row_of
from experiments.learning.learned_rewards_page import Row, cell, page, ratio
from experiments.learning.learned_rewards_search import Measuring, problem_of, settled
from go_rl.core import Budget, load_hardware
from go_rl.costs.models import Analytical, Kernels
from go_rl.costs.timing.config import CollectConfig
from go_rl.objectives.methods import Greedy, GreedyFusion
from go_rl.runtime.records import RecordStore
from go_rl.tuning.xla.budget import TuningBudget
from go_rl.tuning.xla.kernel_timer import KernelTimer

GRAPH = program().graph
BUSY = np.flatnonzero(~GRAPH.is_fed)
"""Six operators in a chain."""


def slow_when_fused(nodes, setting):
    """An operator takes a second; a kernel of two a second and a half, a larger one a minute."""
    return {1: 1.0, 2: 1.5}.get(len(nodes), 60.0)


@pytest.fixture
def bench(tmp_path):
    return Bench(program(), Machine(slow_when_fused), tmp_path, CollectConfig(target="cpu-1"))


def measuring(bench, tmp_path, seconds=float("inf")):
    budget = TuningBudget(seconds, bench.source.clock)
    store = RecordStore(tmp_path / "searched.sqlite")
    timer = KernelTimer(store, bench.source, CollectConfig(), "mlp", budget, bench.source.clock)
    return Measuring(timer, budget)


def pairs() -> np.ndarray:
    """[N] leaders: the operators in pairs along the chain."""
    leader = np.arange(GRAPH.num_nodes)
    leader[BUSY] = np.repeat(BUSY[::2], 2)
    return leader


def test_kernels_are_measured_when_they_are_first_priced(bench, tmp_path):
    model = measuring(bench, tmp_path)
    problem = problem_of("fusion", GRAPH, model)
    asked = len(bench.source.asked)
    assert problem.seconds[0].tolist() == [0.0 if fed else 1.0 for fed in GRAPH.is_fed]
    assert asked == len({kernel for kernel, _ in bench.source.asked}) <= len(BUSY)
    assert problem.kernels.seconds(pairs())[0].sum() == 4.5
    asked = len(bench.source.asked)
    assert problem.kernels.seconds(pairs())[0].sum() == 4.5
    assert len(bench.source.asked) == asked


def test_when_the_time_is_over_new_kernels_cost_what_their_nodes_do(bench, tmp_path):
    model = measuring(bench, tmp_path, (len(BUSY) + 1) * (MEASURING + 1))
    problem = problem_of("fusion", GRAPH, model)
    assert np.isfinite(problem.seconds).all()
    model.budget.charge(1e6)
    assert problem.kernels.seconds(pairs())[0].sum() == len(BUSY)
    which = np.array([0])
    one = Kernels(GRAPH, GRAPH.kind[BUSY[:1]], *np.zeros((3, 1)), pairs(), BUSY[which])
    assert model.seconds(one, load_hardware("cpu-1").devices[0]).tolist() == [np.inf]


def test_kernels_that_are_slower_than_their_nodes_are_taken_apart(bench, tmp_path):
    problem = problem_of("fusion", GRAPH, measuring(bench, tmp_path))
    plan = GreedyFusion().optimize(problem, Budget(1), 0)
    leader = pairs()
    leader[BUSY[:3]] = BUSY[0]
    leader[BUSY[3]] = BUSY[3]
    kept = settled(problem, replace(plan, fusion_group=leader))
    assert kept[BUSY].tolist() == [*BUSY[:4], BUSY[4], BUSY[4]]
    roofline = problem_of("fusion", GRAPH, Analytical())
    np.testing.assert_array_equal(settled(roofline, replace(plan, fusion_group=leader)), leader)


def test_plans_are_judged_by_what_was_measured(bench):
    options = LearnedRewards()
    assert bench.sum_seconds(pairs()) == (4.5, 3)
    unfused = row_of("fusion", bench, "unfused", 0, options)
    assert (unfused.parts, unfused.measured_ms, unfused.minutes) == (6, 6000.0, 0.0)
    plan = Greedy().optimize(problem_of("partition", GRAPH, Analytical()), Budget(10), 0)
    load = np.bincount(plan.device[BUSY]).max()
    assert bench.bottleneck(plan) == pytest.approx(load, rel=1e-3)
    row = row_of("partition", bench, "default", 0, options)
    assert row.measured_ms == pytest.approx(1e3 * load, rel=1e-3)
    assert row.parts == len(np.unique(plan.device))


def rows() -> list[Row]:
    def one(task, model, method, seed, measured, minutes=5.0):
        return Row(task, model, 9, method, seed, minutes, 40, 300.0, 7, measured / 2, measured)

    nan = float("nan")
    return [
        one("fusion", "a", "default", 0, 4.0, 0.0), one("fusion", "a", "learned", 0, 1.0),
        one("fusion", "a", "learned", 1, 4.0), one("fusion", "b", "default", 0, 2.0, 0.0),
        one("fusion", "b", "learned", 0, 4.0), one("fusion", "c", "default", 0, nan, 0.0),
        one("fusion", "c", "learned", 0, 3.0), one("partition", "a", "default", 0, 2.0, 0.0),
        one("partition", "a", "learned", 0, 1.0, 1.0),
    ]  # fmt: skip


def test_ratios_are_geometric_means_over_models():
    """Model a takes half as long as by default, b twice; c cannot be compared."""
    fusion = rows()[:7]
    assert cell(fusion, "a", "learned") == pytest.approx(2.0)
    assert ratio(fusion, "learned") == pytest.approx(1.0)
    assert ratio(fusion[:3], "learned") == pytest.approx(0.5)


def test_the_page():
    text = page(rows())
    assert "5 min a search for a fusion and 1 min a search for a partition" in text
    assert (
        "| model | nodes | default | learned |\n| --- | ---: | ---: | ---: |\n"
        "| a | 9 | 4 | 2 |\n| b | 9 | 2 | 4 |\n| c | 9 | – | 3 |\n"
        "| *ratio to the default* | | 1 | 1 |\n"
    ) in text
    assert "| learned | 40 | 7 | 0.5 |\n" in text
    assert "## Partition on four cores" in text
