"""The rivals on connected devices: one conformance table for all, then what each promises."""

import itertools

import numpy as np
import pytest
from objectives.conformance import OptimizerConformance, under_test
from reference.step_networks import holds, operators, priced, scoped
from reference.step_problems import step_problem

from go_rl.core import FREE, Budget, Objective, OpKind, Optimizer, Problem, Status
from go_rl.objectives.methods import (
    Composed,
    DefaultPlacement,
    GreedyFusion,
    Heft,
    MakespanAnnealing,
    MakespanExpert,
    MakespanMetis,
    MakespanRandom,
)

RIVALS: tuple[Optimizer, ...] = (
    MakespanAnnealing(), Composed(), MakespanExpert(), GreedyFusion(), Heft(), MakespanMetis(),
    MakespanRandom(),
)  # fmt: skip
SEARCHING = (MakespanAnnealing(), MakespanRandom())
"""Rivals that use every sample they are given."""

every = pytest.mark.parametrize("rival", RIVALS, ids=lambda r: r.name)
searching = pytest.mark.parametrize("rival", SEARCHING, ids=lambda r: r.name)


class TestRivals(OptimizerConformance):
    """The suite of all optimizers, on connected devices."""

    objective = Objective.MAKESPAN
    which = under_test(*RIVALS)

    def test_pins_against_each_other(self):
        pytest.skip("a class pinned to two devices is the workspace's to find")


@every
@pytest.mark.parametrize(
    ("devices", "decisions"),
    [
        ("p100x2", None),
        ("p100x4", ("placement",)),
        ("p100x2", ("schedule",)),
        ("p100x2", ("fusion", "placement")),
        ("p100x1", None),
        ("p100x1", ("fusion",)),
    ],
)
def test_every_set_of_decisions(rival, devices, decisions):
    problem = priced(operators(3), devices, decisions=decisions)
    plan = rival.optimize(problem, Budget(samples=12), 1)
    holds(problem, plan)
    assert plan.evaluation.status.ok
    if "placement" not in problem.decisions:
        assert not plan.device.any()


@searching
def test_searches_use_every_sample_and_no_more(rival):
    for samples in (1, 2, 17, 40):
        plan = rival.optimize(priced(operators(5)), Budget(samples=samples), 0)
        assert plan.samples == samples


@every
def test_odd_graphs(rival):
    """One node; no edges; nothing but an input; every node pinned."""
    three = [2.0, 3.0, 4.0]
    for problem, value in (
        (step_problem([2.0]), 2.0),
        (step_problem([2.0], devices=3), 2.0),
        (step_problem([0.0], devices=2, kinds=[OpKind.INPUT]), 0.0),
        (step_problem(three, devices=2, fixed={0: 1, 1: 1, 2: 0}), 5.0),
        (step_problem(three, [(0, 1, 1.0), (1, 2, 1.0)], 2, fixed={0: 0, 1: 1, 2: 1}), 10.0),
    ):
        plan = rival.optimize(problem, Budget(samples=10), 0)
        holds(problem, plan)
        assert plan.value == value
    loose = step_problem(three, devices=3)
    holds(loose, rival.optimize(loose, Budget(samples=10), 0))


@every
def test_no_room_anywhere_is_a_status(rival):
    hopeless = step_problem([1.0, 1.0], devices=2, weights=[9.0, 9.0], memory_bytes=5.0)
    plan = rival.optimize(hopeless, Budget(samples=10), 0)
    assert plan.evaluation.status is Status.INFEASIBLE
    assert plan.samples == 0
    tight = step_problem([1.0] * 3, devices=2, weights=[4.0] * 3, memory_bytes=6.0)
    plan = rival.optimize(tight, Budget(samples=10), 0)
    holds(tight, plan)
    assert plan.evaluation.status is Status.OUT_OF_MEMORY
    assert plan.evaluation.detail


@every
def test_a_device_that_cannot_run_a_node_is_left_alone(rival):
    """Device 0 runs neither of the last two, which share a class with the first."""
    seconds = [[1.0, 1.0, np.inf, np.inf], [1.0, 1.0, 1.0, 1.0]]
    if rival.name == "fusion-greedy":
        seconds = seconds[::-1]  # the default plan is on device 0
    problem = step_problem(
        seconds,
        [(0, 1, 1.0), (1, 2, 1.0)],
        2,
        colocation=[0, FREE, FREE, 0],
        decisions=("placement",),
    )
    plan = rival.optimize(problem, Budget(samples=20), 0)
    holds(problem, plan)
    assert plan.evaluation.status.ok


def two_cliques() -> Problem:
    """Nodes 0, 2, 4, 6 and 1, 3, 5, 7 exchange 100 bytes each; one byte joins the two."""
    edges = [(u, v, 100.0) for u, v in itertools.combinations(range(8), 2) if (u - v) % 2 == 0]
    return step_problem([1.0] * 8, [*edges, (6, 7, 1.0)], 2, bandwidth=1e3)


def test_metis_cuts_two_cliques_apart():
    plan = MakespanMetis().optimize(two_cliques(), Budget(samples=1), 0)
    assert plan.device.tolist() == [0, 1] * 4
    assert plan.samples == 1
    assert MakespanMetis().optimize(two_cliques(), Budget(samples=99), 0).samples == 8


def test_greedy_fusion_fuses_a_row_of_elementwise_operators():
    graph = scoped(*(f"net/op_{i}/x" for i in range(5)))
    problem = priced(graph)
    plan = GreedyFusion().optimize(problem, Budget(samples=1), 0)
    assert plan.fusion_group is not None
    assert plan.fusion_group.tolist() == [0] * 5
    assert plan.value < DefaultPlacement().optimize(problem, Budget(samples=1), 0).value
    unfused = priced(graph, decisions=("placement",))
    plan = GreedyFusion().optimize(unfused, Budget(samples=1), 0)
    assert plan.fusion_group is None
    assert plan.value == DefaultPlacement().optimize(unfused, Budget(samples=1), 0).value
