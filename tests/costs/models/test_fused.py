"""Seconds of fused kernels by hand, and makespan problems from `make_problem`."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from reference.step_problems import random_edges, random_kinds
from small_graphs import graph_of

from go_rl.core import (
    Device,
    Hardware,
    KernelPrices,
    Links,
    Objective,
    OpGraph,
    OpKind,
    Problem,
    ProblemError,
    Topology,
)
from go_rl.costs.models import Analytical, ProblemOptions, make_problem
from go_rl.costs.models.analytical import Efficiency
from go_rl.graphs.cutting.fusion import Fuser
from go_rl.graphs.readers.graph_builder import Node

MATMUL, ELEMENTWISE, MOVEMENT = OpKind.MATMUL, OpKind.ELEMENTWISE, OpKind.MOVEMENT
INPUT, OTHER = OpKind.INPUT, OpKind.OTHER
EVEN = Analytical({"tile": Efficiency(1.0, 1.0, 1.0, 1.0, 1.0, 1.0)})
"""Every byte and every FLOP takes a second on a `TILE`."""
TILE = Device("tile", 1.0, 1e9, 1.0, launch_seconds=0.5)


def boxes(devices: int = 1) -> Hardware:
    return Hardware("boxes", (TILE,) * devices, Links(Topology.FULL, 1.0))


def graph(kinds, edges, accessed, flops=None, **columns) -> OpGraph:
    """Edges are (u, v, bytes[, result]); a column has one entry a node."""
    columns |= {"bytes_accessed": accessed, "flops": flops or [0.0] * len(kinds)}
    own = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    nodes = (Node(n, "Op", kind, **own[n]) for n, kind in enumerate(kinds))
    return graph_of(nodes, edges, "model")


def makespan(made: OpGraph, hardware: Hardware | None = None, **options) -> Problem:
    hardware = hardware or boxes()
    options = {"cost_model": EVEN, **options}
    return make_problem(made, hardware, ProblemOptions(objective=Objective.MAKESPAN, **options))


def fused(problem: Problem, *leader: int) -> list[float]:
    assert isinstance(problem.kernels, KernelPrices)
    return problem.kernels.seconds(np.array(leader, np.int64))[0].tolist()


CHAIN = graph([ELEMENTWISE] * 3, [(0, 1, 10.0), (1, 2, 20.0)], [15.0, 30.0, 25.0])
"""0 reads 5 and writes 10; 1 reads that and writes 20; 2 reads that and writes 5."""


class Dear:
    """A cost model: ten seconds for whatever is fused, two for the rest."""

    name = "dear"

    def seconds(self, kernels, device):
        return np.full(len(kernels.kind), 2.0 if kernels.which is None else 10.0)


class DearByGraph(Dear):
    """The same, from the graphs of kernels."""

    def notes(self, kernels, device):
        return ()


def test_only_a_model_that_knows_kernels_as_graphs_may_say_that_fusing_costs():
    """Three nodes take six seconds one after the other."""
    assert fused(makespan(CHAIN, cost_model=Dear()), 0, 0, 0)[0] == 6.0
    assert fused(makespan(CHAIN, cost_model=DearByGraph()), 0, 0, 0)[0] == 10.0


def test_nothing_fused_costs_what_the_nodes_cost():
    problem = makespan(CHAIN)
    assert fused(problem, 0, 1, 2) == problem.seconds[0].tolist() == [15.5, 30.5, 25.5]


def test_a_kernel_launches_once_and_neither_writes_nor_reads_what_stays_inside():
    problem = makespan(CHAIN)
    assert fused(problem, 0, 0, 2) == [5.0 + 20.0 + 0.5, 0.0, 25.5]
    assert fused(problem, 0, 1, 1) == [15.5, 10.0 + 5.0 + 0.5, 0.0]
    assert fused(problem, 0, 0, 0) == [5.0 + 5.0 + 0.5, 0.0, 0.0]


def test_what_somebody_outside_reads_is_written_but_not_read_again():
    made = graph(
        [ELEMENTWISE, ELEMENTWISE, OTHER], [(0, 1, 10.0), (0, 2, 10.0)], [15.0, 14.0, 10.0]
    )
    assert fused(makespan(made), 0, 0, 2) == [5.0 + 10.0 + 4.0 + 0.5, 0.0, 10.5]


def test_each_device_kind_has_its_price_and_none_where_a_member_cannot_run():
    slow = Device("slow", 0.5, 1e9, 0.5)
    mixed = Hardware("mixed", (TILE, slow), Links(Topology.FULL, 1.0))
    model = Analytical(
        {kind: Efficiency(1.0, 1.0, 1.0, 1.0, 1.0, 1.0) for kind in ("tile", "slow")}
    )
    problem = makespan(CHAIN, mixed, cost_model=model)
    assert problem.kernels is not None
    table = problem.kernels.seconds(np.array([0, 0, 2]))
    assert table.tolist() == [[25.5, 0.0, 25.5], [50.0, 0.0, 50.0]]
    base = problem.seconds.copy()
    base[1, 1] = np.inf
    unable = replace(problem.kernels, base=base)
    assert unable.seconds(np.array([0, 0, 2])).tolist() == [[25.5, 0.0, 25.5], [np.inf, 0.0, 50.0]]
    assert unable.seconds(np.array([0, 1, 2])).tolist() == base.tolist()


def test_a_profile_prices_no_kernels():
    made = graph([ELEMENTWISE] * 2, [(0, 1, 1.0)], [1.0, 1.0], seconds=[{"tile": 3.0}] * 2)
    problem = makespan(made, cost_model=None)
    assert problem.cost_model == "profiled"
    assert fused(problem, 0, 1) == [3.0, 3.0]
    with pytest.raises(ProblemError, match="'model' brings measured seconds of single operators"):
        fused(problem, 0, 0)


def random_case(seed: int, model: Analytical) -> tuple[Problem, np.ndarray]:
    """A graph whose nodes access exactly their operands, their results and some of their own."""
    rng = np.random.default_rng(seed)
    nodes = int(rng.integers(2, 12))
    edges = random_edges(rng, nodes)
    kinds = random_kinds(rng, nodes, edges)
    sizes = {(u, o): size for u, _, size, o in edges}
    edges = [(u, v, sizes[u, o], o) for u, v, _, o in edges]
    accessed = rng.integers(0, 5, nodes).astype(float)
    for _, v, size, _ in edges:
        accessed[v] += size
    for (u, _), size in sizes.items():
        accessed[u] += size
    made = graph(
        kinds, edges, accessed.tolist(), rng.integers(0, 60, nodes).astype(float).tolist(),
        is_output=(rng.random(nodes) < 0.2).tolist(),
    )  # fmt: skip
    wish = rng.integers(0, 4, (1, nodes))
    leader = Fuser(made).leaders(wish, np.zeros((1, nodes), np.int64))[0]
    return makespan(made, cost_model=model), leader


def by_hand(problem: Problem, leader: np.ndarray, lead: int) -> float:
    """Bytes of a kernel, tensor by tensor."""
    made, total = problem.graph, 0.0
    inside = np.flatnonzero(leader == lead)
    tensors = {
        (int(u), int(o)): size
        for u, o, size in zip(made.senders, made.edge_output, made.edge_bytes, strict=True)
    }
    for n in inside:
        read = {
            (int(u), int(o))
            for u, v, o in zip(made.senders, made.receivers, made.edge_output, strict=True)
            if v == n
        }
        written = {t for t in tensors if t[0] == n}
        total += made.bytes_accessed[n] - sum(tensors[t] for t in read | written)
    for (u, o), size in tensors.items():
        edges = (made.senders == u) & (made.edge_output == o)
        readers = set(leader[made.receivers[edges]].tolist())
        if leader[u] == lead:
            total += size * bool(readers - {lead} or made.is_output[u])
        elif lead in readers:
            total += size
    return total


@given(st.integers(0, 50_000))
@settings(max_examples=60, deadline=None)
def test_bytes_of_a_kernel_are_those_that_cross_its_boundary(seed):
    problem, leader = random_case(seed, EVEN)
    made = replace(problem.graph, flops=np.zeros(problem.graph.num_nodes))
    bare = makespan(made)
    assert bare.kernels is not None
    seconds = bare.kernels.seconds(leader)[0]
    for lead in np.unique(leader[np.bincount(leader, minlength=len(leader))[leader] > 1]):
        assert seconds[lead] == pytest.approx(by_hand(problem, leader, int(lead)) + 0.5)


@pytest.mark.parametrize(
    ("devices", "decisions", "words"),
    [
        (1, ("placement",), "placement needs two devices or more; 'boxes' has one"),
        (1, ("schedule", "placement"), "placement needs two devices"),
        (
            2,
            ("schedule", "fusion", "schedule"),
            "a decision is named twice: schedule, fusion, sched",
        ),
        (2, ("fuison",), r"unknown decision 'fuison'; did you mean 'fusion'\?"),
        (2, (), "name some of placement, schedule, fusion"),
    ],
)
def test_decisions_that_make_no_sense_are_refused(devices, decisions, words):
    with pytest.raises(ProblemError, match=words):
        makespan(CHAIN, boxes(devices), decisions=decisions)


def test_decisions_may_be_one_text_with_commas_between():
    assert makespan(CHAIN, boxes(2), decisions="fusion, placement").decisions == (
        "fusion",
        "placement",
    )
    assert makespan(CHAIN, decisions="fusion").decisions == ("fusion",)
    with pytest.raises(ProblemError, match=r"unknown decision 'fuison'; did you mean 'fusion'\?"):
        makespan(CHAIN, boxes(2), decisions="placement,fuison")


# all FLOP go at the pace of the kind with most of them. With the default efficiencies a
# product of 7 FLOP (10 s) and an elementwise node of 8 (80 s) make a kernel of 150 s.
@given(st.integers(0, 50_000))
@settings(max_examples=60, deadline=None)
def test_no_kernel_costs_more_than_its_nodes(seed):
    problem, leader = random_case(seed, Analytical())
    assert problem.kernels is not None
    whole = np.bincount(leader, problem.seconds[0], len(leader))
    assert (problem.kernels.seconds(leader)[0] <= whole * (1 + 1e-9)).all()
