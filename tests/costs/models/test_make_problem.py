"""`make_problem`: number formats, streaming, profiles, memory, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest
from small_graphs import graph_of

from go_rl.core import (
    FREE,
    Device,
    Hardware,
    Links,
    Objective,
    OpGraph,
    OpKind,
    ProblemError,
    Topology,
    load_hardware,
)
from go_rl.costs.models import Analytical, ProblemOptions, Profiled, file_hardware, make_problem
from go_rl.graphs.readers.graph_builder import Node

MAX_LOAD = ProblemOptions(objective=Objective.MAX_LOAD)


def graph(profile: bool = False, backward: bool = False, **meta) -> OpGraph:
    """a -> b -> c in fp32: 4 kB, 8 kB and 4 kB of results; weights 0, 160 MB and 2 MB."""
    weights, sizes = (0.0, 160e6, 2e6), (4e3, 8e3, 4e3)
    nodes = (
        Node(
            name, "Gemm", OpKind.MATMUL, flops=0.0 if profile else 1e9,
            bytes_accessed=weights[i] + sizes[i], output_bytes=sizes[i], weight_bytes=weights[i],
            output_itemsize=4.0, weight_itemsize=4.0 if weights[i] else 0.0,
            colocation=0 if name != "c" else FREE, is_backward=backward and name == "c",
            seconds={"accelerator": 1.0 + i, "cpu": 10.0 + i} if profile else {},
            transfer_seconds=0.5 * i if profile else None,
        )
        for i, name in enumerate("abc")
    )  # fmt: skip
    return graph_of(nodes, [(0, 1, 4e3), (1, 2, 8e3)], "model", meta)


class Mine:
    """A user's cost model that has the name of the one that reads profiles."""

    name = "profiled"

    def seconds(self, kernels, device):
        return np.full(len(kernels.flops), 2.0)


def test_a_cost_model_is_a_profile_by_its_class_and_not_by_its_name():
    problem = make_problem(
        graph(),
        load_hardware("p100x2"),
        ProblemOptions(cost_model=Mine(), objective=Objective.MAKESPAN),
    )
    assert problem.memory
    assert not any("profile" in note for note in problem.notes)
    assert problem.kernels is not None
    together = problem.kernels.seconds(np.array([0, 0, 2]))
    assert together[0].tolist() == [2.0, 0.0, 2.0]


def test_int8_hardware_quarters_fp32_sizes():
    problem = make_problem(graph(), load_hardware("ring4"))
    assert problem.output_bytes.tolist() == [1e3, 2e3, 1e3]
    assert problem.edge_bytes.tolist() == [1e3, 2e3]
    assert problem.weight_bytes.tolist() == [0.0, 0.0, 5e5]
    assert problem.graph.output_bytes.tolist() == [4e3, 8e3, 4e3]


def test_other_hardware_keeps_the_models_own_format():
    problem = make_problem(graph(), load_hardware("p100x4"), MAX_LOAD)
    assert problem.weight_bytes.tolist() == [0.0, 160e6, 2e6]
    assert problem.edge_bytes.tolist() == [4e3, 8e3]


def test_weights_over_the_memory_are_streamed_and_paid_for():
    """40 MB as int8 against 32 MB: 40 MB / 16 GB/s = 2.5 ms and the launch; a note names it."""
    problem = make_problem(graph(), load_hardware("ring4"))
    assert problem.streamed_bytes.tolist() == [0.0, 40e6, 0.0]
    assert problem.seconds[0, 1] == pytest.approx(2.5e-3 + 1e-7)
    assert any("'b' streams 40.0 MB" in note for note in problem.notes)


@pytest.mark.parametrize(
    ("name", "options"), [("ring4", ProblemOptions(memory=False)), ("p100x4", MAX_LOAD)]
)
def test_nothing_is_streamed_without_memory_or_off_the_ring(name, options):
    problem = make_problem(graph(), load_hardware(name), options)
    assert not problem.streamed_bytes.any()
    assert problem.weight_bytes[1] > 0


def test_a_profile_is_used_where_there_are_no_flops():
    problem = make_problem(graph(profile=True), load_hardware("ring4"))
    assert problem.cost_model == "profiled"
    assert problem.seconds.tolist() == [[1.0, 2.0, 3.0]]
    assert problem.transfer_seconds.tolist() == [0.0, 0.5, 1.0]
    assert not problem.memory
    assert any("own profile (accelerator)" in note for note in problem.notes)
    assert any("Memory is not checked" in note for note in problem.notes)


def test_the_user_may_choose_the_model_and_the_memory():
    options = ProblemOptions(cost_model=Analytical(), memory=False)
    with pytest.raises(ProblemError, match="and no FLOP, which the analytical model needs"):
        make_problem(graph(profile=True), load_hardware("ring4"), options)
    both = replace(graph(profile=True), flops=np.ones(3))
    problem = make_problem(both, load_hardware("ring4"), options)
    assert (problem.cost_model, problem.memory) == ("analytical", False)
    profiled = ProblemOptions(cost_model=Profiled())
    assert make_problem(both, load_hardware("ring4"), profiled).cost_model == "profiled"
    assert make_problem(graph(), load_hardware("ring4")).memory
    checked = make_problem(graph(profile=True), load_hardware("ring4"), ProblemOptions(memory=True))
    assert checked.memory
    assert not any("not checked" in note for note in checked.notes)


def test_cpus_take_the_cpu_profile():
    mixed = Hardware(
        "mixed",
        (Device("tile", 1e12, 1e9, 1e12), Device("host", 1e11, 1e9, 1e11, is_cpu=True)),
        Links(Topology.FULL, 1e10),
    )
    problem = make_problem(graph(profile=True), mixed, MAX_LOAD)
    assert problem.seconds.tolist() == [[1.0, 2.0, 3.0], [10.0, 11.0, 12.0]]


def test_the_files_own_hardware():
    profiled = graph(profile=True, accelerators=2, cpus=1, memory_bytes=5e6)
    own = file_hardware(profiled)
    assert own is not None
    assert [c.is_cpu for c in own.devices] == [False, False, True]
    assert own.devices[0].memory_bytes == 5e6
    assert make_problem(profiled, own, MAX_LOAD).memory
    assert not make_problem(profiled, load_hardware("p100x2"), MAX_LOAD).memory
    assert file_hardware(graph()) is None


def test_a_ring_refuses_a_training_graph_in_one_sentence():
    with pytest.raises(ProblemError, match="node 'c' belongs to the backward pass") as error:
        make_problem(graph(backward=True), load_hardware("ring4"))
    assert "--objective max-load" in str(error.value)
    assert "\n" not in str(error.value)
    make_problem(graph(backward=True), load_hardware("p100x2"), MAX_LOAD)
    make_problem(graph(backward=True), load_hardware("ring4"), ProblemOptions(allow_training=True))


def test_classes_may_be_ignored():
    kept, dropped = (
        make_problem(graph(), load_hardware("ring4"), ProblemOptions(colocation=c))
        for c in ("graph", "none")
    )
    assert kept.has_colocation
    assert not dropped.has_colocation


class OwnModel:
    """A user's cost model that gives what it is told to."""

    name = "own"

    def __init__(self, given) -> None:
        self.given = given

    def seconds(self, kernels, device):
        return self.given


def test_a_cost_model_of_ones_own_prices_the_nodes():
    options = ProblemOptions(cost_model=OwnModel([3, np.inf, 0.5]))
    problem = make_problem(graph(), load_hardware("ring4"), options)
    assert (problem.seconds.tolist(), problem.cost_model) == ([[3.0, np.inf, 0.5]], "own")


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([1.0, 2.0], r"'own' on device 'hermosa': gives seconds of shape \[2\]; .* must be \[3\]"),
        (1.0, r"shape \[\];"),
        ([1.0, np.nan, 1.0], "gives node 'b' nan s; it must be >= 0, or inf"),
        ([1.0, 1.0, -2.0], "gives node 'c' -2.0 s"),
        (["fast", "slow", "slow"], "gives no array of seconds"),
        (None, r"gives seconds of shape \[\]"),
    ],
)
def test_what_is_wrong_with_a_cost_model_is_said(given, sentence):
    options = ProblemOptions(cost_model=OwnModel(given))
    with pytest.raises(ProblemError, match=sentence):
        make_problem(graph(), load_hardware("ring4"), options)
