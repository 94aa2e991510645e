"""Cost models that know kernels as graphs: what is priced, how often, and on which device."""

import numpy as np
import pytest
from reference.step_problems import graph_of

from go_rl.core import Device, HardwareError, Objective, OpKind, ProblemError, load_hardware
from go_rl.costs.models import ProblemOptions, make_problem
from go_rl.costs.models.cost_model import Kernels
from go_rl.costs.models.kernel_cache import KernelCache
from go_rl.costs.models.measured import Measured
from go_rl.graphs.cutting.kernel_set import KernelSet, cut_kernels
from go_rl.runtime.records import Record, RecordStore

CPU = Device("cpu-1", 1e11, 1e12, 2e10, 2e-6, 2e10, is_cpu=True)


def chain(nodes: int = 5):
    """An input, then equal elementwise operators; the last is the result."""
    kinds = [OpKind.INPUT, *[OpKind.ELEMENTWISE] * (nodes - 1)]
    kept = [False] * (nodes - 1) + [True]
    edges = [(i, i + 1, 4.0) for i in range(nodes - 1)]
    return graph_of(nodes, edges, {"kinds": kinds, "is_output": kept})


def kernels(graph, leader=None, which=None) -> Kernels:
    count = graph.num_nodes if which is None else len(which)
    kind = graph.kind if which is None else graph.kind[which]
    nothing = np.zeros(count)
    return Kernels(graph, kind, nothing, nothing, nothing, leader, which)


class Pricer:
    """Seconds: operators of a kernel; keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def __call__(self, new: KernelSet) -> np.ndarray:
        self.asked.append(new.num_kernels)
        operators = new.kernel[new.graph.kind != OpKind.INPUT]
        return np.bincount(operators, minlength=new.num_kernels).astype(np.float64)


def test_each_node_is_a_kernel_and_equal_ones_are_priced_once():
    cache, price = KernelCache(), Pricer()
    found = cache.seconds(kernels(chain()), price)
    assert found.tolist() == [0.0, 1.0, 1.0, 1.0, 1.0]
    assert price.asked == [1], "all four read a tensor and write one that leaves the kernel"
    cache.seconds(kernels(chain(9)), price)
    assert price.asked == [1]


def store_of(folder, graph, reason: str = "") -> None:
    cut, _ = cut_kernels(graph, np.arange(graph.num_nodes))
    with RecordStore(folder / "records.sqlite") as store:
        for hash_ in cut.hashes:
            timed = {} if reason else {"seconds": 2e-3, "repeats": 3}
            store.add([Record(workload=hash_, target="cpu-1", reason=reason, **timed)])


def test_a_kernel_without_a_time_is_named(tmp_path):
    store_of(tmp_path, chain(), "took more than 30 s")
    model = Measured(tmp_path / "records.sqlite", "cpu-1")
    with pytest.raises(ProblemError, match="has no time: took more than 30 s on cpu-1"):
        model.seconds(kernels(chain()), CPU)
    with pytest.raises(ProblemError, match="was not measured on cpu-1"):
        model.seconds(kernels(chain(), np.array([0, 1, 1, 3, 4])), CPU)


def test_other_chips_are_refused(tmp_path):
    store_of(tmp_path, chain())
    options = ProblemOptions(
        objective=Objective.MAKESPAN, cost_model=Measured(tmp_path / "records.sqlite", "cpu-1")
    )
    with pytest.raises(HardwareError, match=r"knows devices of kind 'cpu-1', .* not 'p100'"):
        make_problem(chain(), load_hardware("p100x2"), options)
