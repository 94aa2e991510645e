"""Lower bounds on a step with fusion: by hand, and against every legal plan of small graphs."""

from dataclasses import replace

from reference.priced_steps import TILE, graph_of, priced
from reference.step_problems import step_problem

from go_rl.compare.portfolio.portfolio import run
from go_rl.core import (
    Budget,
    OpKind,
    Problem,
)
from go_rl.costs.models.analytical import Efficiency
from go_rl.costs.models.fusion_lower_bound import fusion_lower_bound
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.objectives.methods import DefaultPlacement

ELEMENTWISE, MATMUL, REDUCTION = OpKind.ELEMENTWISE, OpKind.MATMUL, OpKind.REDUCTION


def bound(problem: Problem) -> float:
    return MakespanWorkspace(problem).bound


def test_one_node_is_a_kernel_of_its_own():
    alone = priced(graph_of([ELEMENTWISE], [], [3.0], [2.0]))
    assert bound(alone) == 3.5
    plan = DefaultPlacement().optimize(alone, Budget(samples=1), 0)
    assert (plan.value, plan.bound, plan.optimal) == (3.5, 3.5, True)


def test_auto_stops_at_once_where_the_default_meets_the_bound():
    problem = priced(graph_of([MATMUL], [], [3.0], [2.0]), (TILE, TILE))
    result = run(problem, budget=Budget(samples=50))
    assert [plan.optimizer for plan in result.plans] == ["default"]
    assert result.best.optimal


def test_a_node_may_run_at_the_pace_of_one_with_more_work():
    """Two elementwise nodes of 8 FLOP at a tenth of the pace; beside a product of 8 they may run at
    its pace, beside one of 7 they are the kernel's main work."""
    shares = Efficiency(matmul=1.0, elementwise=0.1, memory=1.0)
    for flops, least in ((8.0, 8.0), (7.0, 80.0)):
        made = graph_of([MATMUL, ELEMENTWISE], [(0, 1, 1.0)], [flops, 8.0], [1.0, 1.0])
        floor = fusion_lower_bound(priced(made, shares=shares))
        assert floor is not None
        assert floor.seconds.tolist() == [flops, least]


def test_the_load_counts_only_engines_that_a_node_may_have():
    made = graph_of([MATMUL] * 4, [], [3.0] * 4, [1.0] * 4)
    assert bound(priced(made, (TILE, TILE))) == 2 * 3.5
    assert bound(priced(made, (TILE, TILE), decisions=("fusion",))) == 4 * 3.5
    assert bound(priced(made, (TILE, TILE), fixed={0: 0, 1: 1, 2: 0, 3: 1})) == 2 * 3.5


def test_nothing_is_claimed_of_prices_that_are_not_known():
    row = step_problem([1.0] * 3, [(0, 1, 1.0), (1, 2, 1.0)], kinds=[ELEMENTWISE] * 3)
    assert bound(row) == 0.0
    apart = step_problem([1.0, 2.0, 4.0], [(0, 1, 1.0)], kinds=[REDUCTION] * 3)
    assert bound(apart) == 7.0
    known = priced(graph_of([ELEMENTWISE] * 2, [(0, 1, 1.0)], [4.0, 4.0], [1.0, 1.0]))
    assert bound(known) == 8.5
    assert bound(replace(known, seconds=known.seconds / 2)) == 0.0
