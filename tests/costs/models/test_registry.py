"""Cost models by name, and those that know kernels as graphs."""

from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from costs.kernels.kernels import weights
from reference.step_problems import graph_of

from go_rl.api.load import trace
from go_rl.api.options import OptimizeOptions
from go_rl.api.problem import problem_for
from go_rl.core import (
    CheckpointError,
    Device,
    HardwareError,
    Objective,
    OpGraph,
    OpKind,
    Problem,
    ProblemError,
    load_hardware,
)
from go_rl.core.hardware.systems import GPU_DEVICES
from go_rl.costs.models import ProblemOptions, learned, make_problem, named_cost
from go_rl.costs.models.cost_model import Kernels
from go_rl.costs.models.kernel_cache import KernelCache
from go_rl.costs.models.measured import Measured
from go_rl.costs.models.registry import check_cost, cost_identity
from go_rl.graphs.cutting.kernel_set import KernelSet, cut_kernels
from go_rl.graphs.readers.jax.reader import trace_jax
from go_rl.graphs.zoo.models.building import floats
from go_rl.runtime.records import Record, RecordStore

CORES = load_hardware("cpu-1x2")


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "w.npz"
    weights().save(path)
    return path


@pytest.fixture
def shipped(tmp_path, monkeypatch) -> Path:
    """Weights that ship for the devices of the hardware cpu-1."""
    folder = tmp_path / "pretrained"
    folder.mkdir()
    weights().save(folder / "kernels-cpu-1.npz")
    monkeypatch.setattr("go_rl.costs.kernels.predictor.SHIPPED", folder)
    return folder


def small(strange: bool = False) -> OpGraph:
    """A product and an exponential; the latter may be an operator that nobody knows."""
    graph = trace(lambda x, w: np.exp(1) ** (x @ w) * 2.0, *np.ones((2, 8, 8), np.float32))
    names = tuple("fft" if strange and t == "pow" else t for t in graph.op_type)
    return replace(graph, op_type=names)


def priced(graph: OpGraph, cost: str, name: str = "cpu-1x2") -> Problem:
    model = named_cost(cost, load_hardware(name))
    return make_problem(
        graph, load_hardware(name), ProblemOptions(Objective.MAKESPAN, cost_model=model)
    )


@pytest.mark.parametrize(
    ("cost", "said"),
    [
        ("lerned", "unknown cost 'lerned'; did you mean 'learned'?"),
        ("lerned:w.npz", "did you mean 'learned'?"),
        ("learned:", "unknown cost 'learned:'. Use auto, analytical, profiled, learned, learned:"),
        ("measured", "measured:DIR"),
        ("analytical:1", "unknown cost 'analytical:1'."),
        ("", "unknown cost ''."),
    ],
)
def test_other_names_are_refused_with_the_nearest_and_the_list(cost, said):
    with pytest.raises(ProblemError) as error:
        check_cost(cost)
    assert said in str(error.value)


def test_a_file_is_read_once_and_its_name_finds_it_again(file, monkeypatch):
    monkeypatch.chdir(file.parent)
    model = named_cost("learned:w.npz", CORES)
    assert model is not None
    assert model.name == f"learned:{file}"
    assert named_cost(model.name, load_hardware("cpu-1")) is model
    before = cost_identity("learned:w.npz", CORES)
    assert before.startswith(f"{model.name} ")
    replace(weights(), name="other").save(file)
    assert named_cost("learned:w.npz", CORES) is not model
    assert cost_identity("learned:w.npz", CORES) != before
    assert (cost_identity("auto", CORES), cost_identity("profiled", CORES)) == ("auto", "profiled")


def test_learned_alone_is_what_ships_for_the_chips(shipped):
    model = named_cost("learned", CORES)
    assert model is not None
    assert model.name == "learned:kernels-cpu-1"
    assert named_cost("learned:kernels-cpu-1", load_hardware("ring4")) is model
    with pytest.raises(HardwareError) as error:
        named_cost("learned", load_hardware("ring36"))
    for said in ("kind 'hermosa' (hardware 'ring36')", "shipped: kernels-cpu-1", "--hardware cpu-1",
                 "--cost analytical", "train kernels"):  # fmt: skip
        assert said in str(error.value)
    with pytest.raises(CheckpointError, match="weights ship; did you mean 'kernels-cpu-1'"):
        named_cost("learned:kernel-cpu1", CORES)


def test_other_chips_formats_and_files_are_refused(file, shipped):
    with pytest.raises(HardwareError, match=r"knows devices of kind 'cpu-1', .* not 'p100'"):
        priced(small(), f"learned:{file}", "p100x2")
    with pytest.raises(HardwareError, match="elements of 1 bytes: leave out its element_bytes"):
        named_cost("learned", replace(CORES, element_bytes=1.0))
    with pytest.raises(CheckpointError, match="no such file"):
        named_cost("learned:w2.npz", CORES)


def test_kernels_unlike_the_training_data_are_noted_and_priced_once(shipped, monkeypatch):
    asked: list[int] = []
    predict = learned.predict_kernels

    def counted(known, kernels):
        asked.append(kernels.num_kernels)
        return predict(known, kernels)

    monkeypatch.setattr(learned, "predict_kernels", counted)
    problem, again = (priced(small(strange=True), "learned") for _ in range(2))
    assert problem.cost_model == "learned:kernels-cpu-1"
    busy = ~problem.graph.is_fed
    assert (problem.seconds[:, busy] > 0).all()
    note = next(note for note in problem.notes if "unlike" in note)
    assert f" of {busy.sum()} operators are unlike" in note
    assert "(operators never seen: fft)" in note
    assert again.notes == problem.notes
    assert len(asked) == 1


@pytest.fixture(scope="module")
def graph():
    return trace_jax(lambda x, w: jnp.tanh(x @ w), floats(64, 128), floats(128, 128), weights=(1,))


def _problem(graph, hardware, **options):
    return problem_for(graph, OptimizeOptions(hardware=hardware, **options))


@pytest.mark.parametrize("kind", GPU_DEVICES)
def test_gpus_of_the_presets_have_learned_prices(graph, kind):
    problem = _problem(graph, f"{kind}x2")
    assert problem.cost_model == "learned:gpus"
    assert np.array_equal(
        problem.seconds, _problem(graph, f"{kind}x2", cost="learned:gpus").seconds
    )


@pytest.mark.parametrize("hardware", ["ring4", "host", "cpu-1x2", "cpu-1-ring2"])
def test_where_nothing_was_learned_prices_are_analytical(graph, hardware):
    problem = _problem(graph, hardware)
    assert problem.cost_model == "analytical"
    assert problem.notes == ()
    assert cost_identity("auto", load_hardware(hardware)) == "auto"


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
