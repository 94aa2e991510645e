"""Moves of units: sums by differences equal sums, states stay legal, starts get better."""

import pytest
from reference.random_rings import random_ring

from go_rl.core import Budget, load_hardware, rule_set
from go_rl.core.decisions import Decisions
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.graphs.zoo import zoo_graph
from go_rl.objectives.methods import LinearDP, UnitAnnealing
from go_rl.objectives.ring.methods.unit_annealing import _nodes_on, _units_on
from go_rl.objectives.ring.methods.unit_moves import anneal_moves, move_arrays, move_state
from go_rl.objectives.ring.workspace import RingWorkspace
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


def test_annealing_units_finds_what_dynamic_programming_of_orders_misses():
    problem = _problem("multi-tower-8", "ring6")
    orders = LinearDP().optimize(problem, Budget(samples=40), 0)
    units = UnitAnnealing().optimize(problem, Budget(samples=60_000), 0)
    assert check_plan(units, problem).ok
    assert units.value < 0.98 * orders.value
