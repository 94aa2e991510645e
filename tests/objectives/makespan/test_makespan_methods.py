"""Methods of makespan: list scheduling, composed ones, the expert's plan."""

import itertools

import numpy as np
import pytest
from objectives.conformance import OptimizerConformance, under_test
from reference.step_networks import holds, operators, priced, scoped
from reference.step_problems import random_step, step_problem

from go_rl.core import FREE, Budget, Objective, OpKind, Optimizer, Problem, Status
from go_rl.objectives.makespan.methods.expert import expert_devices
from go_rl.objectives.makespan.methods.heft import heft
from go_rl.objectives.makespan.workspace import makespan_workspace
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
    """Nothing but an input; every node pinned."""
    three = [2.0, 3.0, 4.0]
    for problem, value in (
        (step_problem([0.0], devices=2, kinds=[OpKind.INPUT]), 0.0),
        (step_problem(three, devices=2, fixed={0: 1, 1: 1, 2: 0}), 5.0),
        (step_problem(three, [(0, 1, 1.0), (1, 2, 1.0)], 2, fixed={0: 0, 1: 1, 2: 1}), 10.0),
    ):
        plan = rival.optimize(problem, Budget(samples=10), 0)
        holds(problem, plan)
        assert plan.value == value


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


PARTS = (MakespanExpert(), Heft(), GreedyFusion(), DefaultPlacement())
ALL = Budget(samples=24)
"""Five placements, two orders (three for HEFT's), fused or not."""


@pytest.mark.parametrize("seed", range(8))
def test_it_is_no_worse_than_what_it_is_made_of(seed):
    problem = random_step(seed)
    plan = Composed().optimize(problem, ALL, seed)
    holds(problem, plan)
    for part in PARTS:
        assert plan.value <= part.optimize(problem, ALL, seed).value, part.name


def test_an_unknown_network_is_cut_into_contiguous_layers_of_equal_work():
    graph = scoped(*(f"net/block_{i}/op" for i in range(6)))
    device = expert_devices(makespan_workspace(priced(graph, "p100x3", decisions=("placement",))))
    assert device.tolist() == [0, 0, 1, 1, 2, 2]
    flat = scoped("a", "b", "c", "d", "c.b", "a.b", backward=2,
                  edges=[(0, 1), (1, 2), (2, 3), (3, 4), (2, 4), (4, 5), (0, 5)])  # fmt: skip
    device = expert_devices(makespan_workspace(priced(flat, decisions=("placement",))))
    assert device.tolist() == [0, 0, 1, 1, 1, 0]


PAPER_SECONDS = (
    [14, 13, 11, 13, 12, 13, 7, 5, 18, 21],
    [16, 19, 13, 8, 13, 16, 15, 11, 12, 7],
    [9, 18, 19, 17, 10, 9, 11, 14, 20, 16],
)
PAPER_EDGES = (
    (0, 1, 18), (0, 2, 12), (0, 3, 9), (0, 4, 11), (0, 5, 14), (1, 7, 19), (1, 8, 16), (2, 6, 23),
    (3, 7, 27), (3, 8, 23), (4, 8, 13), (5, 7, 15), (6, 9, 17), (7, 9, 11), (8, 9, 13),
)  # fmt: skip
"""Figure 2 of Topcuoglu et al. 2002: ten tasks, three processors."""


def paper_example(**options) -> Problem:
    """Each edge of the paper is a tensor of its own."""
    count = [0] * 10
    edges = []
    for u, v, size in PAPER_EDGES:
        edges.append((u, v, float(size), count[u]))
        count[u] += 1
    return step_problem(PAPER_SECONDS, edges, 3, **options)


def test_heft_is_that_of_the_paper():
    """Table 3 (upward ranks) and figure 3(a): a schedule of 80."""
    schedule = heft(makespan_workspace(paper_example()))
    ranks = [108, 77, 80, 80, 69, 63.333, 42.667, 35.667, 44.333, 14.667]
    assert schedule.rank == pytest.approx(ranks, abs=1e-3)
    assert (schedule.device + 1).tolist() == [3, 1, 3, 2, 3, 2, 3, 1, 2, 2]
    assert schedule.finish.tolist() == [9, 40, 28, 26, 38, 42, 49, 62, 68, 80]


@pytest.mark.parametrize("seed", range(6))
def test_heft_on_its_own_terms_is_a_schedule(seed):
    """Tasks wait for operands, and no device is busier than there is time."""
    problem = random_step(seed, engines=(), memory_bytes=None)
    workspace = makespan_workspace(problem)
    for queues in (False, True):
        schedule, graph = heft(workspace, queues), problem.graph
        fed = workspace.pricer.arrays.fed
        lasting = problem.seconds[problem.device_kind[schedule.device], np.arange(graph.num_nodes)]
        lasting = np.where(fed, 0.0, lasting + workspace.pricer.arrays.gap)
        if not np.isfinite(lasting).all():
            continue
        start = schedule.finish - lasting
        size = _tensor_bytes(problem)
        away = schedule.device[graph.senders] != schedule.device[graph.receivers]
        links = problem.hardware.links
        sent = np.where(away, size / links.bandwidth + links.latency_seconds, 0.0)
        real = ~fed[graph.senders]
        arrived = (schedule.finish[graph.senders] + sent)[real]
        assert np.all(start[graph.receivers[real]] >= arrived - 1e-9)
        for device in range(workspace.num_devices):
            here = np.flatnonzero((schedule.device == device) & (lasting > 0))
            here = here[np.argsort(start[here], kind="stable")]
            assert np.all(start[here][1:] >= schedule.finish[here][:-1] - 1e-9)


def _tensor_bytes(problem: Problem) -> np.ndarray:
    """[E] bytes of the tensor on each edge: that of its largest edge."""
    graph = problem.graph
    tensors = list(zip(graph.senders.tolist(), graph.edge_output.tolist(), strict=True))
    largest: dict[tuple[int, int], float] = {}
    for tensor, size in zip(tensors, problem.edge_bytes.tolist(), strict=True):
        largest[tensor] = max(largest.get(tensor, 0.0), size)
    return np.array([largest[t] for t in tensors], np.float64)
