"""Moves of units: sums by differences equal sums, states stay legal, starts get better."""

import numpy as np
import pytest
from reference.random_rings import random_ring

from go_rl.core import Budget, Evaluation, Status, load_hardware, rule_set
from go_rl.core.decisions import Decisions
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.zoo import zoo_graph
from go_rl.objectives.methods import LinearDP, UnitAnnealing
from go_rl.objectives.ring.methods import unit_annealing
from go_rl.objectives.ring.methods.unit_annealing import _nodes_on, _units_on
from go_rl.objectives.ring.methods.unit_moves import anneal_moves, move_arrays, move_state
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace
from go_rl.verify.check_plan import check_plan


def _problem(name="gcn-3-layers", hardware="ring4", rules="strict", **options):
    chosen = ProblemOptions(rules=rule_set(rules), memory=True, **options)
    return make_problem(zoo_graph(name), load_hardware(hardware), chosen)


@pytest.mark.parametrize("hardware", ["ring4", "ring4-mixed", "ring6"])
def test_what_the_kernel_counts_is_what_the_simulator_prices(hardware):
    workspace = RingWorkspace(_problem("wavenet-1x10", hardware))
    start = LinearDP().optimize(workspace.problem, Budget(samples=10), 0)
    arrays = move_arrays(workspace, 1.0)
    state = move_state(arrays, _units_on(workspace, start.device), seed=0)
    for temperature in (0.03, 0.003, 0.0):
        anneal_moves(arrays, state, 3_000, max(temperature, 1e-9), 20.0)
        device = _nodes_on(workspace, state)
        scored = workspace.evaluate(Decisions(device[None]))
        assert scored.ok.all()
        assert scored.seconds[0] == pytest.approx(state.seconds[0], rel=1e-9)
        legal, evaluation, _ = workspace.repair(device)
        assert legal is not None
        assert legal.device[0].tolist() == device.tolist()
        assert evaluation.seconds == pytest.approx(state.seconds[0], rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_pins_and_kinds_keep_their_chips(seed):
    problem = random_ring(seed, 9, 4)
    plan = UnitAnnealing().optimize(problem, Budget(samples=4_000), seed)
    if plan.evaluation.status.ok:
        assert check_plan(plan, problem).ok
        assert all(plan.device[node] == chip for node, chip in problem.fixed.items())


def test_no_attempt_draws_the_moves_of_another(monkeypatch):
    """Every best state is called out of memory: attempts differ in their seeds, the last shares of
    memory used up or not."""
    seeds = []
    made = unit_annealing.move_state
    full = Evaluation(Status.OUT_OF_MEMORY, np.inf, *[np.zeros(4)] * 6)

    def counted(arrays, chip, seed):
        seeds.append(seed)
        return made(arrays, chip, seed)

    problem = _problem("wavenet-1x10")
    start = LinearDP().optimize(problem, Budget(samples=2), 0)
    method = UnitAnnealing().with_start(start)
    repaired = RingWorkspace.repair(ring_workspace(problem), start.device, 0)
    answers = iter([repaired])

    def better(arrays, state, *_):
        state.seconds[0] = 0.5 * start.value

    monkeypatch.setattr(unit_annealing, "move_state", counted)
    monkeypatch.setattr(unit_annealing, "anneal_moves", better)
    monkeypatch.setattr(
        RingWorkspace, "repair", lambda *_: next(answers, repaired._replace(evaluation=full))
    )
    method.optimize(problem, Budget(samples=40_000), 0)
    assert len(seeds) > len(unit_annealing.SQUEEZES) + 1
    assert len(set(seeds)) == len(seeds)


def test_a_start_only_gets_better():
    problem = _problem("wavenet-1x10", "ring6")
    start = LinearDP().optimize(problem, Budget(samples=2), 0)
    plan = UnitAnnealing().with_start(start).optimize(problem, Budget(samples=400), 1)
    assert plan.evaluation.status.ok
    assert plan.value <= start.value * (1 + 1e-12)


def test_annealing_units_finds_what_dynamic_programming_of_orders_misses():
    problem = _problem("multi-tower-8", "ring6")
    orders = LinearDP().optimize(problem, Budget(samples=40), 0)
    units = UnitAnnealing().optimize(problem, Budget(samples=60_000), 0)
    assert check_plan(units, problem).ok
    assert units.value < 0.98 * orders.value


def test_equal_seeds_give_equal_plans_and_others_do_not():
    problem = _problem("multi-tower-8", "ring6")
    one, two, three = (
        UnitAnnealing().optimize(problem, Budget(samples=20_000), seed) for seed in (3, 3, 4)
    )
    assert np.array_equal(one.device, two.device)
    assert one.value == two.value
    assert not np.array_equal(one.device, three.device)
