"""Timelines: a step by hand, and what holds of every one."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from small_graphs import graph_of

from go_rl.core import (
    Device,
    Engine,
    Hardware,
    Links,
    Objective,
    OpGraph,
    OpKind,
    PlanError,
    Problem,
    Status,
    Topology,
    load_hardware,
)
from go_rl.core.decisions import Decisions
from go_rl.costs.models import Analytical, ProblemOptions, make_problem
from go_rl.graphs.cutting.fusion import Fuser
from go_rl.graphs.readers.graph_builder import Node
from go_rl.graphs.zoo import zoo_graph
from go_rl.objectives.makespan.simulate.timeline import TRANSFER, Timeline, Track, timeline_of
from go_rl.verify.makespan_value import replayed

A, B, C, D = 1, 2, 3, 4
LINKS = Links(Topology.FULL, 1.0, 0.5)


def small_graph() -> OpGraph:
    """x feeds a and c; a feeds b and d; b feeds c; c and d are the results."""
    sizes = (("x", 8.0, 0.0), ("a", 4.0, 10.0), ("b", 2.0, 20.0), ("c", 1.0, 0.0), ("d", 6.0, 0.0))
    nodes = (
        Node(name, "op", OpKind.INPUT if name == "x" else OpKind.ELEMENTWISE, output_bytes=size,
             weight_bytes=weights, is_output=name in "cd", is_backward=name == "c")
        for name, size, weights in sizes
    )  # fmt: skip
    return graph_of(nodes, [(0, A, 8.0), (0, C, 8.0), (A, B, 4.0), (A, D, 4.0), (B, C, 2.0)])


def small_problem(engines: tuple[Engine, ...] = (), room: float = 100.0) -> Problem:
    """Two devices, 1 B/s between them; a takes 2 s, b 1 s, c 1 s, d 3 s."""
    chip = Device("toy", 1.0, room, 1.0, engines=engines)
    hardware = Hardware("toys", (chip, chip), LINKS)
    problem = make_problem(small_graph(), hardware, ProblemOptions(Objective.MAKESPAN))
    return replace(problem, seconds=np.array([[0.0, 2.0, 1.0, 1.0, 3.0]]), kernels=None)


def decisions(device, leader=None) -> Decisions:
    wide = None if leader is None else np.array([leader], np.int64)
    return Decisions(np.array([device], np.int16), None, wide)


@pytest.fixture
def by_hand() -> Timeline:
    """b and c on device 1: a's result needs 4 s on the link and 0.5 s more to arrive."""
    return timeline_of(small_problem(), decisions([0, 0, 1, 1, 0]))


def test_slices_by_hand(by_hand):
    assert by_hand.tracks == (Track(0, "stream"), Track(1, "stream"), Track(0, "0 → 1", 1))
    shown = [(s.name, s.start, s.seconds, s.track) for s in by_hand.slices]
    assert shown == [("a", 0, 2, 0), ("d", 2, 3, 0), ("a", 2, 4, 2), ("b", 6.5, 1, 1),
                     ("c", 7.5, 1, 1)]  # fmt: skip
    assert (by_hand.status, by_hand.makespan) == (Status.OK, 8.5)


def test_memory_by_hand(by_hand):
    first, second = by_hand.memory
    # Weights, x and a's result; then x goes and d's comes, to stay; a's goes when it has arrived.
    np.testing.assert_array_equal(first.seconds, [0, 2, 5, 6.5])
    np.testing.assert_array_equal(first.bytes, [22, 20, 20, 16])
    # Weights and x; a's copy; b's result; c's for a's; x and b's result go.
    np.testing.assert_array_equal(second.seconds, [0, 2, 6.5, 7.5, 8.5])
    np.testing.assert_array_equal(second.bytes, [28, 32, 34, 31, 21])
    np.testing.assert_array_equal(by_hand.peak_bytes, [22, 34])


def test_a_kernel_of_two_nodes_is_one_slice():
    step = timeline_of(small_problem(), decisions([0] * 5, [0, A, A, C, D]))
    assert [s.name for s in step.slices] == ["a +1", "c", "d"]
    assert step.slices[0].args["nodes"] == ["a", "b"]
    assert step.slices[0].args["bytes"] == 4.0 + 2.0
    assert step.flows == ()


@pytest.mark.parametrize("name", ["small", "ncf", "transformer-xl-2-layers-training"])
@pytest.mark.parametrize("fused", [False, True])
def test_what_holds_of_every_timeline(name, fused):
    graph = small_graph() if name == "small" else zoo_graph(name)
    options = ProblemOptions(Objective.MAKESPAN, cost_model=Analytical())  # views take time, too
    problem = make_problem(graph, load_hardware("p100x4"), options)
    rng = np.random.default_rng(len(name))
    device = rng.integers(0, 4, (1, graph.num_nodes)).astype(np.int16)
    ranks = rng.integers(0, 9, (1, graph.num_nodes))
    leader = Fuser(graph).leaders(ranks, device) if fused else None
    step = timeline_of(problem, Decisions(device, ranks, leader))
    for track in range(len(step.tracks)):
        mine = [s for s in step.slices if s.track == track]
        assert all(a.start + a.seconds <= b.start * (1 + 1e-12) for a, b in pairwise(mine))
    kernels = [s for s in step.slices if s.args["kind"] != TRANSFER]
    ran = sorted(graph.index[n] for s in kernels for n in s.args["nodes"])
    assert ran == np.flatnonzero(graph.kind > OpKind.CONSTANT).tolist()
    assert max(s.start + s.seconds for s in step.slices) == pytest.approx(step.makespan)
    for source, target in step.flows:
        before, after = step.slices[source], step.slices[target]
        assert before.start + before.seconds <= after.start * (1 + 1e-12)
    checked = replayed(problem, device[0], ranks[0], None if leader is None else leader[0])
    assert step.makespan == pytest.approx(checked.seconds)
    np.testing.assert_allclose([use.bytes.max() for use in step.memory], checked.peak_bytes)


def test_other_objectives_have_no_timeline():
    problem = make_problem(
        small_graph(), load_hardware("p100x2"), ProblemOptions(Objective.MAX_LOAD)
    )
    with pytest.raises(PlanError, match="needs the objective makespan, not max-load"):
        timeline_of(problem, decisions([0] * 5))
