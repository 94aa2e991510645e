"""Exact methods of rings."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from reference.random_rings import random_ring
from reference.ring_optimum import optimum
from reference.ring_rules import copied_by, partitions
from reference.small_rings import ring_problem

from go_rl.core import Budget, Optimizer, Problem, Status, rule_set
from go_rl.objectives.common.units import bound_units, ring_units
from go_rl.objectives.methods import IdealDP
from go_rl.objectives.ring.ideals.ideal_dp import FOUND, NONE, TRUNCATED, Limits, stages_within
from go_rl.objectives.ring.methods.exact import Exact
from go_rl.objectives.ring.simulate.pricing import RingPricer
from go_rl.solvers import ring_instance
from go_rl.verify.check_plan import check_plan
from go_rl.verify.rules import legal


def test_exact_finds_and_proves_the_optimum():
    proved = 0
    for seed in range(40):
        problem = random_ring(seed, 5, 3)
        pricer = RingPricer(problem)
        legal_ones = list(partitions(problem, copied_by(pricer.replicated)))
        if problem.memory or not legal_ones:
            continue
        values, _ = pricer.price(np.array(legal_ones, np.int16))
        plan = Exact(workers=1).optimize(problem, Budget(seconds=10.0), seed)
        assert plan.value == pytest.approx(values.min(), rel=1e-6), seed
        assert check_plan(plan, problem).ok, seed
        proved += plan.optimal
    assert proved > 5


def test_exact_says_that_nothing_exists():
    problem = ring_problem(3, [(0, 1), (1, 2)], 2, fixed={1: 1, 2: 0})
    plan = Exact().optimize(problem, Budget(seconds=5.0), 0)
    assert plan.evaluation.status is Status.INFEASIBLE
    assert isinstance(Exact(), Optimizer)


@pytest.mark.parametrize("work", [0.02, 0.2])
def test_with_samples_alone_it_repeats_whatever_the_clock_says(monkeypatch, work):
    monkeypatch.setattr("go_rl.objectives.ring.methods.exact.WORK_SECONDS", work)
    problem = random_ring(3, 40, 4)

    def found():
        plan = Exact(workers=2).optimize(problem, Budget(samples=8), 1)
        return plan.value, plan.bound, plan.device.tolist(), plan.optimal

    assert found() == found()


pytestmark = pytest.mark.usefixtures("unchecked_types")


def plain(seed: int, rules: str, nodes: int = 6, chips: int = 3) -> Problem:
    """Without memory, pins and --all-chips, of which the search knows nothing or less."""
    problem = random_ring(seed, nodes, chips)
    return replace(problem, rules=rule_set(rules), memory=False, all_chips=False, fixed={})


@pytest.mark.parametrize("rules", ["relay", "default"])
def test_without_truncation_the_optimum_is_found_and_proved(rules):
    solved = 0
    for seed in range(0, 80, 2):
        problem = plain(seed, rules)
        best = optimum(problem)
        if best is None:
            continue
        plan = IdealDP().optimize(problem, Budget(samples=400), 0)
        assert plan.value == pytest.approx(best, rel=1e-9), seed
        assert plan.bound == pytest.approx(best, rel=1e-3), seed
        solved += best > 0
    assert solved > 20


@pytest.mark.parametrize("rules", ["strict", "replicate", "relay", "default"])
def test_whatever_is_found_is_legal_and_within_time(rules):
    """From an impossible T up: work, traffic and the checker's rules, triangles included."""
    seen: Counter[object] = Counter()
    for seed in range(60):
        problem = plain(seed, rules, 10, 6)
        pricer, instance = RingPricer(problem), ring_instance(problem)
        units, chips = ring_units(instance), problem.hardware.num_devices
        total = float(units.work.sum() + units.tensor_seconds.sum()) + units.latency
        if total == 0:
            continue
        for share in (0.2, 0.35, 0.5, 0.7):
            limits = Limits(share * total, chips, np.inf, problem.rules.triangle, 2000)
            verdict, order, stage = stages_within(units, limits)
            seen[verdict] += 1
            if verdict != FOUND:
                continue
            assert sorted(order) == list(range(units.num_units))
            assert sorted(set(stage.tolist())) == list(range(stage.max() + 1))
            assert stage.max() < chips
            block = instance.block_of
            device = np.where(block >= 0, stage[np.maximum(block, 0)], 0).astype(np.int16)
            home, _ = pricer.place(device)
            assert not legal(problem, home, pricer.replicas(device)), seed
            evaluation = pricer.evaluate(device)
            copied = float(problem.work[pricer.replicated].sum())
            limit = share * total * (1 + 1e-9)
            assert evaluation.device_seconds.max() <= limit + copied, seed
            assert evaluation.link_seconds.max() <= limit, seed
            seen["several"] += stage.max() > 1
    assert min(seen[FOUND], seen[NONE], seen["several"]) > 20


def test_two_chips_side_by_side_escape_the_triangle_rule():
    """0 feeds 1 and 2, both feed 3; 4 s each and no order between 1 and 2. In a line, 0 -> 2 or
    1 -> 3 passes over a chip; with 1 and 2 side by side all paths are equally long."""
    problem = ring_problem(4, [(0, 1), (0, 2), (1, 3), (2, 3)], 4, seconds=[4.0] * 4, memory=False)
    units = ring_units(ring_instance(problem))
    verdict, _, stage = stages_within(units, Limits(4.0, 4, np.inf, True, 100))
    assert verdict == FOUND
    assert sorted(stage.tolist()) == [0, 1, 2, 3]
    assert not legal(problem, stage.astype(np.int16), {})
    assert stages_within(units, Limits(4.0, 3, np.inf, True, 100))[0] == NONE


def test_weights_of_a_stage_are_limited():
    problem = ring_problem(3, [(0, 1), (1, 2)], 3, "relay", weights=[5.0, 5.0, 5.0])
    units = ring_units(ring_instance(problem))
    assert stages_within(units, Limits(3.0, 3, 10.0, False, 50))[2].max() == 1
    assert stages_within(units, Limits(3.0, 1, 14.0, False, 50))[0] == NONE


def test_what_was_dropped_is_never_called_impossible():
    """99 s of work fill three chips to the brim in one way; with one state a layer it is lost."""
    rng = np.random.default_rng(8)
    work = rng.integers(1, 20, 9).astype(float).tolist()
    pairs = [(a, b) for a in range(9) for b in range(a + 1, 9)]
    edges = [pair for pair in pairs if rng.random() < 0.2]
    units = ring_units(ring_instance(ring_problem(9, edges, 3, "relay", seconds=work)))
    verdicts = [stages_within(units, Limits(33.0, 3, np.inf, False, w))[0] for w in (1, 20_000)]
    assert verdicts == [TRUNCATED, FOUND]
    assert stages_within(units, Limits(32.9, 3, np.inf, False, 20_000))[0] == NONE


def test_nothing_to_place_is_found_at_once():
    """Only the node with work is left for a proof; of a model of copies, nothing that is read."""
    problem = ring_problem(2, [(0, 1)], 2, "default", seconds=[0.0, 1.0])
    units = bound_units(ring_instance(problem))
    assert units.num_units == 1
    none = replace(units, work=units.work[:0], weight=units.weight[:0])
    verdict, order, stage = stages_within(none, Limits(1.0, 2, np.inf, False, 10))
    assert (verdict, len(order), len(stage)) == (FOUND, 0, 0)
