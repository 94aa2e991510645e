"""Local search on rings: moves of units, and orders."""

from dataclasses import replace

import numpy as np
import pytest
from reference.layered import layered_ring
from reference.random_rings import random_ring
from reference.ring_optimum import optimum
from reference.small_rings import ring_problem

from go_rl.core import Budget, load_hardware, rule_set
from go_rl.core.decisions import Decisions
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.costs.models.zoo_problem import priced_problem
from go_rl.graphs.zoo import zoo_graph
from go_rl.graphs.zoo.problems import ZooProblem
from go_rl.objectives.methods import LinearDP, OrderSearch, RingLocalSearch, UnitAnnealing
from go_rl.objectives.ring.methods.relocation import BEST, SCORE, VALUE, new_walk, walk
from go_rl.objectives.ring.methods.unit_annealing import _nodes_on, _units_on
from go_rl.objectives.ring.methods.unit_moves import anneal_moves, move_arrays, move_state
from go_rl.objectives.ring.workspace import RingWorkspace, ring_workspace
from go_rl.verify import check_plan


@pytest.mark.parametrize("seed", range(12))
def test_wherever_it_walks_plans_are_legal_and_priced_as_the_simulator_does(seed):
    """Hot enough to wander: FIX keeps every partition as it is, and T_max agrees."""
    problem = layered_ring(seed, 24, 6, "strict") if seed % 2 else random_ring(seed, 10, 4)
    problem = replace(problem, rules=replace(problem.rules, replicate=False))
    workspace = ring_workspace(problem)
    if not workspace.solver.feasible_so_far or workspace.units.num_units < 2:
        return
    legal, evaluation, _ = workspace.repair(workspace.work_fill)
    if legal is None or not evaluation.status.ok:
        return
    instance, alike = workspace.solver.instance, len(problem.seconds) == 1
    state = new_walk(instance.net, legal.device[0][instance.leader], seed)
    for _ in range(30):
        walk(instance.net, workspace.units, state, 1.0, 20)
        nodes = workspace.nodes_of(state.chip)
        kept, evaluation, _ = workspace.repair(nodes)
        assert kept is not None
        assert kept.device[0].tolist() == nodes.tolist()
        if alike and evaluation.status.ok:
            assert state.state[VALUE] == pytest.approx(evaluation.seconds, rel=1e-9)
        assert state.state[BEST] <= state.state[VALUE]
        assert np.isfinite(state.state[SCORE])


def test_it_reaches_the_optimum_of_most_small_graphs():
    """It is never below; under the triangle rule, moves between good plans may not exist."""
    reached = {"strict": 0, "relay": 0}
    for seed in range(12):
        rng = np.random.default_rng(seed)
        edges = [(u, v) for u in range(7) for v in range(u + 1, 7) if rng.random() < 0.35]
        work = rng.integers(1, 9, 7).astype(float).tolist()
        for rules in reached:
            problem = ring_problem(7, edges, 4, rules, seconds=work, memory=False)
            plan = RingLocalSearch().optimize(problem, Budget(samples=5000), seed)
            best = optimum(problem)
            assert best is not None
            assert check_plan(plan, problem).status.ok
            assert best <= plan.value <= 1.5 * best
            reached[rules] += plan.value <= best * (1 + 1e-9)
    assert reached["relay"] >= 9
    assert reached["strict"] >= 7


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


def _of_the_zoo(graph, hardware):
    return priced_problem(ZooProblem(graph, hardware, "ring", ("placement",)))


def test_few_orders_beat_the_dynamic_program_over_given_ones():
    """FractalNet's branches of unlike lengths: an order of any one kind keeps some of them open."""
    problem = _of_the_zoo("fractalnet-4", "ring16")
    given = LinearDP().optimize(problem, Budget(samples=50), 0)
    found = OrderSearch().optimize(problem, Budget(samples=50), 0)
    assert check_plan(found, problem).ok
    assert found.value < 0.8 * given.value


@pytest.mark.parametrize("samples", [1, 7, 40])
def test_samples_are_counted_and_a_search_goes_on_from_its_memory(samples):
    problem = _of_the_zoo("fractalnet-4", "ring6")
    memory = {}
    kept = OrderSearch().with_memory(memory)
    first = kept.optimize(problem, Budget(samples=samples), 3)
    assert first.samples == samples
    kept.optimize(problem, Budget(samples=40 - samples + 1), 3)
    whole = OrderSearch()
    again = whole.optimize(problem, Budget(samples=samples), 3)
    assert np.array_equal(first.device, again.device)
    assert len(memory["search"].search.finds.seconds) <= 12
    assert memory["search"].search.finds.seconds[0] <= first.value * (1 + 1e-9)
