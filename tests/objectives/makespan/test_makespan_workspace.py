"""The workspace of makespan, and its bounds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.priced_steps import TILE, priced, priced_graph
from reference.step_problems import random_plans, random_step, step_problem

from go_rl.compare.portfolio.portfolio import run
from go_rl.core import Budget, Engine, OpKind, Problem, Status
from go_rl.costs.models.analytical import Efficiency
from go_rl.costs.models.fusion_lower_bound import fusion_lower_bound
from go_rl.objectives.makespan.workspace import MakespanWorkspace
from go_rl.objectives.methods import DefaultPlacement

ELEMENTWISE, INPUT, MATMUL = OpKind.ELEMENTWISE, OpKind.INPUT, OpKind.MATMUL
ROW = [(0, 1, 1.0), (1, 2, 1.0), (2, 3, 1.0)]


def row(**options) -> Problem:
    """Four elementwise operators in a row on two devices."""
    return step_problem([1.0] * 4, ROW, 2, **{"kinds": [ELEMENTWISE] * 4, **options})


def proposal(*numbers: int) -> np.ndarray:
    return np.array([numbers])


def test_the_default_plan_is_softly_placed():
    """Device 0 cannot run the second operator: it goes to the next device that can."""
    seconds = [[1.0, np.inf, 1.0], [1.0, 1.0, 1.0]]
    workspace = MakespanWorkspace(step_problem(seconds, [(0, 1, 1.0), (1, 2, 1.0)], 2))
    assert workspace.reference.device.tolist() == [[0, 1, 0]]
    assert workspace.reference_seconds == 5.0


def test_pins_and_classes_override_what_is_proposed():
    """Class 0 follows its first node, class 1 the pin of its second."""
    problem = step_problem([1.0] * 6, [], 3, colocation=[0, 1, 0, 1, -1, -1], fixed={3: 2, 5: 1})
    workspace = MakespanWorkspace(problem)
    assert workspace.pinned.tolist() == [-1, 2, -1, 2, -1, 1]
    made = workspace.decisions(proposal(1, 0, 2, 0, 2, 0))
    assert made.device.tolist() == [[1, 2, 1, 2, 2, 1]]
    assert made.device.dtype == np.int16


def test_proposals_become_kernels_on_the_devices_that_they_get():
    workspace = MakespanWorkspace(row(colocation=[0, -1, -1, 0]))
    made = workspace.decisions(proposal(1, 1, 0, 0), proposal(4, 3, 2, 1), proposal(1, 1, 1, 1))
    assert made.device.tolist() == [[1, 1, 0, 1]]
    assert made.priority is not None
    assert made.priority.tolist() == [[4, 3, 2, 1]]
    assert made.kernel_leader is not None
    assert made.kernel_leader.tolist() == [[0, 0, 2, 3]]


def test_the_bound_knows_engines_gaps_kinds_of_devices_and_inputs():
    schedule = {"decisions": ("schedule",)}
    streams = (Engine("stream", 2),)
    assert (
        MakespanWorkspace(step_problem([3.0, 4.0, 3.0], engines=streams, **schedule)).bound == 5.0
    )
    cores = (Engine("core", 2, ("matmul",), split=True), Engine("rest"))
    one = step_problem([6.0], kinds=[MATMUL], engines=cores, gap=[1.0], **schedule)
    assert MakespanWorkspace(one).bound == 4.0
    both = step_problem([[3.0, 1.0], [2.0, 9.0]], [(0, 1, 5.0)], 2, decisions=("placement",))
    assert MakespanWorkspace(both).bound == 3.0
    fed = step_problem([7.0, 1.0], [(0, 1, 5.0)], kinds=[INPUT, ELEMENTWISE], **schedule)
    assert MakespanWorkspace(fed).bound == 1.0


def test_what_cannot_be_is_said_with_a_name():
    nowhere = step_problem([[1.0, np.inf], [2.0, np.inf]], [(0, 1, 1.0)], 2, names=["a", "b"])
    found = MakespanWorkspace(nowhere).infeasible
    assert found is not None
    assert (found.status, found.detail) == (Status.UNSUPPORTED, "no device can run node 'b'")


def test_what_is_too_large_is_said_with_sizes():
    schedule = {"decisions": ("schedule",), "names": ["a", "b"]}
    large = step_problem([1.0, 1.0], [(0, 1, 4.0)], weights=[0.0, 3.0], output_bytes=[4.0, 5.0],
                         memory_bytes=11.0, **schedule)  # fmt: skip
    found = MakespanWorkspace(large).infeasible
    assert found is not None
    assert found.status is Status.INFEASIBLE
    assert found.detail == (
        "node 'b' alone needs 12 bytes (weights 3, results 5, operands 4); the largest device "
        "has 11"
    )
    room = MakespanWorkspace(replace(large, memory=False))
    assert room.infeasible is None
    fused = MakespanWorkspace(replace(large, decisions=("schedule", "fusion")))
    assert fused.infeasible is None


def test_weights_that_fit_no_set_of_devices_are_infeasible_tied_ones_once():
    heavy = row(weights=[8.0] * 4, memory_bytes=15.0)
    found = MakespanWorkspace(heavy).infeasible
    assert found is not None
    assert found.detail == (
        "the weights of 'steps' take 32 bytes; all devices together have 30; the largest: 0 8, "
        "1 8, 2 8; the difference is the weights of 0: without its 8 bytes all would fit"
    )
    shared = step_problem(
        [1.0] * 4, [], 2, weights=[3.0, 4.0, 9.0, 1.0], tied=["w", "w", None, None],
        names=["a", "b", "c", "d"], memory_bytes=6.0,
    )  # fmt: skip
    alone = MakespanWorkspace(
        replace(shared, weight_bytes=np.array([3.0, 4.0, 6.0, 3.0]))
    ).infeasible
    assert alone is not None
    assert "take 13 bytes; all devices together have 12; the largest: 'c' 6, 'a' 3, 'd' 3; " in (
        alone.detail
    )
    tied = row(weights=[8.0] * 4, tied=["w"] * 3 + [None], memory_bytes=15.0)
    assert MakespanWorkspace(tied).infeasible is None


@given(st.integers(0, 50_000))
@settings(max_examples=40, deadline=None)
def test_nothing_that_can_be_is_called_impossible(seed):
    """Inputs and constants weigh nothing here and have no results that nobody reads."""
    rng = np.random.default_rng(seed)
    room = float(rng.integers(4, 30))
    problem = random_step(seed, 5, decisions=("placement", "schedule"), memory_bytes=room)
    fed = problem.graph.kind <= OpKind.CONSTANT
    problem = replace(
        problem,
        output_bytes=np.where(fed, 0.0, problem.output_bytes),
        weight_bytes=np.where(fed, 0.0, problem.weight_bytes),
    )
    workspace = MakespanWorkspace(problem)
    if workspace.infeasible is None:
        return
    device, priority, _ = random_plans(seed, problem, 200)
    assert not workspace.evaluate(workspace.decisions(device, priority)).ok.any()


# results of inputs and constants lie on their readers' devices, not beside their weights,
# and those that nobody reads lie nowhere; `infeasible` adds both up on one device.
@pytest.mark.parametrize(
    ("edges", "weights", "made"),
    [([(0, 1, 60.0)], [60.0, 0.0], [60.0, 0.0]), ([], [0.0, 0.0], [600.0, 0.0])],
)
def test_nothing_that_fits_is_called_impossible(edges, weights, made):
    problem = step_problem(
        [0.0, 3.0], edges, 2, kinds=[OpKind.CONSTANT, ELEMENTWISE], weights=weights,
        output_bytes=made, memory_bytes=100.0, decisions=("placement",),
    )  # fmt: skip
    workspace = MakespanWorkspace(problem)
    assert workspace.evaluate(workspace.decisions(proposal(0, 1))).ok.all()
    assert workspace.infeasible is None


# pins on different devices within one colocation class are not noticed: no plan is legal,
# but `infeasible` is None and plans claim to be ok (4 s), which the checker refuses (`fixed`).
def test_pins_that_part_a_class_are_impossible():
    problem = step_problem([1.0, 3.0], [], 2, colocation=[0, 0], fixed={0: 0, 1: 1})
    assert MakespanWorkspace(problem).infeasible is not None


REDUCTION = OpKind.REDUCTION


def bound(problem: Problem) -> float:
    return MakespanWorkspace(problem).bound


def test_one_node_is_a_kernel_of_its_own():
    alone = priced(priced_graph([ELEMENTWISE], [], [3.0], [2.0]))
    assert bound(alone) == 3.5
    plan = DefaultPlacement().optimize(alone, Budget(samples=1), 0)
    assert (plan.value, plan.bound, plan.optimal) == (3.5, 3.5, True)


def test_auto_stops_at_once_where_the_default_meets_the_bound():
    problem = priced(priced_graph([MATMUL], [], [3.0], [2.0]), (TILE, TILE))
    result = run(problem, budget=Budget(samples=50))
    assert [plan.optimizer for plan in result.plans] == ["default"]
    assert result.best.optimal


def test_a_node_may_run_at_the_pace_of_one_with_more_work():
    """Two elementwise nodes of 8 FLOP at a tenth of the pace; beside a product of 8 they may run at
    its pace, beside one of 7 they are the kernel's main work."""
    shares = Efficiency(matmul=1.0, elementwise=0.1, memory=1.0)
    for flops, least in ((8.0, 8.0), (7.0, 80.0)):
        made = priced_graph([MATMUL, ELEMENTWISE], [(0, 1, 1.0)], [flops, 8.0], [1.0, 1.0])
        floor = fusion_lower_bound(priced(made, shares=shares))
        assert floor is not None
        assert floor.seconds.tolist() == [flops, least]


def test_the_load_counts_only_engines_that_a_node_may_have():
    made = priced_graph([MATMUL] * 4, [], [3.0] * 4, [1.0] * 4)
    assert bound(priced(made, (TILE, TILE))) == 2 * 3.5
    assert bound(priced(made, (TILE, TILE), decisions=("fusion",))) == 4 * 3.5
    assert bound(priced(made, (TILE, TILE), fixed={0: 0, 1: 1, 2: 0, 3: 1})) == 2 * 3.5


def test_nothing_is_claimed_of_prices_that_are_not_known():
    row = step_problem([1.0] * 3, [(0, 1, 1.0), (1, 2, 1.0)], kinds=[ELEMENTWISE] * 3)
    assert bound(row) == 0.0
    apart = step_problem([1.0, 2.0, 4.0], [(0, 1, 1.0)], kinds=[REDUCTION] * 3)
    assert bound(apart) == 7.0
    known = priced(priced_graph([ELEMENTWISE] * 2, [(0, 1, 1.0)], [4.0, 4.0], [1.0, 1.0]))
    assert bound(known) == 8.5
    assert bound(replace(known, seconds=known.seconds / 2)) == 0.0
